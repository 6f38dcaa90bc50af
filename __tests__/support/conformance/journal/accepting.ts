import assert from 'node:assert/strict'
import type { NewEvent } from '../../../../lib/store/port/store.js'
import { type Checks, eventOf, has, idsOf, isNumber, same } from '../lab.js'

export const ACCEPTING: Checks = {
  async 'accept: stores an event and requests a read of its subscription'(lab) {
    const event = eventOf('s1', { businessUid: 'b1' })
    await lab.accept([event])
    has(await lab.counts(), { pending: 1, subscriptions: 1, requested: 1 })
    same(await lab.ids(), [event.id])
    has(await lab.only('b1'), {
      subscriptionUid: 's1',
      record: null,
      state: null,
      pending: true,
      failure: null,
    })
  },

  async 'accept: stores every field of an event unchanged'(lab) {
    // The text itself is stored: white space, the order of keys, a repeated key, escapes, numbers too large for a float.
    const payload = '{ "b": 1, "a": "\\u0000 \\ud83d \'\\"\\\\ € 🧾", "a": 1e400, "n": 12345678901234567890 }'
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
    await lab.accept([full, bare])
    const leased = await lab.lease()
    for (const [i, { refresh: _, ...given }] of [full, bare].entries()) {
      has(leased[i], { ...given, issues: given.issues && [...given.issues], attempt: 1, lapses: 0 })
      isNumber(leased[i]?.receivedAt, 'receivedAt')
    }
  },

  async 'accept: ignores an event whose id is already stored'(lab) {
    const once = eventOf('s1', { payload: '"first"' })
    const twice = { ...once, payload: '"second"' }
    await lab.accept([once])
    await lab.accept([twice, eventOf('s2')])
    await lab.accept([twice])
    const stored = await lab.listEntries({ subscriptionUid: 's1' })
    same(
      stored.map(({ id, payload }) => [id, payload]),
      [[once.id, 'first']],
    )
    assert.equal((await lab.counts()).pending, 2)
  },

  async 'C9 accept: stores an event once, in one call or in several at once, and the others of its batch'(
    lab,
  ) {
    const [a, b, c] = [eventOf('s1'), eventOf('s2'), eventOf('s3')]
    await lab.accept([a, a, a])
    await Promise.all([lab.accept([b, a]), lab.accept([a]), lab.accept([a, c])])
    const d = eventOf('s4')
    await Promise.all(Array.from({ length: 10 }, () => lab.accept([d])))
    same((await lab.ids()).sort(), idsOf([a, b, c, d]).sort())
    has(await lab.counts(), { subscriptions: 4 })
  },

  async 'accept: resolves and stores nothing for an empty list'(lab) {
    await lab.accept([])
    same(await lab.ids(), [])
  },

  async 'accept: stores a thousand events of one call in their order'(lab) {
    const events = Array.from({ length: 1_000 }, (_, i) => eventOf(`s${i % 7}`, { key: `k${i}` }))
    await lab.accept(events)
    same((await lab.ids({ limit: 1_000 })).reverse(), idsOf(events))
    has(await lab.counts(), { pending: 1_000, subscriptions: 7 })
  },

  async 'C10 accept: counts every event of one subscription, in one call and in concurrent calls, and makes one lease due'(
    lab,
  ) {
    await lab.accept([eventOf('s1'), eventOf('s1'), eventOf('s1')])
    await Promise.all(Array.from({ length: 47 }, () => lab.accept([eventOf('s1')])))
    const [claim, ...others] = await lab.claimAll()
    has(claim, { id: 's1', generation: 50, settledGeneration: 0 })
    same(others, [])
  },

  async 'accept: stores an event without a refresh request and requests no read'(lab) {
    await lab.accept([eventOf('s1', { refresh: null })])
    has(await lab.counts(), { pending: 1, subscriptions: 0, requested: 0 })
    assert.equal((await lab.leaseOne()).subscriptionUid, 's1')
  },

  async 'accept: an event during a read does not allow a second lease'(lab) {
    await lab.accept([eventOf('s1')])
    has(await lab.claim(), { generation: 1 })
    await lab.accept([eventOf('s1')])
    same(await lab.claimAll(), [])
  },
}
