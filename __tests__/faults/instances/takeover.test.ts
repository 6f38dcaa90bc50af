import { describe, expect, it } from '@jest/globals'
import { onCleanUp } from '../../support/clean-up.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { itWhereShared } from '../../support/engines/sharing.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { notice } from '../../support/events.js'
import { childSettings, LEASE_MS, loadReceiver } from '../../support/receiving/receiver-process.js'
import { deliver, startPlatform } from '../../support/scene.js'
import { until } from '../../support/until.js'

/** The time of a look for work on a busy machine. */
const TAKEOVER_MS = 15_000

describe.each(ENGINE_NAMES)('leased work on %s', (engineName) => {
  const engine = useEngine(engineName)
  const itShared = itWhereShared(engineName)

  it('G2 of a killed process is taken over within its lease and 15 s', async () => {
    const address = await engine.freshAddress()
    const platform = await startPlatform()
    const holder = loadReceiver(childSettings(platform, address, { handler: 'never returns' }))
    await holder.begin()
    const next = loadReceiver(childSettings(platform, address, { reportsFinishes: true }))
    const delivered = platform.purchase({ business_uid: 'b0', payment: 'succeeded' }).uid
    await deliver(holder.target(), notice('b0', delivered))
    await until('its handler has the change', async () => {
      const [decision] = await holder.get<{ entitled: boolean }[]>('/decisions?of=b0')
      return decision?.entitled
    })
    platform.faults.add({ on: 'read', kind: 'hang', times: 1 })
    const read = platform.purchase({ business_uid: 'b1', payment: 'succeeded' }).uid
    await deliver(holder.target(), notice('b1', read))
    await until('its read has begun', () =>
      platform.requests.some(({ subscription_uid }) => subscription_uid === read),
    )

    holder.signal('SIGKILL')
    await holder.ended
    const killedAt = Date.now()
    await next.begin()
    await until(
      'both are taken over',
      () =>
        next.finishes.some(({ what, id }) => what === 'read' && id === read) &&
        // The change that the killed process held, and the one that this read has found.
        next.finishes.filter(({ what }) => what === 'entry').length >= 2,
      LEASE_MS + TAKEOVER_MS,
    )
    expect(Date.now() - killedAt).toBeLessThan(LEASE_MS + TAKEOVER_MS)
    expect(next.finishes.every(({ isHeld }) => isHeld)).toBe(true)
  })

  itShared(
    'G3 of a process that was frozen past its lease is lost to it: it changes no row when it resumes',
    async () => {
      const { address, platform, sql } = await lab()
      const frozen = loadReceiver(
        childSettings(platform, address, { handler: 'obeys its signal', reportsFinishes: true }),
      )
      const other = loadReceiver(childSettings(platform, address, { reportsFinishes: true }))
      await frozen.begin()
      const delivered = platform.purchase({ business_uid: 'b0', payment: 'succeeded' }).uid
      await deliver(frozen.target(), notice('b0', delivered))
      const [change] = await until('its handler has the change', async () => {
        const rows = await sql<{ id: string }>(
          `select id from journal where kind = 'change' and status = 'pending'
            and key in (select key from lanes where lease_token is not null)`,
        )
        return rows.length > 0 && rows
      })
      const slow = platform.faults.add({ on: 'read', kind: 'slow', ms: 1_000, times: 1 })
      const read = platform.purchase({ business_uid: 'b1', payment: 'succeeded' }).uid
      await deliver(frozen.target(), notice('b1', read))
      await until('its read has begun', () => slow.strikes > 0)
      void frozen.get('/freeze').catch(() => {})
      onCleanUp(() => frozen.signal('SIGCONT'))

      platform.paymentIssue(read)
      await other.begin()
      await until(
        'both are taken over',
        () => [read, change?.id].every((id) => other.finishes.some((each) => each.id === id && each.isHeld)),
        TAKEOVER_MS,
      )
      await until('the other process delivered its change', async () => {
        const [row] = await sql<{ left: number }>(
          `select count(*) as left from journal where status = 'pending'`,
        )
        return Number(row?.left) === 0
      })
      other.signal('SIGTERM')
      await other.ended
      const everything = () =>
        Promise.all(
          ['subscriptions', 'journal', 'lanes'].map((table) => sql(`select * from ${table} order by 1`)),
        )
      const before = await everything()
      frozen.signal('SIGCONT')
      await until(
        'the thawed process has tried to finish both',
        () =>
          // An interrupted handler has no outcome: the dispatcher only returns the lane.
          [read, 'changes:b0'].every((id) => frozen.finishes.some((each) => each.id === id && !each.isHeld)),
        15_000,
      )
      expect(await everything()).toEqual(before)
    },
    60_000,
  )

  /** A migrated database, and a platform. */
  async function lab() {
    const address = await engine.freshAddress()
    return { address, platform: await startPlatform(), ...(await openStoreWithSql(address)) }
  }
})
