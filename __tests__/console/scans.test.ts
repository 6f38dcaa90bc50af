import { describe, expect, it } from '@jest/globals'
import { MAX_EXAMINED } from '../../lib/console/server/scans.js'
import type { Store } from '../../lib/store/port/store.js'
import { onCleanUp } from '../support/clean-up.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { storeOption, wrapStore } from '../support/engines/store-option.js'
import { openStoreWithSql } from '../support/engines/store-with-sql.js'
import { createScene, newFile, OUR_ITEM } from '../support/scene.js'
import { consoleCaller, mountConsole } from '../support/scenes/console.js'
import { addDeadEntries, addSubscriptions } from '../support/scenes/large-tables.js'
import { until } from '../support/until.js'

const ROWS = 5_000
/** The rows of a page or two that every answer may read beside its scan. */
const FEW = 120

describe.each(ENGINE_NAMES)('a question of a person to large tables on %s', (engineName) => {
  const engine = useEngine(engineName)

  it('K118 reads a bounded number of rows, whatever it looks for', async () => {
    const { operator, rowsOf } = await stage(await engine.freshAddress())
    const { groups } = (await operator.read('attention')).body
    const questions: [name: string, query: Record<string, string>, scans: number][] = [
      ['subscriptions', {}, 0],
      ['subscriptions', { reason: 'ended' }, 1],
      ['subscriptions', { reason: 'stale' }, 1],
      ['attention', {}, 2],
      ['attention', { status: 'dead' }, 1],
      ['group', { key: groups[0].key }, 1],
      ['shapes', {}, 1],
      ['webhooks', {}, 1],
      ['live', {}, 0],
      ['activity', {}, 1],
      ['live', { after: 'an entry that is gone' }, 1],
      ['search', { q: 'is it b-0004000, s-0004001, x-1, x-2, x-3 or x-4' }, 0],
      ['search', { q: 'nobody-knows' }, 1],
      ['business', { business_uid: 'b-0004000' }, 0],
      ['previewReplay', { status: 'dead' }, 1],
      ['previewReplay', { group: groups[0].key }, 1],
    ]
    for (const [name, query, scans] of questions) {
      const { rows, reply } = await rowsOf(() => operator.read(name, query))
      expect({ name, query, status: reply.status }).toEqual({ name, query, status: 200 })
      expect({ name, query, rows, isBounded: rows <= scans * (MAX_EXAMINED + 1) + FEW }).toEqual({
        name,
        query,
        rows,
        isBounded: true,
      })
    }
    const reason = 'a test'
    const { rows } = await rowsOf(() => operator.act('replay', { group: groups[0].key, reason }))
    expect(rows).toBeLessThanOrEqual(MAX_EXAMINED + 1 + FEW)
  }, 60_000)

  it('K118 continues where the question before ended, until the last row', async () => {
    const { operator } = await stage(await engine.freshAddress())
    const found: string[] = []
    let requests = 0
    for (let after: string | null | undefined; after !== null; requests++) {
      const { body } = await operator.read('subscriptions', { reason: 'ended', ...(after ? { after } : {}) })
      found.push(...body.subscriptions.map((row: { subscription_uid: string }) => row.subscription_uid))
      after = body.after
    }
    expect([found, requests]).toEqual([['s-0005000'], 3])

    const counts: number[] = []
    const groups = new Map<string, number>()
    for (let before: string | null | undefined; before !== null; ) {
      const { body } = await operator.read('attention', { status: 'dead', ...(before ? { before } : {}) })
      counts.push(body.counts.dead)
      for (const { error, count } of body.groups) groups.set(error, (groups.get(error) ?? 0) + count)
      before = body.next.dead
      expect(body.isAll).toBe(before === null)
    }
    expect(counts).toEqual([MAX_EXAMINED, MAX_EXAMINED, ROWS - 2 * MAX_EXAMINED])
    expect([...groups.values()]).toEqual(Array(10).fill(ROWS / 10))

    const { body: last } = await operator.read('attention', { status: 'dead', before: 'e-0001001' })
    const [{ key, before }] = last.groups
    const ids: string[] = []
    for (let from: string | null | undefined; from !== null; ) {
      const { body } = await operator.read('group', { key, before, ...(from ? { from } : {}) })
      ids.push(...body.entries.map(({ id }: { id: string }) => id))
      from = body.next
    }
    expect([ids.length, new Set(ids).size]).toEqual([100, 100])
    const { body: replayed } = await operator.act('replay', { group: key, before, reason: 'a test' })
    expect(replayed).toMatchObject({ replayed: 100, left: 0, hasOlder: false })
    const again = await operator.act('replay', { group: key, before, reason: 'a test' })
    expect([again.status, again.body.code]).toEqual([404, 'group_gone'])
  }, 60_000)

  it('K118 waits for the question before, and too many get 503 with Retry-After', async () => {
    const { operator, hold } = await stage(await engine.freshAddress())
    await operator.read('attention')
    const held = hold()
    const statuses: number[] = []
    const asked = Array.from({ length: 30 }, async (_, i) => {
      const reply = await operator.read(['subscriptions', 'webhooks', 'live'][i % 3] as string)
      statuses.push(reply.status)
      return reply
    })
    await until('ten are refused', () => statuses.length === 10)
    held.release()
    const replies = await Promise.all(asked)
    expect(statuses.filter((status) => status === 200).length).toBe(20)
    for (const { status, headers, body } of replies.filter(({ status }) => status !== 200))
      expect([status, body.code, headers.get('retry-after')]).toEqual([503, 'busy', '5'])
    expect(held.mostAtOnce()).toBe(1)
    expect((await operator.read('subscriptions', { reason: 'ended' })).status).toBe(200)
  }, 60_000)

  it('K118 waits for an export too, and one that is refused is not recorded', async () => {
    const { operator, hold, marketplace } = await stage(await engine.freshAddress())
    await operator.read('attention')
    const held = hold()
    const statuses: number[] = []
    const asked = Array.from({ length: 30 }, async (_, i) => {
      const { status } =
        i % 2 === 0
          ? await operator.act('export', { business_uid: 'b-0004000', reason: 'a test' })
          : await operator.read('subscriptions')
      statuses.push(status)
    })
    await until('ten are refused', () => statuses.length === 10)
    expect(new Set(statuses)).toEqual(new Set([503]))
    held.release()
    await Promise.all(asked)
    expect(held.mostAtOnce()).toBe(1)
    const recorded = await marketplace.journal.list({ kind: 'action', name: 'export' })
    const refused = 15 - recorded.length
    expect([refused > 0, refused <= 10]).toEqual([true, true])
  }, 60_000)

  it('K118 takes its turn also after one that failed', async () => {
    const { operator, breakLists } = await stage(await engine.freshAddress())
    breakLists(true)
    expect((await operator.read('attention')).status).toBe(500)
    breakLists(false)
    expect((await operator.read('attention')).status).toBe(200)
  }, 60_000)
})

