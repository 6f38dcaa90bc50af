import assert from 'node:assert/strict'
import { type Checks, claimOne, DONE, eventOf, idsOf, named, REQUESTED, same } from './lab.js'

/** Forms that some database treats as equal, as a number, as a pattern or as its own syntax. */
const FORMS = [
  ...['7', '07', '7.0', '1e3', '1000', 'null', 'NULL', 'true', 'undefined', 'NaN', '__proto__'],
  ...['a', 'A', 'a ', ' a', 'ａ', 'é', 'e\u0301', 'ß', 'ss', 'İ', 'i', 'ı', 'constructor'],
  ...["it's", '"quoted"', '`', '\\', '\\u0061', "'; drop table journal; --", '%', '_', '?', '$1', ':name'],
  ...[
    '$$ $1 $mw$',
    `' " \\ \\' "" E'\\\\x'`,
    '; -- /* */ %s ? :a',
    'ü 漢 😀 \u007f \u2028',
    '\\u0000 {"a":1}',
  ],
  ...['{"a":1}', '[1]', '/..%2f@#', '漢字', 'עברית', '🧾', '👩‍👩‍👧', '\u00a0', '\u200b', '\ufeffa', '\ufffd'],
  ...['x'.repeat(254), 'x'.repeat(255), '€'.repeat(255), '🧾'.repeat(127)],
]

/** Identifiers that a store may refuse, but without refusing others. */
const UNFIT = {
  'a NUL': ['s\u0000', 's\u0000s'],
  'half a surrogate pair': ['s\ud800', 's\ud801'],
  'an identifier of 10,000 characters': [`${'y'.repeat(9_999)}a`, `${'y'.repeat(9_999)}b`],
}

export const IDENTIFIERS: Checks = {
  async 'accept: texts of any printable form stay unchanged and distinct'(lab) {
    const events = FORMS.map((uid) =>
      eventOf(uid, { businessUid: uid, id: `of ${uid}`, key: uid, payload: JSON.stringify({ uid }) }),
    )
    await lab.accept(events)
    assert.equal((await lab.counts()).subscriptions, FORMS.length)
    const claims = await lab.claimAll()
    same(idsOf(claims).sort(), [...FORMS].sort())
    for (const claim of claims) assert.equal(await lab.succeed(claim, claim.id), true)
    for (const uid of FORMS) {
      const { subscriptionUid, businessUid, state, record } = await lab.only(uid)
      same([subscriptionUid, businessUid, state, record?.uid], [uid, uid, uid, uid])
      const [entry] = await lab.listEntries({ businessUid: uid })
      same([entry?.id, entry?.payload], [`of ${uid}`, { uid }])
      same(await lab.ids({ subscriptionUid: uid }), [`of ${uid}`])
    }
    const leased = await lab.lease({ limit: 1_000 })
    same(idsOf(leased), idsOf(events))
    same(await lab.end(leased, DONE), idsOf(leased))
  },

  async 'claimReads: excepts businesses with identifiers of any printable form'(lab) {
    await lab.accept(FORMS.map((uid) => eventOf(uid, { businessUid: uid })))
    for (const uid of FORMS) {
      const others = FORMS.filter((form) => form !== uid)
      const claim = await claimOne(lab, { leaseMs: 1_000, except: others, urgencies: REQUESTED })
      assert.equal(claim?.id, uid)
    }
  },

  ...Object.fromEntries(
    Object.entries(UNFIT).map(([what, unfit]): [string, Checks[string]] => [
      `B7, C9 accept: ${what} is stored, or refused alone: its siblings are stored and nothing blocks`,
      async (lab) => {
        const bad = unfit.map((uid, i) => eventOf(uid, { businessUid: `b${i}`, id: `bad ${i}` }))
        const [first, second, third] = ['g1', 'g2', 'g3'].map((uid) => eventOf(uid, { id: uid }))
        const events = [first, ...bad, second, third].flatMap((event) => event ?? [])
        const results = await Promise.allSettled(events.map((event) => lab.accept([event])))
        const stored = events.filter((_, i) => results[i]?.status === 'fulfilled')
        for (const good of ['g1', 'g2', 'g3']) assert(idsOf(stored).includes(good), `${good} was refused`)
        assert.equal((await lab.counts()).subscriptions, stored.length, 'two identifiers have become one')

        const claims = await lab.claimAll()
        same(idsOf(claims).sort(), stored.map(({ subscriptionUid }) => subscriptionUid).sort())
        for (const claim of claims) assert.equal(await lab.succeed(claim, 'purchased'), true)
        same((await lab.ids()).sort(), idsOf(stored).sort())
        assert.equal((await lab.end(await lab.lease(), DONE)).length, stored.length)
      },
    ]),
  ),

  async 'requestRefresh: refuses only the identifiers that cannot be stored'(lab) {
    const requested = ['g1', ...Object.values(UNFIT).flat(), 'g2']
    const results = await Promise.allSettled(requested.map((uid) => lab.requestRefresh(named(uid, 'b1'))))
    const stored = requested.filter((_, i) => results[i]?.status === 'fulfilled')
    same([stored[0], stored.at(-1)], ['g1', 'g2'])
    same(idsOf(await lab.claimAll()).sort(), stored.sort())
  },
}
