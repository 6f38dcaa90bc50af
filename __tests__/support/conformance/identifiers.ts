import assert from 'node:assert/strict'
import {
  type Check,
  claimedAll,
  claimOne,
  DONE,
  ending,
  eventOf,
  finish,
  idsOf,
  leasedEntries,
  named,
  only,
  REQUESTED,
  same,
  shows,
} from './lab.js'

/** Forms that some database treats as equal, as a number, as a pattern or as its own syntax. */
const FORMS = [
  ...[
    '7',
    '07',
    '7.0',
    '1e3',
    '1000',
    'null',
    'NULL',
    'true',
    'undefined',
    'NaN',
    '__proto__',
    'constructor',
  ],
  ...['a', 'A', 'a ', ' a', 'ａ', 'é', 'e\u0301', 'ß', 'ss', 'İ', 'i', 'ı'],
  ...["it's", '"quoted"', '`', '\\', '\\u0061', "'; drop table journal; --", '%', '_', '?', '$1', ':name'],
  ...['{"a":1}', '[1]', '/..%2f@#', '漢字', 'עברית', '🧾', '👩‍👩‍👧', '\u00a0', '\u200b', '\ufeffa', '\ufffd'],
  ...['x'.repeat(254), 'x'.repeat(255), '€'.repeat(255), '🧾'.repeat(127)],
]

/** Identifiers that an adapter may refuse, but without refusing others. */
const UNFIT = {
  'a NUL': ['s\u0000', 's\u0000s'],
  'half a surrogate pair': ['s\ud800', 's\ud801'],
  'an identifier of 10,000 characters': [`${'y'.repeat(9_999)}a`, `${'y'.repeat(9_999)}b`],
}

export const IDENTIFIERS: readonly Check[] = [
  {
    name: 'accept: identifiers of any printable form stay unchanged and distinct',
    async check({ store }) {
      const events = FORMS.map((uid) => eventOf(uid, { businessUid: uid, id: `of ${uid}`, key: uid }))
      await store.accept(events)
      assert.equal((await store.counts()).subscriptions, FORMS.length)
      const claims = await claimedAll(store)
      same(idsOf(claims).sort(), [...FORMS].sort())
      for (const claim of claims) assert.equal(await store.finishRead(claim, shows(claim, claim.id)), true)
      for (const uid of FORMS) {
        const { subscriptionUid, businessUid, state, record } = await only(store, uid)
        same([subscriptionUid, businessUid, state, record?.uid], [uid, uid, uid, uid])
        same(idsOf(await store.listEntries({ businessUid: uid })), [`of ${uid}`])
        same(idsOf(await store.listEntries({ subscriptionUid: uid })), [`of ${uid}`])
      }
      const leased = await leasedEntries(store, { limit: 1_000 })
      same(idsOf(leased), idsOf(events))
      const done = await finish(
        store,
        leased.map((each) => ending(each, DONE)),
      )
      same(done.sort(), idsOf(events).sort())
    },
  },
  {
    name: 'claimReads: excepts businesses with identifiers of any printable form',
    async check({ store }) {
      await store.accept(FORMS.map((uid) => eventOf(uid, { businessUid: uid })))
      for (const uid of FORMS) {
        const others = FORMS.filter((form) => form !== uid)
        const claim = await claimOne(store, { leaseMs: 1_000, except: others, urgencies: REQUESTED })
        assert.equal(claim?.id, uid)
      }
    },
  },
  ...Object.entries(UNFIT).map(
    ([what, unfit]): Check => ({
      name: `accept: ${what} is stored, or refused alone: its siblings are stored and nothing blocks`,
      async check({ store }) {
        const bad = unfit.map((uid, i) => eventOf(uid, { businessUid: `b${i}`, id: `bad ${i}` }))
        const good = ['g1', 'g2', 'g3'].map((uid) => eventOf(uid, { id: uid }))
        const [first, second, third] = good.map((event) => () => store.accept([event]))
        const calls = [first?.(), ...bad.map((event) => store.accept([event])), second?.(), third?.()]
        const results = await Promise.allSettled(calls)
        same(
          [0, bad.length + 1, bad.length + 2].map((i) => results[i]?.status),
          ['fulfilled', 'fulfilled', 'fulfilled'],
        )
        const stored = bad.filter((_, i) => results[i + 1]?.status === 'fulfilled')
        const uids = [...good, ...stored].map(({ subscriptionUid }) => subscriptionUid)
        assert.equal((await store.counts()).subscriptions, uids.length, 'two identifiers have become one')

        const claims = await claimedAll(store)
        same(idsOf(claims).sort(), uids.sort())
        for (const claim of claims)
          assert.equal(await store.finishRead(claim, shows(claim, 'purchased')), true)
        same(idsOf(await store.listEntries({})).sort(), [...good, ...stored].map(({ id }) => id).sort())
        const leased = await leasedEntries(store)
        assert.equal(
          (
            await finish(
              store,
              leased.map((each) => ending(each, DONE)),
            )
          ).length,
          uids.length,
        )
      },
    }),
  ),
  {
    name: 'requestRefresh: refuses only the identifiers that cannot be stored',
    async check({ store }) {
      const unfit = Object.values(UNFIT).flat()
      const requested = ['g1', ...unfit, 'g2']
      const results = await Promise.allSettled(requested.map((uid) => store.requestRefresh(named(uid, 'b1'))))
      const good = [results[0], results.at(-1)].map((result) => result?.status)
      same(good, ['fulfilled', 'fulfilled'])
      const stored = requested.filter((_, i) => results[i]?.status === 'fulfilled')
      same(idsOf(await claimedAll(store)).sort(), stored.sort())
    },
  },
]
