import type { Cause } from '../../../../lib/store/port/store.js'
import { business, type Checks, changeOf, eventOf, has, type Lab, same } from '../lab.js'

/** The cause of a read, and the changes without an event. */
export const CAUSES_OF_READS: Checks = {
  async 'claimReads: each claim has the cause of its read'(lab) {
    await lab.accept([eventOf('s1', { businessUid: 'b1' })])
    await lab.request('s2', 'b2')
    await lab.request('s3', 'b3', 'import')
    same(await causes(lab), ['s1 event', 's2 request', 's3 import'])
  },

  async 'claimReads: of several causes the strongest counts, in any order'(lab) {
    await lab.request('s1', 'b1', 'import')
    await lab.accept([eventOf('s1', { businessUid: 'b1' })])
    await lab.request('s1', 'b1')
    await lab.request('s2', 'b2')
    await lab.requestRefresh(business('b2'), 'import')
    same(await causes(lab), ['s1 event', 's2 request'])
  },

  async 'counts: counts the recent changes, and of these the ones without an event, also soon after'(lab) {
    const before: Cause[] = ['event', 'reconcile', 'reconcile', 'request', 'import']
    for (const [i, cause] of before.entries()) await change(lab, `s${i}`, cause)
    has(await lab.counts(), { recentChanges: 3, unannouncedChanges: 2 })
    await lab.accept([eventOf('s2', { businessUid: 'of s2' })])
    has(await lab.counts(), { recentChanges: 3, unannouncedChanges: 1 })
  },

  async 'counts: counts only the newest ten changes'(lab) {
    for (let i = 0; i < 8; i++) await change(lab, `old ${i}`, 'reconcile')
    has(await lab.counts(), { recentChanges: 8, unannouncedChanges: 8 })
    for (let i = 0; i < 6; i++) await change(lab, `new ${i}`, 'event')
    has(await lab.counts(), { recentChanges: 10, unannouncedChanges: 4 })
  },

  async 'counts: first records are counted apart from later changes, and without an event an hour later'(
    lab,
  ) {
    const payload = JSON.stringify({ subscription_uid: 's', from: null, to: 'purchased', record: {} })
    for (let i = 0; i < 12; i++) {
      await change(lab, `new ${i}`, i < 4 ? 'event' : 'reconcile', { payload })
      if (i < 4) await change(lab, `known ${i}`, i < 3 ? 'reconcile' : 'event')
    }
    has(await lab.counts(), { recentChanges: 4, unannouncedChanges: 3 })
    has(await lab.counts(), { recentFirstRecords: 4, unannouncedFirstRecords: 0 })
  },

  async 'counts: changes of one business at about the same time count once'(lab) {
    await change(lab, 's0', 'event')
    for (let i = 1; i <= 5; i++) await change(lab, `s${i}`, 'reconcile', { businessUid: 'of many' })
    has(await lab.counts(), { recentChanges: 2, unannouncedChanges: 1 })
  },
}

async function causes(lab: Lab): Promise<string[]> {
  return (await lab.claimAll()).map(({ id, cause }) => `${id} ${cause}`).sort()
}

async function change(lab: Lab, uid: string, cause: Cause, more = {}) {
  const written = changeOf(`of ${uid}`, { key: uid, businessUid: `of ${uid}`, cause, payload: '{}', ...more })
  await lab.request(uid, written.businessUid)
  await lab.succeed(await lab.claim(), 'purchased', { changes: [written] })
}
