import { expect, it } from '@jest/globals'
import { systemClock } from '../../../lib/base/clock.js'
import { claimed, eventOf, shows } from '../../support/conformance/lab.js'
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

it.each(ENGINE_NAMES)(
  'D219 a pause and a clock with fractions of a millisecond give whole times on %s',
  async (name) => {
    const address = await (engines[name] as (typeof engines)[0]).freshAddress()
    const clock = { ...systemClock, now: () => Date.now() + 60_000.37 }
    const { store } = await openStoreWithSql(address, { clock })
    await store.accept([eventOf('s1')])
    const claim = await claimed(store)
    expect(await store.finishRead(claim, shows(claim, 'purchased', { nextInMs: 62.5 }))).toBe(true)
    const [row] = await store.subscriptionsNamed(['s1'])
    const times = [claim.createdAt, row?.requestedAt, row?.readAt, row?.refreshAt]
    expect(times.map(Number.isInteger)).toEqual(times.map(() => true))
  },
)
