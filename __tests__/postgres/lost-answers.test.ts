import { describe, expect, it } from '@jest/globals'
import type { Hint } from '../../lib/store/port/store.js'
import { handling, shows } from '../support/conformance/lab.js'
import { engine, sqlAt } from '../support/engines/one-postgres.js'
import { openedStore } from '../support/engines/open-store.js'
import { startProxy } from '../support/engines/tcp-proxy.js'
import { eventOf } from '../support/events.js'
import { internals } from '../support/internals.js'
import { createScene } from '../support/scene.js'
import { until } from '../support/until.js'

/** The last bytes that are sent: statements that are left to the transaction may go with it. */
const COMMIT = /Q[^a-z]+commit\W$/
const TOPIC = 'event:purchasable_subscription/update'
const LANES = { limit: 5, entryLimit: 5, leaseMs: 60_000, topics: [TOPIC], exceptKeys: [] }
const READS = { limit: 5, leaseMs: 60_000, except: [], urgencies: [0, 1, 2, 3, 4] } as const

describe('G380 the answer to a commit is lost, and the connection with it', () => {
  it('of the finish of a read: its hints are sent, and its changes are written once', async () => {
    const { store, proxy, hints } = await wired()
    await store.accept([eventOf('s1')])
    const [claim] = await store.claimReads(READS)
    if (!claim) throw new Error('nothing was claimed')
    await proxy.quiet(300)
    hints.length = 0
    const lost = proxy.cutAfter(COMMIT)
    const changes = [{ id: 'c1', key: 'changes:b1', businessUid: 'b1', cause: 'event', payload: '{}' }]
    expect(await store.finishRead(claim, shows(claim, 'purchased', { changes: changes as never }))).toBe(true)
    await lost
    expect(hints).toEqual([{ kind: 'decided', businessUid: 'b1', superseded: true }, { kind: 'journal' }])
    expect(await store.listEntries({ kind: 'change' })).toHaveLength(1)
  })

  it('of the finish of a read, and another read was finished before the repeated call: its answer is not used again', async () => {
    const { store, proxy, hints, address } = await wired()
    await store.accept([eventOf('s1')])
    const [claim] = await store.claimReads(READS)
    if (!claim) throw new Error('nothing was claimed')
    await proxy.quiet(300)
    const lost = proxy.silenceAfter(COMMIT)
    const first = store
      .finishRead(claim, shows(claim, 'purchased', { nextInMs: 0 }))
      .catch(({ code }) => code)
    await lost
    const other = await openedStore(address)
    const [again] = await until('it is due again', async () => {
      const found = await other.claimReads(READS)
      return found.length > 0 && found
    })
    if (!again) throw new Error('nothing was claimed')
    await other.finishRead(again, shows(again, 'suspended'))
    expect(await first).toBe('store_unavailable')
    hints.length = 0
    expect(await store.finishRead(claim, shows(claim, 'purchased'))).toBe(false)
    expect(hints).toContainEqual({ kind: 'decided', businessUid: 'b1', superseded: true })
  })

  it('of results of handlers: they stand, and the repeated call writes none over a replay', async () => {
    const { store, proxy, address } = await wired()
    await handling(store, [TOPIC])
    await store.accept([eventOf('s1'), eventOf('s1')])
    const [lane] = await store.claimLanes(LANES)
    if (!lane) throw new Error('nothing was claimed')
    const [first] = lane.entries
    const { id, leaseToken } = lane
    const results = [{ id: first?.id as string, attempt: 1, result: { kind: 'dead', error: 'no' } as const }]
    const finish = { id, leaseToken, results, keepLease: true }
    await proxy.quiet(300)
    const lost = proxy.silenceAfter(COMMIT)
    const written = store.finishLanes([finish]).catch(({ code }) => code)
    await lost
    const other = await openedStore(address)
    // The answer to the statement before it is lost first.
    await until('it is committed', async () => (await other.getEntry(first?.id as string))?.status === 'dead')
    expect(await other.getEntry(first?.id as string)).toMatchObject({ error: 'no' })
    expect(await other.replayEntry(first?.id as string)).toBe(true)
    expect(await written).toBe('store_unavailable')
    expect(await store.finishLanes([finish])).toEqual([id])
    expect(await store.getEntry(first?.id as string)).toMatchObject({ status: 'pending', attempts: 0 })
  })

  it('of the last try of a handler: its failure is told', async () => {
    const { proxy, through } = await wired()
    const scene = await createScene({
      store: through,
      handlers: { retryDelaysMs: [] },
      ...internals({ pollMs: 60_000 }),
    })
    const told: unknown[] = []
    scene.marketplace.onHandlerError(({ retryInMs }) => void told.push(retryInMs))
    scene.marketplace.onUnrecognised(() => {
      void proxy.cutAfter(COMMIT)
      throw new Error('no')
    })
    await until('the handler is known', () => scene.marketplace.settled().then(() => true))
    await scene.deliver({ what: 'else' })
    await until(
      'the entry is dead',
      async () => (await scene.marketplace.journal.list({ status: 'dead' })).length === 1,
    )
    await until('its failure was told', () => told.length > 0)
    expect(told).toEqual([null])
  })

  it('of a batch of pruning: an entry that nobody handled in time is told, once', async () => {
    const { store, proxy, address } = await wired()
    await handling(store, [TOPIC])
    await store.accept([eventOf('s1')])
    await sqlAt(address, 'update marketplace_webhooks.handlers set seen_at = 0')
    await sqlAt(address, 'update marketplace_webhooks.journal set received_at = 0')
    await proxy.quiet(300)
    const lost = proxy.cutAfter(COMMIT)
    const retention = { eventsMs: 60_000, changesMs: 60_000, deadMs: 60_000, actionsMs: 60_000 }
    const dead = [...(await store.prune(retention)).dead, ...(await store.prune(retention)).dead]
    await lost
    expect(dead).toMatchObject([{ subscriptionUid: 's1' }])
  })

  it('of a claim: its leases are returned before the next claim, and nothing is suspect', async () => {
    const { store, proxy, address } = await wired()
    await handling(store, [TOPIC])
    await store.accept([eventOf('s1')])
    for (const claim of [() => store.claimReads(READS), () => store.claimLanes(LANES)]) {
      await proxy.quiet(300)
      // A look for work comes before, in a transaction of its own.
      const lost = new Promise((resolve) => {
        const remove = proxy.onData('to server', (bytes) => {
          if (!/lease_token = \$\d/.test(bytes.toString('latin1'))) return
          remove()
          resolve(proxy.cutAfter(COMMIT))
        })
      })
      const claimed = (await claim()).length + (await claim()).length
      await lost
      expect(claimed).toBe(1)
    }
    const tables = ['subscriptions', 'lanes'].map(
      (table) => `select suspect, lapses from marketplace_webhooks.${table}`,
    )
    expect(await sqlAt(address, tables.join(' union all '))).toEqual([
      { suspect: 0, lapses: 0 },
      { suspect: 0, lapses: 0 },
    ])
  })
})

/** A store behind a proxy, and the hints that it gives in its process. */
async function wired() {
  const address = await engine.freshAddress()
  const proxy = await startProxy({ to: engine.server().port })
  const through = proxy.through(address)
  const store = await openedStore(through)
  const hints: Hint[] = []
  store.subscribe((hint) => void hints.push(hint))
  return { address, proxy, through, store, hints }
}
