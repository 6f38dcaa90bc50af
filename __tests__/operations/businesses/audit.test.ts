import { createHash } from 'node:crypto'
import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../../lib/base/clock.js'
import type { Logger, Marketplace } from '../../../lib/index.js'
import { createErase } from '../../../lib/operations/businesses/erase.js'
import { createJournalOperations } from '../../../lib/operations/journal/journal-operations.js'
import { TABLES } from '../../../lib/postgres/rights.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { notice } from '../../support/events.js'
import { createScene, openMarketplace } from '../../support/scene.js'
import { until } from '../../support/until.js'

const ERASED = 'The.Erased'
const SUBSCRIPTION = 'of The.Erased (1)'
const GONE = 'a-subscription-that-nobody-knows'
/** As the page on privacy explains it. */
const HASH = `sha256:${createHash('sha256').update(ERASED).digest('hex')}`

describe.each(ENGINE_NAMES)('K157 the audit of an erased business on %s', (name) => {
  const engine = useEngine(name)

  it('stays with names and reasons, without its uid and those of its subscriptions in any table', async () => {
    const store = await engine.freshAddress()
    const { platform, marketplace } = await createScene({ store })
    await purchase(platform, marketplace)
    await actOn(marketplace)
    expect(JSON.stringify(await tracesOf([ERASED, SUBSCRIPTION, GONE], store, marketplace))).not.toBe('[]')

    const reason = `asked by ${ERASED.toUpperCase()} for ${SUBSCRIPTION}`
    const erased = await marketplace.businesses.erase(ERASED, { actor: 'ada', reason })
    expect(erased.auditUid).toBe(HASH)
    const audit = [
      ['erase', 'ada', `asked by ${HASH} for [erased]`],
      ['track', 'otto', 'ticket 812'],
      ['replay', 'otto', `<${HASH}>,[erased]`],
      ['export', 'ada', null],
    ]
    const expectAudit = async (of: Marketplace) => {
      const history = await of.businesses.history(ERASED)
      expect(
        history.map((item) => (item.kind === 'action' ? [item.action, item.actor, item.reason] : item)),
      ).toEqual(audit)
      expect(new Set(history.map(({ subscription_uid }) => subscription_uid))).toEqual(new Set([null]))
      for (const filter of [{ businessUid: ERASED }, { businessUid: HASH }]) {
        const entries = await of.journal.list({ ...filter, kind: 'action' })
        expect(entries.map((entry) => [entry.name, entry.business_uid])).toEqual(
          audit.map(([action]) => [action, HASH]),
        )
      }
      expect(await of.businesses.export(ERASED)).toMatchObject({ subscriptions: [], candidateOf: [] })
    }
    await expectAudit(marketplace)
    const pages = await marketplace.journal.list({ businessUid: ERASED, limit: 2 })
    const rest = await marketplace.journal.list({ businessUid: ERASED, before: pages.at(-1)?.id as string })
    expect([...pages, ...rest].map((entry) => entry.name)).toEqual(audit.map(([action]) => action))

    // An action on several businesses loses its names, one of another business only the field, and nothing else.
    const several = (await marketplace.journal.list({ kind: 'action', name: 'backup' }))[0]
    expect(several?.payload).toMatchObject({ reason: `not [erased] but The.Erasing, of ${HASH}` })
    expect(await reasonsOf(marketplace, 'The.Erasing')).toEqual(['1 of 2'])
    await marketplace.close()
    expect(await tracesOf([ERASED, SUBSCRIPTION, GONE], store)).toEqual([])

    // A second erasure adds itself.
    const again = openMarketplace(platform, { store })
    const { rows } = await again.businesses.erase(ERASED, { actor: 'ada', reason: 'again' })
    expect(rows).toBe(0)
    audit.unshift(['erase', 'ada', 'again'])
    await expectAudit(again)
  })

  it('is found beside what the business does later, page by page', async () => {
    const { platform, marketplace } = await createScene({ store: await engine.freshAddress() })
    await purchase(platform, marketplace)
    await marketplace.journal.recordAction({ actor: 'ada', action: 'export', businessUid: ERASED })
    await marketplace.businesses.erase(ERASED)
    platform.uninstall(ERASED)
    await platform.settled()
    await marketplace.settled()
    const kinds: string[] = []
    for (let before: string | undefined; ; ) {
      const [item] = await marketplace.businesses.history(ERASED, { limit: 1, ...(before ? { before } : {}) })
      if (!item) break
      kinds.push(item.kind === 'action' ? item.action : item.kind)
      before = item.id
    }
    expect(kinds).toEqual([...kinds.slice(0, -2), 'erase', 'export'])
    expect(kinds).toContain('delivery')
  })

  it('is not found in the entries of a business that has the hash as its uid', async () => {
    const { marketplace, deliver } = await createScene({ store: await engine.freshAddress() })
    await marketplace.businesses.erase(ERASED)
    const data = { business_id: HASH, app_code_name: 'ours' }
    await deliver({ entity_name: 'application', event_type: 'installed', data })
    const kinds = async (businessUid: string) =>
      (await marketplace.journal.list({ businessUid })).map(({ kind }) => kind)
    expect(await kinds(HASH)).toEqual(['event', 'action'])
    expect(await kinds(ERASED)).toEqual(['action'])
    expect(await marketplace.businesses.history(ERASED)).toHaveLength(1)
  })

  it('stays where it is found by the uid, because an erasure of its hash is refused', async () => {
    const { marketplace } = await createScene({ store: await engine.freshAddress() })
    const { auditUid } = await marketplace.businesses.erase(ERASED, { actor: 'ada' })
    for (const uid of [auditUid, auditUid.toUpperCase()])
      await expect(marketplace.businesses.erase(uid)).rejects.toMatchObject({
        code: 'argument_invalid',
        message: expect.stringContaining('the auditUid of an erased business'),
      })
    expect(await marketplace.businesses.history(ERASED)).toMatchObject([{ action: 'erase', actor: 'ada' }])
  })

  it('is removed from all actions, also when many lie between them and the business has many subscriptions', async () => {
    const { store, sql } = await openStoreWithSql(await engine.freshAddress())
    const numbers = (to: number) =>
      `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${to})`
    await sql(`insert into journal
      (id, kind, name, topic, key, business_uid, payload, status, attempts, received_at, settled_at)
      ${numbers(1_201)} select 'a' || n, 'action', 'look', 'action', 'a' || n, null,
        '{"reason":"uid-' || (n * 2) || ' and uid-9999"}', 'done', 0, n, n from numbers`)
    await sql(`insert into subscriptions (subscription_uid, business_uid, generation, settled_generation, urgency, unread,
        verifying, lapses, created_at)
      ${numbers(2_402)} select 'uid-' || n, 'the-erased', 0, 0, 4, 0, 0, 0, 1 from numbers`)
    await store.erase('the-erased', {
      id: 'erasure',
      name: 'erase',
      businessUid: 'the-erased',
      payload: '{}',
    })
    const rows = await sql<{ payload: string }>(
      `select distinct payload from journal where name = 'look' -- returning`,
    )
    expect(rows).toEqual([{ payload: '{"reason":"[erased] and uid-9999"}' }])
  }, 60_000)
})