describe('a list of the journal on SQLite', () => {
  it('K118 reads no more than its window of the table, also after ANALYZE', async () => {
    const opened = await openStoreWithSql(newFile())
    await addDeadEntries(opened, ROWS)
    await opened.sql('analyze')
    const [query] = await opened.queriesOf(() => opened.store.listEntries({ status: 'dead', limit: 50 }))
    if (!query) throw new Error('expected a query')
    const plan = await opened.explain('explain query plan', query)
    expect(plan.map(({ detail }) => String(detail)).filter((step) => /^SCAN journal/.test(step))).toEqual([])
  })
})

/** A console on tables of 5,000 rows, of which the last subscription has ended. */
async function stage(address: string) {
  const opened = await openStoreWithSql(address)
  await addSubscriptions(opened, ROWS, OUR_ITEM)
  await opened.sql(
    `update subscriptions set gone = 'ended', state = null where subscription_uid = 's-0005000'`,
  )
  await addDeadEntries(opened, ROWS)
  let rows = 0
  let running = 0
  let most = 0
  let isBroken = false
  let held: Promise<void> | undefined
  const counted = wrapStore(opened.store, async (name: keyof Store, call) => {
    if (name !== 'listEntries' && name !== 'listSubscriptions' && name !== 'arrivals') return call()
    if (isBroken) throw new Error('broken by the test')
    most = Math.max(most, ++running)
    try {
      await held
      const found = await call()
      if (Array.isArray(found)) rows += found.length
      return found
    } finally {
      running--
    }
  })
  const { app, url, marketplace } = await createScene({ store: storeOption(counted), worker: false })
  mountConsole(app, marketplace)
  const operator = consoleCaller(`${url}/ops`, 'operator')
  return {
    operator,
    marketplace,
    /** Holds the lists until they are released. */
    hold() {
      let release = () => {}
      held = new Promise((resolve) => {
        release = resolve
      })
      onCleanUp(release)
      most = running
      return { release, mostAtOnce: () => most }
    },
    breakLists(value: boolean) {
      isBroken = value
    },
    async rowsOf(question: () => ReturnType<typeof operator.read>) {
      rows = 0
      const reply = await question()
      return { rows, reply }
    },
  }
}
