import { describe, expect, it } from '@jest/globals'
import { DAY } from '../../lib/base/clock.js'
import type { LaneClaim, Store } from '../../lib/store/port/store.js'
import { claimed, EVERY_TOPIC, handling, LONG, named, SHORT } from '../support/conformance/lab.js'
import { useEngine } from '../support/engines/engines.js'
import { openStoreWithSql } from '../support/engines/store-with-sql.js'
import { startProxy, type TcpProxy } from '../support/engines/tcp-proxy.js'
import { eventOf } from '../support/events.js'
import { until } from '../support/until.js'

const engine = useEngine('PostgreSQL')

describe('C11 a transaction whose COMMIT got no answer', () => {
  it('leases a suspect lane once: its try counts as one, and is made', async () => {
    const { store, sql, proxy } = await open()
    await handling(store, EVERY_TOPIC)
    await store.accept([eventOf('s1')])
    await store.claimLanes({ ...ANY, leaseMs: SHORT, limit: 1, entryLimit: 1 })
    await suspectDue(store, 'lane')
    const struck = cutAtCommit(proxy, /set lapses = lapses \+ 1/)
    expect(await store.claimSuspectLane(ANY)).toMatchObject({ lapses: 0 })
    await struck
    expect(await sql('select lapses from lanes')).toEqual([{ lapses: 1 }])
  })

  it('leases a suspect read once: its try counts as one, and is made', async () => {
    const { store, sql, proxy } = await open()
    await store.requestRefresh(named('s1'))
    await claimed(store, { leaseMs: SHORT })
    await suspectDue(store, 'read')
    const struck = cutAtCommit(proxy, /set lapses = lapses \+ 1/)
    expect(await store.claimSuspectRead({ leaseMs: LONG })).toMatchObject({ lapses: 0 })
    await struck
    expect(await sql('select lapses from subscriptions')).toEqual([{ lapses: 1 }])
  })

  it('finishes a lane: the caller hears that its lease was held, and reports an entry that is dead', async () => {
    const { store, sql, proxy } = await open()
    await handling(store, EVERY_TOPIC)
    await store.accept([eventOf('s1')])
    const [lane] = await store.claimLanes({ ...ANY, limit: 1, entryLimit: 1 })
    const { id, leaseToken, entries } = lane as LaneClaim
    const result = { kind: 'dead', error: 'it fails' } as const
    const results = entries.map((entry) => ({ id: entry.id, attempt: 1, result }))
    const struck = cutAtCommit(proxy, /as finished/)
    expect(await store.finishLanes([{ id, leaseToken, results, keepLease: false }])).toEqual([id])
    await struck
    expect(await sql('select status from journal')).toEqual([{ status: 'dead' }])
  })

  it('ends entries without a handler, and returns those that are dead', async () => {
    const { store, sql, proxy } = await open()
    await handling(store, EVERY_TOPIC)
    await store.accept([{ ...eventOf('s1'), id: 'e1' }])
    await sql(`update journal set received_at = received_at - ${8 * DAY}`)
    await sql(`update handlers set seen_at = seen_at - ${DAY}`)
    const struck = cutAtCommit(proxy, /set status = 'dead'/)
    const retention = { eventsMs: 7 * DAY, changesMs: 90 * DAY, deadMs: 30 * DAY }
    expect(await store.prune(retention)).toMatchObject({ rows: 1, dead: [{ id: 'e1' }] })
    await struck
  })

  it('runs again if it was not committed', async () => {
    const { store, sql, proxy } = await open()
    await handling(store, EVERY_TOPIC)
    await store.accept([eventOf('s1')])
    const struck = cutAtCommit(proxy, /update lanes set lease_token/, 'before')
    const claims = await store.claimLanes({ ...ANY, limit: 1, entryLimit: 1 })
    await struck
    expect(await sql('select lease_token from lanes')).toEqual([{ lease_token: claims[0]?.leaseToken }])
  })
})

const ANY = { leaseMs: LONG, topics: EVERY_TOPIC, exceptKeys: [] }

async function open() {
  const address = await engine.freshAddress()
  const proxy = await startProxy({ to: engine.server().port })
  return { ...(await openStoreWithSql(proxy.through(address))), proxy }
}

/** Loses the connection at the COMMIT of the next transaction with this statement, when the server has answered it or before it gets it. */
async function cutAtCommit(proxy: TcpProxy, statement: RegExp, when: 'after' | 'before' = 'after') {
  let isSent = false
  const isCommit = (bytes: Buffer) => {
    const text = bytes.toString('latin1')
    isSent ||= statement.test(text)
    return isSent && /commit/.test(text)
  }
  await (when === 'after' ? proxy.cutAfter(isCommit) : proxy.cutBefore(isCommit))
}

function suspectDue(store: Store, kind: 'lane' | 'read') {
  return until(
    'the lease has run out',
    async () => (await store.dueSuspect({ kinds: [kind], topics: EVERY_TOPIC, exceptKeys: [] })) === kind,
  )
}
