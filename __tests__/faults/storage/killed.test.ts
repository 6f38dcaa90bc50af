import { describe, expect, it } from '@jest/globals'
import { ENGINE_NAMES, type EngineName, useEngine } from '../../support/engines/engines.js'
import { startProxy } from '../../support/engines/tcp-proxy.js'
import { notice } from '../../support/events.js'
import type { DeathPoint } from '../../support/receiving/receiver-child.js'
import { childSettings, loadReceiver } from '../../support/receiving/receiver-process.js'
import { deliver, openMarketplace, startPlatform } from '../../support/scene.js'
import { until } from '../../support/until.js'

/** The row, and the point at which a process ends during a commit. */
const DEATHS: Record<EngineName, [row: string, at: DeathPoint | 'when COMMIT is sent', more: boolean][]> = {
  // There is more than that: unacknowledged deliveries are stored and worked on too.
  SQLite: [
    ['C1', 'before the write', false],
    ['C1', 'before the commit', false],
    ['C2', 'before the sync', true],
    ['C2', 'during the sync', true],
    ['C3', 'after the sync', true],
  ],
  // A commit that returns is synced.
  PostgreSQL: [
    ['C1', 'before the write', false],
    ['C1', 'before the commit', false],
    ['C2', 'when COMMIT is sent', true],
    ['C3', 'after the sync', true],
  ],
}

describe.each(ENGINE_NAMES)('a receiver on %s that is killed', (engineName) => {
  const engine = useEngine(engineName)

  it.each(DEATHS[engineName])('%s %s loses nothing that it acknowledged', async (_row, at, more) => {
    const platform = await startPlatform()
    const address = await engine.freshAddress()
    const proxy = engineName === 'PostgreSQL' ? await startProxy({ to: engine.server().port }) : undefined
    const dies = at === 'when COMMIT is sent' ? undefined : { at, after: 5 }
    const receiver = loadReceiver(
      childSettings(platform, proxy?.through(address) ?? address, { works: false, ...(dies && { dies }) }),
    )
    await receiver.begin()
    // The receiver has opened the database.
    await receiver.get('/journal')
    let commits = 0
    if (!dies)
      proxy?.onData('to server', (bytes) => {
        // The process is killed before this COMMIT is passed on, and the COMMIT still arrives. Those without a payload are
        // not of deliveries.
        const text = bytes.toString('latin1')
        if (/\bcommit\b/.test(text) && /entity_name/.test(text) && ++commits > 5) receiver.signal('SIGKILL')
      })

    const acknowledged: string[] = []
    const bought: string[] = []
    for (let isAlive = true; isAlive; ) {
      const burst = Array.from({ length: 3 }, (_, i) => `b${bought.length + i}`)
      const replies = await Promise.all(
        burst.map((business_uid) => {
          const { uid } = platform.purchase({ business_uid, payment: 'succeeded' })
          return deliver(receiver.target(), notice(business_uid, uid)).catch(() => undefined)
        }),
      )
      bought.push(...burst)
      for (const reply of replies) {
        if (reply?.status === 200) acknowledged.push(reply.id)
        else isAlive = false
      }
    }
    expect(await receiver.ended).toMatchObject({ signal: 'SIGKILL' })

    const next = openMarketplace(platform, { store: address })
    const kept = await until('deliveries under way have arrived', async () => {
      const entries = await next.journal.list({ kind: 'event', limit: 1_000 })
      return (!more || entries.length > acknowledged.length) && entries
    })
    expect(acknowledged.length).toBeGreaterThanOrEqual(1)
    expect(acknowledged.filter((id) => !kept.some((entry) => entry.id === id))).toEqual([])
    await until('everything stored is worked on', async () =>
      (await Promise.all(kept.map(({ business_uid }) => next.isEntitled(String(business_uid))))).every(
        Boolean,
      ),
    )
  })
})
