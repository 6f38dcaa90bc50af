import type { ReadClaim, RefreshRequest } from '../../../../lib/store/port/store.js'
import {
  business,
  type Checks,
  changeOf,
  eventOf,
  fails,
  has,
  ifKnown,
  type Lab,
  named,
  same,
  uidsOf,
} from '../lab.js'

export const quietly = (subscriptionUid: string, businessUid?: string): RefreshRequest => ({
  ...named(subscriptionUid, businessUid),
  quiet: true,
})

export const QUIET_READS: Checks = {
  async 'quiet: the first successful read makes no change; later reads do'(lab) {
    await lab.requestRefresh(quietly('s1', 'b1'))
    has(await lab.only('b1'), { quiet: true, record: null })
    await finishes(lab, 'purchased')
    has(await lab.only('b1'), { quiet: false, state: 'purchased' })
    same(await changesOf(lab), [])
    await lab.requestRefresh(quietly('s1', 'b1'))
    await finishes(lab, 'canceled')
    same(await changesOf(lab), ['s1 canceled'])
  },

  async 'quiet: outlives failed reads'(lab) {
    await lab.requestRefresh(quietly('s1', 'b1'))
    await lab.fail(await lab.claim(), 'platform_timeout', 0)
    has(await lab.only('b1'), { quiet: true })
    await finishes(lab, 'purchased')
    same(await changesOf(lab), [])
  },

  async 'quiet: every event, and every request that is not quiet, ends it, also during the read'(lab) {
    const ways = { named: named('named', 'b named'), known: ifKnown('known', 'b known') }
    const requests = { ...ways, installed: business('b installed', true) }
    for (const [uid, refresh] of Object.entries(requests)) {
      await lab.requestRefresh(quietly(uid, `b ${uid}`))
      const claim = await lab.next(uid)
      await lab.accept([eventOf(uid, { businessUid: `b ${uid}`, refresh })])
      has(await lab.only(`b ${uid}`), { quiet: false })
      await finishes(lab, 'purchased', claim)
    }
    await lab.requestRefresh(quietly('s', 'b'))
    const claim = await lab.next('s')
    await lab.request('s', 'b')
    await finishes(lab, 'purchased', claim)
    same(
      (await changesOf(lab)).sort(),
      ['installed', 'known', 'named', 's'].map((uid) => `${uid} purchased`),
    )
  },

  async 'quiet: a refresh request for the business without an event does not end it'(lab) {
    await lab.requestRefresh(quietly('s1', 'b1'))
    await lab.requestRefresh(business('b1'))
    await finishes(lab, 'purchased')
    same(await changesOf(lab), [])
  },

  async 'quiet: has no effect after an earlier request, until the first successful read'(lab) {
    await lab.accept([eventOf('s1', { businessUid: 'b1' })])
    await lab.requestRefresh(quietly('s1', 'b1'))
    has(await lab.only('b1'), { quiet: false })
    // The platform does not show it yet, so the change of the event is still missing.
    await lab.finishRead(await lab.claim(), { ...fails('platform_record_missing'), settled: true })
    await lab.requestRefresh(quietly('s1', 'b1'))
    await finishes(lab, 'purchased')
    same(await changesOf(lab), ['s1 purchased'])
    await lab.known('s2', 'purchased', 'b1')
    await lab.requestRefresh(quietly('s2', 'b1'))
    for (const each of await lab.subscriptionsOf('b1')) has(each, { quiet: false })
  },

  async 'subscriptionsNamed: returns the known ones, of any business'(lab) {
    await lab.known('s1', 'purchased', 'b1')
    await lab.requestRefresh(quietly('s2', 'b2'))
    const found = await lab.subscriptionsNamed(['s2', 'nobody', 's1', "it's; \\"])
    same(uidsOf(found).sort(), ['s1', 's2'])
    const [s1, s2] = ['s1', 's2'].map((uid) => found.find(({ subscriptionUid }) => subscriptionUid === uid))
    has(s1, { businessUid: 'b1', state: 'purchased', quiet: false })
    has(s2, { businessUid: 'b2', state: null, quiet: true })
    same(await lab.subscriptionsNamed([]), [])
  },
}

/** Finishes a read that found this state, with a change: by default the next one. */
async function finishes(lab: Lab, state: string, held?: ReadClaim) {
  const claim = held ?? (await lab.next())
  const change = changeOf(`${claim.id} ${state}`, { businessUid: claim.subscription.businessUid })
  same(await lab.succeed(claim, state, { changes: [change] }), true)
}

function changesOf(lab: Lab): Promise<string[]> {
  return lab.ids({ kind: 'change' })
}
