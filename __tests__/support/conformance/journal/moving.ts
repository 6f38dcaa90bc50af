import type { SubscriptionRecord } from '../../../../lib/base/record.js'
import type { ReadClaim } from '../../../../lib/store/port/store.js'
import { type Check, claimedAll, fails, has, known, named, same, shows } from '../lab.js'

/** The finish of a read that finds a subscription at another business, and its hints. */
export const MOVING: readonly Check[] = [
  {
    name: 'finishRead: a moved subscription causes one change for each business',
    async check(lab) {
      const { store } = lab
      await known(store, 's1', 'purchased', 'b1')
      await known(store, 's2', 'canceled', 'b2')
      const decided: unknown[] = []
      store.subscribe((hint) => {
        if (hint.kind === 'decided' && hint.businessUid !== null)
          decided.push([hint.businessUid, hint.superseded])
      })
      await store.requestRefresh(named('s1', 'b2'))
      const claim = await lab.until('it is due', async () => (await claimedAll(store))[0])
      has(claim, { candidateBusinessUid: 'b2' })
      const record = { ...(claim.subscription.record as SubscriptionRecord), business_uid: 'b2' }
      const changes = ['b1', 'b2'].map((businessUid) => ({
        id: `of ${businessUid}`,
        key: 'subscription:s1',
        businessUid,
        cause: 'event' as const,
        payload: '1',
      }))
      const found = { record, state: 'purchased', gone: null }
      await store.finishRead(claim, { ...shows(claim, 'purchased'), found, changes, candidate: null })
      same(decided.sort(), [
        ['b1', true],
        ['b2', true],
      ])
      const listed = await store.listEntries({ kind: 'change' })
      same(
        listed.map(({ id, businessUid, subscriptionUid }) => [id, businessUid, subscriptionUid]),
        [
          ['of b2', 'b2', 's1'],
          ['of b1', 'b1', 's1'],
        ],
      )
      same(await store.subscriptionsOf('b1'), [])
    },
  },
  {
    name: 'finishRead: its hint contains whether it superseded the earlier answer',
    async check(lab) {
      const { store } = lab
      const due = async () => {
        await store.requestRefresh(named('s1', 'b1'))
        return lab.until('it is due', async () => (await claimedAll(store))[0])
      }
      const superseded: boolean[] = []
      store.subscribe((hint) => {
        if (hint.kind === 'decided' && hint.businessUid !== null) superseded.push(hint.superseded)
      })
      await known(store, 's1', 'purchased', 'b1')
      for (const finish of [
        (claim: ReadClaim) => shows(claim, 'purchased'),
        () => fails('platform_timeout'),
        (claim: ReadClaim) => shows(claim, 'suspended'),
      ]) {
        const claim = await due()
        await store.finishRead(claim, finish(claim))
      }
      same(superseded, [true, false, false, true])
    },
  },
]
