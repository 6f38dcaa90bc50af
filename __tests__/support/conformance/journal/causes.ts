import { type Cause, type ReadClaim, type Store, URGENCY } from '../../../../lib/store/port/store.js'
import { type Check, claimed, claimedAll, eventOf, fails, has, type Lab, named, same, shows } from '../lab.js'

/** The cause of a read, and the changes without an event. */
export const CAUSES_OF_READS: readonly Check[] = [
  {
    name: 'claimReads: each claim has the cause of its read',
    async check({ store }) {
      await store.accept([eventOf('s1', { businessUid: 'b1' })])
      await store.requestRefresh(named('s2', 'b2'))
      await store.requestRefresh(named('s3', 'b3'), 'import')
      same((await claimedAll(store)).map(({ id, cause }) => [id, cause]).sort(), [
        ['s1', 'event'],
        ['s2', 'request'],
        ['s3', 'import'],
      ])
    },
  },
  {
    name: 'claimReads: of several causes the strongest counts, in any order',
    async check({ store }) {
      await store.requestRefresh(named('s1', 'b1'), 'import')
      await store.accept([eventOf('s1', { businessUid: 'b1' })])
      await store.requestRefresh(named('s1', 'b1'))
      await store.requestRefresh(named('s2', 'b2'))
      await store.requestRefresh({ kind: 'business', businessUid: 'b2', install: null }, 'import')
      same((await claimedAll(store)).map(({ id, cause }) => [id, cause]).sort(), [
        ['s1', 'event'],
        ['s2', 'request'],
      ])
    },
  },
  {
    name: 'finishRead: retries and verifications have the cause of their read, and the reconcile has its own',
    async check(lab) {
      const { store } = lab
      await store.accept([eventOf('s1', { businessUid: 'b1' })])
      const first = await claimed(store)
      await store.finishRead(first, fails('platform_timeout', 0))
      const retry = await next(lab)
      has(retry, { cause: 'event' })
      const verify = { urgency: URGENCY.verification, nextInMs: 0 } as const
      await store.finishRead(retry, shows(retry, 'purchased', verify))
      const verification = await next(lab)
      has(verification, { cause: 'event' })
      const reconcile = { urgency: URGENCY.reconcile, nextInMs: 0 } as const
      await store.finishRead(verification, shows(verification, 'purchased', reconcile))
      const last = await next(lab)
      has(last, { cause: 'reconcile' })
      await store.accept([eventOf('s1', { businessUid: 'b1' })])
      await store.finishRead(last, shows(last, 'purchased', reconcile))
      has(await next(lab), { cause: 'event' })
    },
  },
  {
    name: 'counts: counts the recent changes, and of these the ones without an event, also soon after',
    async check({ store }) {
      const causes: Cause[] = ['event', 'reconcile', 'reconcile', 'request', 'import']
      for (const [i, cause] of causes.entries()) await change(store, `s${i}`, cause)
      has(await store.counts(), { recentChanges: 3, unannouncedChanges: 2 })
      await store.accept([eventOf('s2', { businessUid: 'of s2' })])
      has(await store.counts(), { recentChanges: 3, unannouncedChanges: 1 })
    },
  },
  {
    name: 'counts: counts only the newest ten changes',
    async check({ store }) {
      for (let i = 0; i < 8; i++) await change(store, `old ${i}`, 'reconcile')
      has(await store.counts(), { recentChanges: 8, unannouncedChanges: 8 })
      for (let i = 0; i < 6; i++) await change(store, `new ${i}`, 'event')
      has(await store.counts(), { recentChanges: 10, unannouncedChanges: 4 })
    },
  },
  {
    name: 'counts: first records are counted apart from later changes',
    async check({ store }) {
      const payload = JSON.stringify({ subscription_uid: 's', from: null, to: 'purchased', record: {} })
      for (let i = 0; i < 12; i++) {
        await change(store, `new ${i}`, i < 4 ? 'event' : 'reconcile', undefined, payload)
        if (i < 4) await change(store, `known ${i}`, i < 3 ? 'reconcile' : 'event')
      }
      has(await store.counts(), { recentChanges: 4, unannouncedChanges: 3 })
      has(await store.counts(), { recentFirstRecords: 10, unannouncedFirstRecords: 8 })
    },
  },
  {
    name: 'counts: changes of one business at about the same time count once',
    async check({ store }) {
      await change(store, 's0', 'event')
      for (let i = 1; i <= 5; i++) await change(store, `s${i}`, 'reconcile', 'of many')
      has(await store.counts(), { recentChanges: 2, unannouncedChanges: 1 })
    },
  },
]

/** The only subscription, as soon as it is due. */
function next(lab: Lab): Promise<ReadClaim> {
  return lab.until('it is due again', async () => (await claimedAll(lab.store))[0])
}

async function change(store: Store, uid: string, cause: Cause, businessUid = `of ${uid}`, payload = '{}') {
  await store.requestRefresh(named(uid, businessUid))
  const claim = await claimed(store)
  const written = { id: `of ${uid}`, key: uid, businessUid, cause, payload }
  await store.finishRead(claim, shows(claim, 'purchased', { changes: [written] }))
}
