import assert from 'node:assert/strict'
import type { NewEvent } from '../../../../lib/store/port/store.js'
import {
  type Check,
  claimed,
  claimedAll,
  eventOf,
  has,
  idsOf,
  isNumber,
  leasedEntries,
  leasedEntry,
  same,
} from '../lab.js'

export const ACCEPTING: readonly Check[] = [
  {
    name: 'accept: stores an event and requests a read of its subscription',
    async check({ store }) {
      const event = eventOf('s1', { businessUid: 'b1' })
      await store.accept([event])
      has(await store.counts(), { pending: 1, subscriptions: 1, requested: 1 })
      same(idsOf(await store.listEntries({})), [event.id])
      const [subscription] = await store.subscriptionsOf('b1')
      has(subscription, { subscriptionUid: 's1', record: null, state: null, pending: true, failure: null })
    },
  },
  {
    name: 'accept: stores every field of an event unchanged',
    async check({ store }) {
      // The text itself is stored: white space, the order of keys, a repeated key, escapes, numbers too large for a float.
      const payload =
        '{ "b": 1, "a": "\\u0000 \\ud83d \'\\"\\\\ € 🧾", "a": 1e400, "n": 12345678901234567890 }'
      const full = eventOf('s1', { payload, name: 'application/installed' })
      const bare: NewEvent = {
        id: 'bare',
        kind: 'unrecognised',
        name: '',
        key: 'bare',
        businessUid: null,
        subscriptionUid: null,
        payload: 'null',
        issues: ['entity_name: expected "a", got \'b\'', 'data: missing'],
        refresh: null,
      }
      await store.accept([full, bare])
      const [first, second] = await leasedEntries(store)
      for (const [stored, { refresh: _, ...given }] of [[first, full] as const, [second, bare] as const]) {
        has(stored, { ...given, issues: given.issues && [...given.issues], attempt: 1, lapses: 0 })
        isNumber(stored?.receivedAt, 'receivedAt')
      }
    },
  },
  {
    name: 'accept: ignores an event whose id is already stored',
    async check({ store }) {
      const once = eventOf('s1', { payload: '"first"' })
      const twice = { ...once, payload: '"second"' }
      await store.accept([once])
      await store.accept([twice, eventOf('s2')])
      await store.accept([twice])
      const stored = await store.listEntries({ subscriptionUid: 's1' })
      same(
        stored.map(({ id, payload }) => [id, payload]),
        [[once.id, 'first']],
      )
      assert.equal((await store.counts()).pending, 2)
    },
  },
  {
    name: 'accept: stores an event once if it occurs several times in one call or in concurrent calls',
    async check({ store }) {
      const [a, b] = [eventOf('s1'), eventOf('s2')]
      await store.accept([a, a, b, a])
      const c = eventOf('s3')
      await Promise.all(Array.from({ length: 10 }, () => store.accept([c])))
      same(idsOf(await store.listEntries({})).sort(), idsOf([a, b, c]).sort())
    },
  },
  {
    name: 'accept: stores the other events of a batch with an id that is already stored',
    async check({ store }) {
      const a = eventOf('s1')
      await store.accept([a])
      const [b, c] = [eventOf('s2'), eventOf('s3')]
      await Promise.all([store.accept([b, a]), store.accept([a]), store.accept([a, c])])
      same(idsOf(await store.listEntries({})).sort(), idsOf([a, b, c]).sort())
      has(await store.counts(), { subscriptions: 3 })
    },
  },
  {
    name: 'accept: resolves and stores nothing for an empty list',
    async check({ store }) {
      await store.accept([])
      assert.equal((await store.counts()).pending, 0)
    },
  },
  {
    name: 'accept: stores a thousand events of one call in their order',
    async check({ store }) {
      const events = Array.from({ length: 1_000 }, (_, i) => eventOf(`s${i % 7}`, { key: `k${i}` }))
      await store.accept(events)
      same(idsOf(await store.listEntries({ limit: 1_000 })).reverse(), idsOf(events))
      has(await store.counts(), { pending: 1_000, subscriptions: 7 })
    },
  },
  {
    name: 'accept: stores the events of two hundred concurrent calls',
    async check({ store }) {
      const events = Array.from({ length: 200 }, (_, i) => eventOf(`s${i}`))
      await Promise.all(events.map((event) => store.accept([event])))
      same(idsOf(await store.listEntries({ limit: 1_000 })).sort(), idsOf(events).sort())
      assert.equal((await store.counts()).subscriptions, 200)
    },
  },
  {
    name: 'accept: counts every event of one subscription, in one call and in concurrent calls, and makes one lease due',
    async check({ store }) {
      await store.accept([eventOf('s1'), eventOf('s1'), eventOf('s1')])
      await Promise.all(Array.from({ length: 47 }, () => store.accept([eventOf('s1')])))
      const claims = await claimedAll(store)
      same(
        claims.map(({ id, generation, settledGeneration }) => [id, generation, settledGeneration]),
        [['s1', 50, 0]],
      )
    },
  },
  {
    name: 'accept: stores an event without a refresh request and requests no read',
    async check({ store }) {
      await store.accept([eventOf('s1', { refresh: null })])
      has(await store.counts(), { pending: 1, subscriptions: 0, requested: 0 })
      assert.equal((await leasedEntry(store)).subscriptionUid, 's1')
    },
  },
  {
    name: 'accept: an event during a read increments the generation and does not allow a second lease',
    async check({ store }) {
      await store.accept([eventOf('s1')])
      const claim = await claimed(store)
      await store.accept([eventOf('s1')])
      same(await claimedAll(store), [])
      assert.equal(claim.generation, 1)
    },
  },
]