describe.each(ENGINE_NAMES)('K437 the audit of the others, when a business is erased on %s', (name) => {
  const engine = useEngine(name)

  it('stays as it is, whatever a sender names as a subscription of the erased one', async () => {
    const { platform, marketplace, deliver } = await createScene({ store: await engine.freshAddress() })
    const { journal, businesses } = marketplace
    const words = ['eve@example.com', 'export', 'replay', 'ticket 7', 'ticket', 'erase', 'the owner', 's-2']
    await purchase(platform, marketplace)
    const eve = { actor: 'eve@example.com', reason: 'ticket 7 of the owner' }
    await journal.recordAction({ ...eve, action: 'export', businessUid: 'biz-2', subscriptionUid: 's-2' })
    await journal.recordAction({ ...eve, action: 'replay' })
    const [hidden, whole] = [`<${ERASED}> and ${SUBSCRIPTION}`, `${ERASED} in biz-2`]
    await journal.recordAction({ ...eve, action: 'look', businessUid: 'biz-2', reason: whole })
    const others = await journal.list({ kind: 'action' })
    await journal.recordAction({
      ...eve,
      action: 'export',
      businessUid: ERASED,
      reason: `${eve.reason}: ${hidden}`,
    })
    for (const word of words) await deliver(notice(ERASED, word))
    await marketplace.settled()
    expect((await businesses.export(ERASED)).subscriptions).toHaveLength(words.length + 1)

    await businesses.erase(ERASED, eve)
    const left = await journal.list({ kind: 'action' })
    expect(left.slice(2)).toEqual(others)
    expect(left.slice(0, 2).map(({ payload }) => payload)).toMatchObject([
      { ...eve, action: 'erase' },
      { ...eve, action: 'export', reason: `${eve.reason}: <${HASH}> and [erased]` },
    ])
  })

  it('keeps who did what, also when the uid is the name of a person or of an action', async () => {
    const lines: object[] = []
    const logger = { info: (fields: object) => void lines.push(fields), warn() {}, error() {} }
    const { marketplace } = await createScene({ store: await engine.freshAddress(), logger, worker: false })
    const { journal, businesses } = marketplace
    const uids = ['eve@example.com', 'export', 'erase']
    for (const businessUid of [...uids, undefined])
      await journal.recordAction({
        ...{ actor: 'eve@example.com', action: 'export', reason: 'for eve@example.com' },
        ...(businessUid === undefined ? {} : { businessUid }),
      })
    for (const uid of uids) await businesses.erase(uid, { actor: 'eve@example.com' })
    const actions = [...Array(3).fill('erase'), ...Array(4).fill('export')]
    const kept = await journal.list({ kind: 'action' })
    expect(kept.map((entry) => [entry.name, entry.payload])).toMatchObject(
      actions.map((action) => [action, { actor: 'eve@example.com', action }]),
    )
    // Its own reason, and that of the action on several, have lost the uid.
    expect(JSON.stringify(kept).match(/for eve@example\.com/g)).toHaveLength(2)
    expect(await journal.list({ kind: 'action', name: 'export' })).toHaveLength(4)
    expect(lines.filter((line) => 'action' in line)).toMatchObject(
      actions.toReversed().map((action) => ({ actor: 'eve@example.com', action })),
    )
  })
})

