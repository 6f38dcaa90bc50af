import { expect, it } from '@jest/globals'
import { eventOf, shows } from '../../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'

const engines = Object.fromEntries(ENGINE_NAMES.map((name) => [name, useEngine(name)]))

it.each(ENGINE_NAMES)(
  'reads that end together on %s fail together while the database does not answer',
  async (name) => {
    const { store, engine: own } = await openStoreWithSql(
      await (engines[name] as (typeof engines)[0]).freshAddress(),
    )
    await store.accept(Array.from({ length: 12 }, (_, i) => eventOf(`s${i}`)))
    const claims = await store.claimReads({ limit: 12, leaseMs: 60_000, except: [], urgencies: [1] })
    expect(claims).toHaveLength(12)
    let tries = 0
    own.write = async () => {
      tries++
      throw new Error('no answer from the database within 3000 ms')
    }
    const finishes = claims.map((claim) => store.finishRead(claim, shows(claim, 'purchased')))
    const results = await Promise.allSettled(finishes)
    expect(results.map(({ status }) => status)).toEqual(claims.map(() => 'rejected'))
    // Each try may take seconds: with one for each read, their leases and the time of close() would run out.
    expect(tries).toBe(1)
  },
)
