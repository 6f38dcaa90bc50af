import assert from 'node:assert/strict'
import { type Check, DONE, ending, finish, has, idsOf, LATER, leasedEntries, SHORT, same } from '../lab.js'
import { inLine } from './handing-over.js'

const retry = (inMs: number) => ({ kind: 'retry', inMs, error: 'not yet' }) as const

export const ENDING: readonly Check[] = [
  {
    name: 'finishLanes: finishes lanes whose lease is held, no others, and returns their ids',
    async check(lab) {
      const { store } = lab
      await store.accept(inLine('a1', 'b1', 'c1'))
      const stale = await leasedEntries(store, { leaseMs: SHORT, limit: 1 })
      const others = await leasedEntries(store)
      const holder = await lab.until('the lease runs out', async () => (await leasedEntries(store))[0])
      const finishes = [...stale, ...others].map((each) => ending(each, DONE))
      same((await finish(store, finishes)).sort(), ['b1', 'c1'])
      same(await finish(store, finishes), [])
      same(await finish(store, []), [])
      const pending = await store.listEntries({ status: 'pending' })
      same(idsOf(pending), idsOf(stale))
      same(await finish(store, [ending(holder, DONE)]), idsOf(stale))
    },
  },
  {
    name: 'finishLanes: stores the outcome and the error of each entry',
    async check({ store }) {
      await store.accept(inLine('a1', 'b1', 'c1'))
      const results = [DONE, retry(LATER), { kind: 'dead', error: 'it is broken: é €' } as const]
      const leased = await leasedEntries(store)
      await finish(
        store,
        leased.map((each, i) => ending(each, results[i] ?? DONE)),
      )
      const [c1, b1, a1] = await store.listEntries({})
      has(a1, { id: 'a1', status: 'done', error: null, dueAt: null, attempts: 1 })
      has(b1, { id: 'b1', status: 'pending', error: 'not yet', attempts: 1 })
      has(c1, { id: 'c1', status: 'dead', error: 'it is broken: é €', dueAt: null, attempts: 1 })
      const inMs = Date.parse(b1?.dueAt ?? '') - Date.parse(b1?.receivedAt ?? '')
      assert(inMs >= LATER && inMs < LATER + 60_000, `due again ${inMs} ms after it was received`)
      same(await leasedEntries(store), [])
    },
  },
  {
    name: 'finishLanes: finishes an entry and its siblings whatever characters the error contains',
    async check({ store }) {
      await store.accept(inLine('a1', 'b1', 'c1'))
      // A message cut in the middle of a character, and messages that quote a body.
      const errors = ['TypeError: \ud83d', 'Error: a\u0000b', 'Error: \udc00\u001b[0m']
      const leased = await leasedEntries(store)
      const finishes = leased.map((each, i) => ending(each, { kind: 'dead', error: errors[i] ?? '' }))
      same((await finish(store, finishes)).sort(), ['a1', 'b1', 'c1'])
      assert.equal((await store.listEntries({ status: 'dead' })).length, 3)
    },
  },
]