describe('the line of an action in the logger', () => {
  it('has the person, the action and the reason, and a hash in place of the business', async () => {
    const lines: unknown[][] = []
    const at = (level: string) => (fields: object, message: string) =>
      void lines.push([level, fields, message])
    const logger: Logger = { info: at('info'), warn: at('warn'), error: at('error') }
    const { marketplace } = await createScene({ logger, worker: false })
    const { id } = await marketplace.journal.recordAction({
      ...{ actor: 'ada', action: 'export', businessUid: ERASED, entryId: 'e1' },
      reason: `request of ${ERASED}`,
    })
    await marketplace.journal.recordAction({ actor: 'otto', action: 'replay', reason: '3 entries' })
    await marketplace.businesses.erase(ERASED, { actor: 'ada', reason: 'request 12' })
    const common = { area: 'audit', code: 'action' }
    const message = 'A person did something that the journal records'
    expect(lines.filter(([level]) => level === 'info')).toEqual([
      [
        'info',
        {
          ...{ ...common, id, action: 'export', actor: 'ada', entry_id: 'e1' },
          ...{ reason: `request of ${HASH}`, business_uid: HASH },
        },
        message,
      ],
      [
        'info',
        { ...common, id: expect.any(String), action: 'replay', actor: 'otto', reason: '3 entries' },
        message,
      ],
      [
        'info',
        {
          ...{ ...common, id: expect.any(String), action: 'erase', actor: 'ada' },
          ...{ reason: 'request 12', business_uid: HASH },
        },
        message,
      ],
    ])
    expect(JSON.stringify(lines)).not.toContain(ERASED)
  })

  it('also comes of an erasure that fails, which may be half done, and not of an action that is not recorded', async () => {
    const recorded: string[] = []
    const fails = () => Promise.reject(new Error('the disk is full'))
    const options = {
      store: { erase: fails, recordAction: fails } as never,
      clock: systemClock,
      onAction: ({ name }: { name: string }) => void recorded.push(name),
    }
    await expect(createErase(options)(ERASED)).rejects.toThrow('the disk is full')
    const { recordAction } = createJournalOperations(options)
    await expect(recordAction({ actor: 'ada', action: 'look' })).rejects.toThrow('the disk is full')
    expect(recorded).toEqual(['erase'])
  })
})

/** The business buys, and its subscription is read. */
async function purchase(platform: Awaited<ReturnType<typeof createScene>>['platform'], of: Marketplace) {
  platform.purchase({ business_uid: ERASED, payment: 'succeeded', subscription_uid: SUBSCRIPTION })
  platform.install(ERASED)
  await platform.settled()
  await until('the purchase is read', () => of.isEntitled(ERASED))
}

/** Actions on the business and on others, oldest first, as the console, the command line and an app record them. */
async function actOn({ journal }: Marketplace) {
  const typed = `<${ERASED}>,${SUBSCRIPTION.toLowerCase()}`
  const [entry] = await journal.list({ businessUid: ERASED, kind: 'event', limit: 1 })
  await journal.recordAction({ actor: 'ada', action: 'export', businessUid: ERASED })
  await journal.recordAction({ actor: 'otto', action: 'replay', entryId: entry?.id as string, reason: typed })
  await journal.recordAction({
    ...{ actor: 'otto', action: 'track', businessUid: ERASED, subscriptionUid: GONE },
    reason: 'ticket 812',
  })
  const mixed = `not ${SUBSCRIPTION} but The.Erasing, of ${ERASED}`
  await journal.recordAction({
    ...{ actor: 'otto', action: 'backup' },
    reason: mixed,
  })
  await journal.recordAction({
    ...{ actor: 'otto', action: 'look', businessUid: 'The.Erasing', subscriptionUid: SUBSCRIPTION },
    reason: '1 of 2',
  })
}

async function reasonsOf({ journal }: Marketplace, businessUid: string): Promise<unknown[]> {
  const entries = await journal.list({ businessUid, kind: 'action' })
  return entries.map(({ payload }) => (payload as { reason: unknown }).reason)
}

/** The rows that contain one of the texts. Without `open`, nobody uses the database. */
async function tracesOf(texts: string[], address: string, open?: Marketplace): Promise<unknown[]> {
  if (open) return (await open.journal.list()).filter((row) => texts.some((text) => json(row).includes(text)))
  const { sql, store } = await openStoreWithSql(address)
  const found: unknown[] = []
  for (const table of TABLES)
    for (const row of await sql<Record<string, unknown>>(`select * from ${table} -- returning`))
      if (texts.some((text) => json(row).includes(text))) found.push([table, row])
  await store.close()
  return found
}

function json(row: unknown): string {
  return JSON.stringify(row)
}
