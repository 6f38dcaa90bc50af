import assert from 'node:assert/strict'
import {
  type Check,
  claimed,
  claimedAll,
  claimOne,
  eventOf,
  fails,
  has,
  isNumber,
  known,
  LONG,
  named,
  only,
  REQUESTED,
  SHORT,
  same,
  shows,
} from '../lab.js'

const change = { id: 'late', key: 'k', businessUid: 'b1', cause: 'event' as const, payload: '"late"' }

/** A caller whose lease has expired, ended or was forged. */
export const FENCING: readonly Check[] = [
  {
    name: 'finishRead: returns false and writes nothing when another holder has the lease',
    async check(lab) {
      const { store } = lab
      await store.requestRefresh(named('s1', 'b1'))
      const late = await claimed(store, { leaseMs: SHORT })
      const holder = await lab.until('the lease runs out', () =>
        claimOne(store, { leaseMs: LONG, except: [], urgencies: REQUESTED }),
      )
      const before = await only(store, 'b1')
      assert.equal(await store.finishRead(late, shows(late, 'purchased', { changes: [change] })), false)
      same(await only(store, 'b1'), before)
      same(await store.listEntries({}), [])
      same(await claimedAll(store), [], 'the late finish ended the lease of the holder')
      assert.equal(await store.finishRead(holder, shows(holder, 'suspended')), true)
      assert.equal(await store.finishRead(late, shows(late, 'purchased', { changes: [change] })), false)
      has(await only(store, 'b1'), { state: 'suspended', pending: false })
      same(await store.listEntries({}), [])
    },
  },
  {
    name: 'finishRead: returns false and writes nothing the second time',
    async check({ store }) {
      await store.requestRefresh(named('s1', 'b1'))
      const claim = await claimed(store)
      assert.equal(await store.finishRead(claim, shows(claim, 'purchased')), true)
      const before = await only(store, 'b1')
      assert.equal(
        await store.finishRead(claim, { ...fails('platform_timeout', null), changes: [change] }),
        false,
      )
      same(await only(store, 'b1'), before)
      same(await store.listEntries({}), [])
    },
  },
  {
    name: 'finishRead: returns false for the lease of another subscription and for a forged one',
    async check({ store }) {
      await store.accept([
        eventOf('s1', { businessUid: 'b1', refresh: named('s1', 'b1') }),
        eventOf('s2', { businessUid: 'b2' }),
      ])
      const [first, second] = [await claimed(store), await claimed(store)]
      for (const leaseToken of [second.leaseToken, 'made up', '']) {
        const forged = { ...first, leaseToken }
        assert.equal(await store.finishRead(forged, shows(forged, 'purchased', { changes: [change] })), false)
      }
      for (const business of ['b1', 'b2']) has(await only(store, business), { state: null, pending: true })
      assert.equal((await store.listEntries({ kind: 'change' })).length, 0)
    },
  },
  {
    name: 'finishRead: a result from before a lapse never replaces a later one',
    async check(lab) {
      const { store } = lab
      await store.requestRefresh(named('s1', 'b1'))
      let late = await claimed(store, { leaseMs: SHORT })
      const finished: boolean[] = []
      for (const state of ['one', 'two', 'three']) {
        const holder = await lab.until('the lease runs out', () =>
          claimOne(store, { leaseMs: SHORT, except: [], urgencies: REQUESTED }),
        )
        finished.push(await store.finishRead(late, shows(late, `late ${state}`)))
        late = holder
      }
      await store.renewRead(late, LONG)
      finished.push(await store.finishRead(late, shows(late, 'last')))
      same(finished, [false, false, false, true])
      assert.equal((await only(store, 'b1')).state, 'last')
    },
  },
  {
    name: 'finishRead: preserves an uninstall, a candidate or a business that was named during the read',
    async check(lab) {
      const { store } = lab
      const next = () => lab.until('it is due', async () => (await claimedAll(store))[0])
      await store.accept([eventOf('s1', { businessUid: 'b1' })])
      const claim = await claimed(store)
      await store.accept([eventOf('s1', { businessUid: 'b2' })])
      await store.requestRefresh({ kind: 'business', businessUid: 'b1', install: UNINSTALL })
      const finish = { ...shows(claim, 'purchased'), clearUninstalled: true, candidate: null }
      assert.equal(await store.finishRead(claim, finish), true)
      const after = await next()
      has(after, { candidateBusinessUid: 'b2' })
      isNumber(after.uninstalledAt, 'uninstalledAt')
      await store.finishRead(after, { ...shows(after, 'purchased', { nextInMs: 0 }), clearUninstalled: true })
      has(await next(), { uninstalledAt: null })
    },
  },
  {
    name: 'finishRead: does not revoke after an install during the read',
    async check(lab) {
      const { store } = lab
      await known(store, 's1', 'purchased', 'b1')
      await store.requestRefresh({ kind: 'business', businessUid: 'b1', install: UNINSTALL })
      const claim = await lab.until('it is due', async () => (await claimedAll(store))[0])
      await store.requestRefresh({
        kind: 'business',
        businessUid: 'b1',
        install: { installed: true, at: null },
      })
      const { record } = claim.subscription
      const found = { record, state: null, gone: 'revoked' } as const
      const finish = { ...fails('token_refused'), settled: true, found, changes: [change] }
      assert.equal(await store.finishRead(claim, finish), false)
      has(await only(store, 'b1'), { state: 'purchased', gone: null, pending: true })
      same(await store.listEntries({ kind: 'change' }), [])
      assert(await lab.until('it is due again', async () => (await claimedAll(store))[0]))
    },
  },
]

const UNINSTALL = { installed: false, at: null }
