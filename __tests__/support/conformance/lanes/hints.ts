import assert from 'node:assert/strict'
import type { Hint } from '../../../../lib/store/port/store.js'
import {
  type Check,
  claimed,
  claimOne,
  eventOf,
  LATER,
  named,
  only,
  REQUESTED,
  SHORT,
  same,
  shows,
} from '../lab.js'

export const HINTS: readonly Check[] = [
  {
    name: 'subscribe: a hint follows when accepted, requested, decided and replayed rows can be read',
    async check({ store }) {
      const hints: Hint[] = []
      store.subscribe((hint) => void hints.push(hint))
      const expectHint = async (kind: Hint['kind'], businessUid?: string | null) => {
        // Null stands for every business.
        const matches = (hint: Hint) =>
          hint.kind === kind &&
          ('businessUid' in hint ? [businessUid, null].includes(hint.businessUid) : true)
        assert(hints.splice(0).some(matches), `no hint "${kind}" of ${businessUid}`)
      }
      await store.accept([eventOf('s1', { id: 'e1', businessUid: 'b1' })])
      await expectHint('requested', 'b1')
      await store.accept([eventOf('s9', { businessUid: 'b9', refresh: null })])
      await expectHint('journal')
      await store.requestRefresh(named('s1', 'b1'))
      await expectHint('requested', 'b1')
      const claim = await claimed(store)
      hints.splice(0)
      const seen: unknown[] = []
      const stop = store.subscribe((hint) => {
        if (hint.kind === 'decided') seen.push(store.subscriptionsOf('b1'))
      })
      await store.finishRead(claim, shows(claim, 'purchased'))
      await expectHint('decided', 'b1')
      // A late hint would have it read from a store that is closed.
      stop()
      const [[first]] = (await Promise.all(seen)) as [[{ state: string }]]
      assert.equal(first.state, 'purchased', 'the hint came before the row could be read')
      await store.accept([eventOf('s2', { id: 'e2', businessUid: 'b2' })])
      const second = await claimed(store)
      hints.splice(0)
      const change = { id: 'c1', key: 'c1', businessUid: 'b', cause: 'event' as const, payload: '1' }
      await store.finishRead(second, shows(second, 'purchased', { changes: [change] }))
      await expectHint('journal')
      await store.replayEntry('c1')
      await expectHint('journal')
    },
  },
  {
    name: 'subscribe: every listener gets hints until it stops, and only for commits',
    async check(lab) {
      const { store } = lab
      const [first, second]: [Hint[], Hint[]] = [[], []]
      const stop = store.subscribe((hint) => void first.push(hint))
      store.subscribe((hint) => void second.push(hint))
      await store.requestRefresh(named('s1', 'b1'))
      same([first.length > 0, second.length > 0], [true, true])
      stop()
      stop()
      const late = await claimed(store, { leaseMs: SHORT })
      const holder = await lab.until('the lease runs out', () =>
        claimOne(store, { leaseMs: LATER, except: [], urgencies: REQUESTED }),
      )
      first.splice(0)
      second.splice(0)
      assert.equal(await store.finishRead(late, shows(late, 'purchased')), false)
      same(
        second.filter(({ kind }) => kind === 'decided'),
        [],
      )
      await store.finishRead(holder, shows(holder, 'purchased'))
      assert.equal((await only(store, 'b1')).state, 'purchased')
      same([first.length, second.length > 0], [0, true])
    },
  },
]
