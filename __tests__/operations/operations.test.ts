import { inspect } from 'node:util'
import { describe, expect, it, jest } from '@jest/globals'
import { systemClock } from '../../lib/base/clock.js'
import type { HistoryItem, Marketplace } from '../../lib/index.js'
import { createJournalOperations } from '../../lib/operations/journal/journal-operations.js'
import type { JournalEntry as StoredEntry } from '../../lib/store/port/store.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { notice } from '../support/events.js'
import { internals } from '../support/internals.js'
import { createScene, OTHER_ITEM, OUR_ITEM, openMarketplace, startPlatform } from '../support/scene.js'
import { until } from '../support/until.js'

describe.each(ENGINE_NAMES)('the operations on %s', (name) => {
  const engine = useEngine(name)

  it('list subscriptions with the reason of each, by every filter, page by page', async () => {
    const { platform, marketplace } = await createScene({ store: await engine.freshAddress() })
    const uids = ['s1', 's2', 's3', 's4']
    for (const [i, uid] of uids.entries())
      platform.purchase({
        business_uid: i < 2 ? 'b1' : 'b2',
        payment: i === 1 ? 'failed' : 'succeeded',
        subscription_uid: uid,
      })
    await platform.settled()
    await until('all subscriptions are read', async () => {
      const listed = await marketplace.subscriptions.list()
      return listed.length === 4 && listed.every(({ readAt }) => readAt !== null)
    })
    const list = async (filter: Parameters<Marketplace['subscriptions']['list']>[0]) =>
      (await marketplace.subscriptions.list(filter)).map(({ subscription_uid }) => subscription_uid)
    expect(await list({})).toEqual(uids)
    expect(await list({ limit: 2, after: 's1' })).toEqual(['s2', 's3'])
    expect(await list({ businessUid: 'b1' })).toEqual(['s1', 's2'])
    expect(await list({ purchaseState: 'suspended' })).toEqual(['s2'])
    expect(await list({ reason: 'purchased', businessUid: 'b2', limit: 1 })).toEqual(['s3'])
    expect(await list({ purchasableUid: OTHER_ITEM })).toEqual([])
    expect(await marketplace.subscriptions.get('s2')).toEqual({
      subscription_uid: 's2',
      business_uid: 'b1',
      purchasable_uid: OUR_ITEM,
      purchase_state: 'suspended',
      reason: 'not_purchased',
      record: expect.objectContaining({ uid: 's2', purchase_state: 'suspended' }),
      readAt: expect.any(String),
      requestedAt: expect.any(String),
      refreshAt: expect.any(String),
      failure: null,
      gone: null,
      pending: expect.any(Boolean),
      createdAt: expect.any(String),
    })
    expect(await marketplace.subscriptions.get('nobody')).toBeUndefined()
  })

  it('show a delivery, the change that it caused, the result of both, and the action of a person', async () => {
    const { platform, marketplace } = await createScene({ store: await engine.freshAddress() })
    marketplace.onAny(() => {})
    marketplace.onPurchaseChange(() => {
      throw new Error('no mailbox')
    })
    platform.purchase({ business_uid: 'b1', payment: 'succeeded', subscription_uid: 's1' })
    await platform.settled()
    const shown = (items: HistoryItem[]) => items.map(({ kind }) => kind).sort()
    const all = await until('the delivery and its change are handled', async () => {
      const items = await marketplace.businesses.history('b1')
      const isTried = items.some((item) => item.kind === 'handled' && item.outcome === 'retrying')
      return isTried && shown(items).join() === 'change,delivery,handled,handled' && items
    })
    const change = all.find((item) => item.kind === 'change') as HistoryItem
    expect(change).toMatchObject({
      from: null,
      to: 'purchased',
      gone: null,
      cause: 'event',
      entitledAfter: true,
      subscription_uid: 's1',
    })
    expect(all.find((item) => item.kind === 'handled' && item.of === 'change')).toMatchObject({
      entryId: change.entryId,
      outcome: 'retrying',
      attempts: 1,
      error: 'Error: no mailbox',
      dueAt: expect.any(String),
    })
    expect(all.find((item) => item.kind === 'handled' && item.of === 'delivery')).toMatchObject({
      outcome: 'done',
    })
    expect(all.at(-1)).toMatchObject({ kind: 'delivery', name: 'purchasable_subscription/create' })

    const reason = 'ticket 812'
    await marketplace.journal.recordAction({
      actor: 'ada',
      action: 'look',
      entryId: change.entryId,
      reason,
    })
    const [newest] = await marketplace.businesses.history('b1', { limit: 1 })
    expect(newest).toMatchObject({
      kind: 'action',
      action: 'look',
      actor: 'ada',
      reason,
      on: change.entryId,
    })
    const older = await marketplace.businesses.history('b1', { before: newest?.id as string })
    expect(older.map(({ id }) => id)).toEqual(all.map(({ id }) => id))
    expect(
      await marketplace.businesses.history('b1', { before: new Date(Date.parse(all.at(-1)?.at as string)) }),
    ).toEqual([])
    const times = all.map(({ at }) => Date.parse(at))
    expect([...times].sort((a, b) => b - a)).toEqual(times)
  })

  it('export an entry that names only a subscription of the business, and another one for which the business was named', async () => {
    const { marketplace, deliver } = await createScene({ store: await engine.freshAddress(), worker: false })
    for (const [subscriptionUid, businessUid] of [
      ['s1', 'b1'],
      ['s2', 'b2'],
    ] as const) {
      await marketplace.subscriptions.track({ subscriptionUid, businessUid })
      await marketplace.journal.recordAction({
        actor: 'ada',
        action: `look at ${subscriptionUid}`,
        subscriptionUid,
      })
    }
    await deliver(notice('b1', 's2'))
    const { journal, subscriptions, candidateOf } = await marketplace.businesses.export('b1')
    expect(subscriptions.map(({ subscription_uid }) => subscription_uid)).toEqual(['s1'])
    expect(journal.filter(({ kind }) => kind === 'action').map(({ name }) => name)).toEqual(['look at s1'])
    expect(candidateOf).toEqual(['s2'])
  })

  it('replay the oldest matching entries after a preview, and never an action', async () => {
    const { marketplace, deliver } = await createScene({
      store: await engine.freshAddress(),
      handlers: { retryDelaysMs: [] },
      ...internals({ pollMs: 50 }),
    })
    let works = false
    const handled: string[] = []
    marketplace.on('application/installed', ({ data }) => {
      if (!works) throw new Error('not today')
      handled.push(data.business_id)
    })
    for (const business_id of ['b1', 'b2', 'b3'])
      await deliver({
        entity_name: 'application',
        event_type: 'installed',
        data: { business_id, app_code_name: 'ours', event_time: '2026-01-01T00:00:00Z' },
      })
    await until(
      'all entries are dead',
      async () => (await marketplace.journal.list({ status: 'dead' })).length === 3,
    )
    await marketplace.journal.recordAction({ actor: 'ada', action: 'look', businessUid: 'b1' })
    works = true
    const dead = { status: 'dead', name: 'application/installed' } as const
    const ids = (await marketplace.journal.list(dead)).map(({ id }) => id).reverse()
    expect(await marketplace.journal.replayAll(dead, { limit: 2, dryRun: true })).toEqual({
      matched: 3,
      replayed: 0,
      ids: ids.slice(0, 2),
    })
    expect(await marketplace.journal.list(dead)).toHaveLength(3)
    expect(await marketplace.journal.replayAll(dead, { limit: 2 })).toEqual({
      matched: 3,
      replayed: 2,
      ids: ids.slice(0, 2),
    })
    await until(
      'the entries are handled',
      async () => (await marketplace.journal.list({ status: 'done', kind: 'event' })).length === 2,
    )
    expect(handled.sort()).toEqual(['b1', 'b2'])
    expect(await marketplace.journal.replayAll({ status: 'done', businessUid: 'b1' })).toMatchObject({
      matched: 1,
      ids: [ids[0]],
    })
    expect(await marketplace.journal.get(ids[2] as string)).toMatchObject({
      status: 'dead',
      error: expect.stringContaining('not today'),
    })
    const atOnce = await Promise.all([1, 2].map(() => marketplace.journal.replayAll(dead)))
    expect(atOnce.flatMap((each) => each.ids)).toEqual(ids.slice(2))
    expect(await marketplace.journal.replay(ids[0] as string, { status: 'dead' })).toBe(false)
    expect(await marketplace.journal.get('nothing')).toBeUndefined()
  })

  it('parse a payload when it is read, so a list of large ones takes the memory of their texts', async () => {
    const { marketplace, deliver } = await createScene({ store: await engine.freshAddress(), worker: false })
    const sent = ['b1', 'b2'].map((uid) => ({ ...notice(uid, `s-${uid}`), extra: [[['unusual']]] }))
    for (const each of sent) await deliver(each)
    const parse = jest.spyOn(JSON, 'parse')
    const parsed = () => parse.mock.calls.filter(([text]) => text.includes('unusual')).length
    const entries = await marketplace.journal.list()
    const { journal } = await marketplace.businesses.export('b1')
    expect(parsed()).toBe(0)
    expect(entries[0]?.payload).toEqual(sent[1])
    expect(parsed()).toBe(1)
    parse.mockRestore()
    expect(entries.map((entry) => ({ ...entry }))).toEqual(entries)
    expect(JSON.parse(JSON.stringify(entries))).toEqual(entries)
    expect(JSON.parse(JSON.stringify(journal))).toEqual([entries[1]])
    expect(inspect(entries[0])).toBe(inspect({ ...entries[0] }))
  })

  it('show whether the subscription gave access after each change, by the present rules', async () => {
    const { platform, marketplace } = await createScene({ store: await engine.freshAddress() })
    platform.purchase({ business_uid: 'b1', payment: 'succeeded', subscription_uid: 's1' })
    await platform.settled()
    await until('the business has access', () => marketplace.isEntitled('b1'))
    platform.paymentIssue('s1')
    await platform.settled()
    await until('the business is denied', async () => !(await marketplace.isEntitled('b1')))
    const changes = (await marketplace.businesses.history('b1')).filter(({ kind }) => kind === 'change')
    expect(changes).toMatchObject([
      { to: 'suspended', entitledAfter: false },
      { to: 'purchased', entitledAfter: true },
    ])
  })

  it('refuse invalid arguments, and list the valid ones', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform, { store: await engine.freshAddress(), worker: false })
    const of = marketplace as unknown as Loose
    const bad: [string, () => Promise<unknown>, RegExp][] = [
      [
        'a misspelt filter',
        () => of.subscriptions.list({ bussinessUid: 'b' }),
        /businessUid, purchasableUid/,
      ],
      ['a reason', () => of.subscriptions.list({ reason: 'because' }), /reason/],
      ['a limit of 0', () => of.subscriptions.list({ limit: 0 }), /limit/],
      ['a limit of 1,001', () => of.journal.list({ limit: 1_001 }), /limit/],
      ['no filter', () => of.subscriptions.list(null), /list subscriptions/],
      ['no uid', () => of.subscriptions.get(undefined), /subscription_uid/],
      ['a NUL', () => of.subscriptions.list({ after: 'a\0' }), /after/],
      ['a kind', () => of.journal.list({ kind: 'actions' }), /kind/],
      ['a time in words', () => of.journal.list({ since: 'yesterday' }), /since.*ISO 8601/],
      ['a time without an offset', () => of.journal.list({ until: '2026-01-01T00:00' }), /until/],
      ['an id', () => of.journal.get(7), /id must be a text/],
      ['an id with NUL', () => of.journal.replay('a\0'), /id must be a text/],
      ['to replay one of an odd status', () => of.journal.replay('e', { status: 'odd' }), /status/],
      ['to replay all', () => of.journal.replayAll({}), /status/],
      ['to replay actions', () => of.journal.replayAll({ status: 'done', kind: 'action' }), /action/],
      ['to replay a page', () => of.journal.replayAll({ status: 'dead', limit: 5 }), /limit/],
      [
        'a misspelt dry run',
        () => of.journal.replayAll({ status: 'dead' }, { dryrun: true }),
        /limit, dryRun/,
      ],
      ['an action without an actor', () => of.journal.recordAction({ action: 'look' }), /actor/],
      ['an empty erasure', () => of.journal.recordAction({ actor: 'a', action: 'erase' }), /erase/],
      ['a business', () => of.businesses.history({}), /business_uid/],
      ['a place', () => of.businesses.history('b', { before: '1-2' }), /before/],
      ['an invalid time', () => of.businesses.history('b', { before: new Date(Number.NaN) }), /before/],
      ['an erasure without a business', () => of.businesses.erase(null), /business_uid/],
      ['an erasure with unknown options', () => of.businesses.erase('b', { really: true }), /actor/],
      ['an export without a business', () => of.businesses.export(1.5), /business_uid/],
    ]
    for (const [what, call, message] of bad) {
      const error = await call().then(
        () => undefined,
        (reason) => reason,
      )
      expect([what, error?.code, error?.message]).toEqual([
        what,
        'argument_invalid',
        expect.stringMatching(message),
      ])
    }
    expect(await marketplace.journal.list()).toEqual([])
    expect(await marketplace.subscriptions.list({ businessUid: 17 })).toEqual([])
  })
})

type Call = (...given: unknown[]) => Promise<unknown>
interface Loose {
  explain: Call
  businesses: Record<'history' | 'erase' | 'export', Call>
  subscriptions: Record<'list' | 'get', Call>
  journal: Record<'list' | 'get' | 'replay' | 'replayAll' | 'recordAction', Call>
}

describe('a replay of very many entries', () => {
  it('counts the matches up to 10,000, and looks no further', async () => {
    let listed = 0
    const entry = (id: number) => ({ id: `e${id}`, kind: 'event' }) as StoredEntry
    const { replayAll } = createJournalOperations({
      store: {
        async listEntries({ limit = 0 }) {
          listed += limit
          return Array.from({ length: limit }, (_, i) => entry(listed - i))
        },
        getEntry: async () => undefined,
        replayEntry: async () => true,
        recordAction: async () => {},
      },
      clock: systemClock,
      onAction() {},
    })
    expect(await replayAll({ status: 'dead' }, { limit: 2, dryRun: true })).toMatchObject({
      matched: 10_000,
      replayed: 0,
    })
    expect(listed).toBe(10_000)
  })
})
