import { describe, expect, it } from '@jest/globals'
import type { JournalEntry, Marketplace } from '../../lib/index.js'
import { createScene } from '../support/scene.js'
import { consoleCaller, mountConsole } from '../support/scenes/console.js'

const REASON = 'ticket 812'
const ACTOR = 'otto@example.com (operator)'
const BUSINESS = { business_uid: 'b/1', reason: REASON }

describe('an action of the console', () => {
  const RECORD = { actor: ACTOR, reason: REASON }
  const ACTS: [name: string, input: object, calls: unknown[][]][] = [
    [
      'refresh',
      BUSINESS,
      [
        ['recordAction', { ...RECORD, action: 'refresh', businessUid: 'b/1' }],
        ['refresh', 'b/1'],
      ],
    ],
    [
      'track',
      { ...BUSINESS, subscription_uid: 's1', announce: false },
      [
        ['look', { subscriptionUid: 's1', businessUid: 'b/1' }],
        ['recordAction', { ...RECORD, action: 'track', businessUid: 'b/1', subscriptionUid: 's1' }],
        ['track', { subscriptionUid: 's1', businessUid: 'b/1' }, { announce: false }],
        ['refresh', 'b/1'],
      ],
    ],
    [
      'replay',
      { entryId: 'e1', reason: REASON },
      [
        ['recordAction', { ...RECORD, action: 'replay', entryId: 'e1' }],
        ['replay', 'e1', {}],
      ],
    ],
    [
      'export',
      BUSINESS,
      [
        ['recordAction', { ...RECORD, action: 'export', businessUid: 'b/1' }],
        ['exportText', 'b/1'],
      ],
    ],
  ]

  it.each(ACTS)('records %s before it does it, once and as asked', async (name, input, calls) => {
    const { operator, did } = await stage()
    expect((await operator.act(name, input)).status).toBe(200)
    expect(did).toEqual(calls)
  })

  it.each(ACTS)('does not %s when it cannot record it', async (name, input) => {
    const { operator, did } = await stage({ recordAction: () => Promise.reject(new Error('no disk')) })
    expect((await operator.act(name, input)).status).toBe(500)
    const changes = did.map(([call]) => call).filter((call) => call !== 'look')
    expect(changes).toEqual(['recordAction'])
  })

  it('erases with the actor and the reason, and not when another identifier was typed', async () => {
    const { operator, did } = await stage()
    expect((await operator.act('erase', { ...BUSINESS, typed: 'b/2' })).status).toBe(400)
    expect(did).toEqual([])
    expect((await operator.act('erase', { ...BUSINESS, typed: ' b/1 ' })).status).toBe(200)
    expect(did).toEqual([
      ['exportText', 'b/1'],
      ['erase', 'b/1', RECORD],
    ])
  })

  it('erases nothing where nothing is stored', async () => {
    const { marketplace, app, url } = await createScene({ worker: false })
    mountConsole(app, marketplace)
    const operator = consoleCaller(`${url}/ops`, 'operator')
    const { status, body } = await operator.act('erase', { ...BUSINESS, typed: 'b/1' })
    expect([status, body.code]).toEqual([404, 'nothing_stored'])
    expect(await marketplace.journal.list({ kind: 'action' })).toEqual([])
    expect((await operator.read('stored', { business_uid: 'b/1' })).body).toMatchObject({ isStored: false })
  })

  it.each([
    [{ entitled: true, known: true }, /^This business pays, .* it loses its access/],
    [{ entitled: false, known: true }, /^This business has no access now, so an erasure takes none away\.$/],
    [
      { entitled: false, known: false },
      /^It is not known now whether this business pays\. If it does: .* loses/,
    ],
  ])('says what an erasure means for the answer %j', async (answer, words) => {
    const { operator } = await stage({ explain: async () => answer as never })
    const { sentences } = (await operator.read('stored', { business_uid: 'b/1' })).body
    expect(sentences[1]).toMatch(words)
  })

  it('shows the answer of the refresh, and names the file of an export without a path', async () => {
    const { operator } = await stage()
    expect((await operator.act('refresh', BUSINESS)).body.decision.explanation).toBe('by this refresh')
    const nameOf = ({ headers }: { headers: Headers }) => headers.get('content-disposition')
    expect(nameOf(await operator.act('export', BUSINESS))).toBe('attachment; filename="business-b_1.json"')
    const long = { business_uid: 'x'.repeat(200), reason: REASON }
    expect(nameOf(await operator.act('export', long))?.length).toBeLessThan(110)
  })
})

