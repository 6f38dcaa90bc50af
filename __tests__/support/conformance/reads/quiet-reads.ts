import assert from 'node:assert/strict'
import type { ReadClaim, RefreshRequest, Store } from '../../../../lib/store/port/store.js'
import {
  type Check,
  claimed,
  claimedAll,
  eventOf,
  fails,
  has,
  known,
  type Lab,
  named,
  only,
  same,
  shows,
} from '../lab.js'

const quietly = (subscriptionUid: string, businessUid?: string): RefreshRequest => ({
  ...(named(subscriptionUid, businessUid) as RefreshRequest & { kind: 'subscription' }),
  quiet: true,
})

export const QUIET_READS: readonly Check[] = [
  {
    name: 'quiet: the first successful read makes no change; later reads do',
    async check(lab) {
      const { store } = lab
      await store.requestRefresh(quietly('s1', 'b1'))
      has(await only(store, 'b1'), { quiet: true, record: null })
      assert.equal(await finishes(store, await claimed(store), 'purchased'), true)
      has(await only(store, 'b1'), { quiet: false, state: 'purchased' })
      same(await changesOf(store), [])
      await store.requestRefresh(quietly('s1', 'b1'))
      await finishes(store, await due(lab), 'canceled')
      same(await changesOf(store), ['s1 canceled'])
    },
  },
  {
    name: 'quiet: outlives failed reads',
    async check(lab) {
      const { store } = lab
      await store.requestRefresh(quietly('s1', 'b1'))
      await store.finishRead(await claimed(store), fails('platform_timeout', 0))
      has(await only(store, 'b1'), { quiet: true })
      await finishes(store, await due(lab), 'purchased')
      same(await changesOf(store), [])
    },
  },
  {
    name: 'quiet: outlives a close',
    needs: 'reopen',
    async check(lab) {
      await lab.store.requestRefresh(quietly('s1', 'b1'))
      const store = await lab.reopen()
      await finishes(store, await claimed(store), 'purchased')
      same(await changesOf(store), [])
    },
  },
  {
    name: 'quiet: every event, and every request that is not quiet, ends it, also during the read',
    async check({ store }) {
      const ways: Record<string, (uid: string, businessUid: string) => RefreshRequest> = {
        named: (uid, businessUid) => named(uid, businessUid),
        known: (subscriptionUid, businessUid) => ({ kind: 'known', subscriptionUid, businessUid }),
        installed: (_uid, businessUid) => ({
          kind: 'business',
          businessUid,
          install: { installed: true, at: null },
        }),
      }
      const before: string[] = []
      for (const [way, requestOf] of Object.entries(ways)) {
        const [uid, businessUid] = [`s ${way}`, `b ${way}`]
        await store.requestRefresh(quietly(uid, businessUid))
        // Earlier subscriptions become due again.
        const claim = await claimed(store, { except: before })
        before.push(businessUid)
        await store.accept([eventOf(uid, { businessUid, refresh: requestOf(uid, businessUid) })])
        has(await only(store, businessUid), { quiet: false })
        await finishes(store, claim, 'purchased')
      }
      await store.requestRefresh(quietly('s', 'b'))
      const claim = await claimed(store, { except: before })
      await store.requestRefresh(named('s', 'b'))
      await finishes(store, claim, 'purchased')
      same((await changesOf(store)).sort(), [
        's installed purchased',
        's known purchased',
        's named purchased',
        's purchased',
      ])
    },
  },
  {
    name: 'quiet: a refresh request for the business without an event does not end it',
    async check({ store }) {
      await store.requestRefresh(quietly('s1', 'b1'))
      await store.requestRefresh({ kind: 'business', businessUid: 'b1', install: null })
      await finishes(store, await claimed(store), 'purchased')
      same(await changesOf(store), [])
    },
  },
  {
    name: 'quiet: has no effect after an earlier request, until the first successful read',
    async check(lab) {
      const { store } = lab
      await store.accept([eventOf('s1', { businessUid: 'b1' })])
      await store.requestRefresh(quietly('s1', 'b1'))
      has(await only(store, 'b1'), { quiet: false })
      // The platform does not show it yet, so the change of the event is still missing.
      await store.finishRead(await claimed(store), { ...fails('platform_record_missing'), settled: true })
      await store.requestRefresh(quietly('s1', 'b1'))
      await finishes(store, await due(lab), 'purchased')
      same(await changesOf(store), ['s1 purchased'])
      await known(store, 's2', 'purchased', 'b1')
      await store.requestRefresh(quietly('s2', 'b1'))
      for (const each of await store.subscriptionsOf('b1')) has(each, { quiet: false })
    },
  },
  {
    name: 'subscriptionsNamed: returns the known ones, of any business',
    async check({ store }) {
      await known(store, 's1', 'purchased', 'b1')
      await store.requestRefresh(quietly('s2', 'b2'))
      const found = await store.subscriptionsNamed(['s2', 'nobody', 's1', "it's; \\"])
      const sorted = found.sort((a, b) => (a.subscriptionUid < b.subscriptionUid ? -1 : 1))
      same(
        sorted.map(({ subscriptionUid, businessUid, state, quiet }) => [
          subscriptionUid,
          businessUid,
          state,
          quiet,
        ]),
        [
          ['s1', 'b1', 'purchased', false],
          ['s2', 'b2', null, true],
        ],
      )
      same(await store.subscriptionsNamed([]), [])
    },
  },
]

const due = (lab: Lab): Promise<ReadClaim> =>
  lab.until('it is due', async () => (await claimedAll(lab.store))[0])

/** Finishes a successful read that found this state, with a change. */
function finishes(store: Store, claim: ReadClaim, state: string): Promise<boolean> {
  const { subscriptionUid, businessUid } = claim.subscription
  const id = `change of ${subscriptionUid} to ${state}`
  const change = {
    id,
    key: `subscription:${subscriptionUid}`,
    businessUid,
    cause: 'event' as const,
    payload: `"${state}"`,
  }
  return store.finishRead(claim, shows(claim, state, { changes: [change] }))
}

async function changesOf(store: Store): Promise<string[]> {
  const entries = await store.listEntries({ kind: 'change' })
  return entries.map(({ subscriptionUid, payload }) => `${subscriptionUid} ${payload}`)
}