describe('a replay of the console', () => {
  it('takes the oldest 1,000 of the examined entries, oldest first, and says what it left', async () => {
    const { operator, did } = await stage({}, deadEntries(2_100))
    const selection = { status: 'dead' }
    const { body: preview } = await operator.read('previewReplay', selection)
    expect(did).toEqual([])
    expect(preview).toMatchObject({
      matched: 2_000,
      takes: 1_000,
      businesses: 2,
      oldest: at(101),
      newest: at(1_100),
    })
    expect(preview.sample.map(({ id }: { id: string }) => id)).toEqual([101, 102, 103, 104, 105].map(idOf))
    expect(preview.effect).toMatch(
      /the oldest 1000 of 2000 entries that are dead.*Older entries were not examined/,
    )

    const { body } = await operator.act('replay', { ...selection, reason: REASON })
    const taken = Array.from({ length: 1_000 }, (_, i) => idOf(101 + i))
    expect(body).toEqual({ replayed: 1_000, left: 1_000, hasOlder: true, ids: taken })
    const [record, ...rest] = did
    expect(record).toEqual([
      'recordAction',
      { actor: ACTOR, action: 'replay', reason: `2000 entries that are dead; ${REASON}` },
    ])
    const replayed = rest.filter(([name]) => name === 'replay')
    expect(replayed).toEqual(taken.map((id) => ['replay', id, { status: 'dead' }]))
    // Each of the two businesses has it in its timeline, before its first entry is replayed.
    expect(rest.slice(0, 4).map(([name, given]) => (name === 'replay' ? given : (given as object)))).toEqual([
      expect.objectContaining({ action: 'replay', businessUid: 'b-1', entryId: idOf(101) }),
      idOf(101),
      {
        ...{ actor: ACTOR, action: 'replay', businessUid: 'b-0', entryId: idOf(102) },
        reason: `one of 2000 entries that are dead; ${REASON}`,
      },
      idOf(102),
    ])
    expect(rest).toHaveLength(1_002)
  })

  it.each([
    ['change', 'changes of subscriptions'],
    ['entitlement', 'changes of the access'],
  ] as const)(
    'names entries of the kind %s in words, in the preview and in the journal',
    async (kind, words) => {
      const { operator, did } = await stage({}, deadEntries(2, kind))
      const { body } = await operator.read('attention')
      const selection = { group: body.groups[0].key }
      const { effect } = (await operator.read('previewReplay', selection)).body
      expect(effect).toMatch(new RegExp(`^Passes 2 entries of ${words} to their handlers again`))
      expect(effect).not.toContain('`')
      await operator.act('replay', { ...selection, reason: REASON })
      expect(did[0]).toMatchObject(['recordAction', { reason: `2 entries of ${words}; ${REASON}` }])
    },
  )

  it('shows the answer that a handler of a change would get, null while it is not known', async () => {
    for (const [known, entitled] of [
      [true, true],
      [true, false],
      [false, null],
    ] as const) {
      const explain = async () => ({ known, entitled: entitled ?? false }) as never
      const { operator } = await stage({ explain }, deadEntries(1, 'change'))
      const { body } = await operator.read('previewReplay', { status: 'dead' })
      expect(body.sample).toMatchObject([{ id: idOf(1), entitled }])
    }
  })
})

const idOf = (n: number) => `e-${String(n).padStart(6, '0')}`
const at = (n: number) => new Date(n * 1_000).toISOString()

/** Entries of two businesses, newest first. */
function deadEntries(count: number, kind: JournalEntry['kind'] = 'event'): JournalEntry[] {
  return Array.from({ length: count }, (_, i) => ({
    ...{
      id: idOf(count - i),
      kind,
      name: kind === 'event' ? 'application/installed' : '',
      status: 'dead' as const,
    },
    ...{ payload: {}, cause: null, issues: null, attempts: 1, error: 'Error: no', stack: null, dueAt: null },
    ...{ receivedAt: at(count - i), business_uid: `b-${i % 2}`, subscription_uid: null },
  }))
}

/** A console over a marketplace that notes what it is asked to do, and does none of it. */
async function stage(
  replaced: { recordAction?: Marketplace['journal']['recordAction']; explain?: Marketplace['explain'] } = {},
  entries: JournalEntry[] = [],
) {
  const { marketplace, app, url } = await createScene({ worker: false })
  const did: unknown[][] = []
  const noting =
    (name: string, result: unknown = {}) =>
    (...given: unknown[]) => {
      did.push([name, ...given])
      return Promise.resolve(result) as never
    }
  const decision = await marketplace.explain('b/1')
  const { explain = marketplace.explain, recordAction } = replaced
  const noted = {
    ...marketplace,
    explain,
    journal: {
      ...marketplace.journal,
      recordAction(...given: Parameters<Marketplace['journal']['recordAction']>) {
        noting('recordAction')(...given)
        return recordAction?.(...given) ?? Promise.resolve({ id: 'a1' })
      },
      replay: noting('replay', true),
      get: async (id: string) => entries.find((entry) => entry.id === id),
      async list({ limit = 100, before }: { limit?: number; before?: string }) {
        return entries.filter(({ id }) => before === undefined || id < before).slice(0, limit)
      },
    },
    subscriptions: {
      ...marketplace.subscriptions,
      look: noting('look', { record: {}, failure: null }),
      track: noting('track'),
    },
    businesses: {
      ...marketplace.businesses,
      refresh: noting('refresh', { ...decision, explanation: 'by this refresh' }),
      async *exportText(uid: string | number) {
        did.push(['exportText', uid])
        yield '{"journal":[{}]}'
      },
      erase: noting('erase'),
    },
  }
  mountConsole(app, noted as Marketplace)
  return { operator: consoleCaller(`${url}/ops`, 'operator'), did }
}
