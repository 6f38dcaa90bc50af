import type { Marketplace } from '../../../lib/index.js'
import type { Simulator } from '../../../lib/testing/index.js'
import { B1 } from '../settings.js'
import { until } from '../until.js'

/** Makes a purchase, moves it through these states, and waits until the marketplace has seen each of them. */
export async function bringAbout(
  platform: Simulator,
  marketplace: Marketplace,
  states: readonly string[],
  business_uid = B1,
): Promise<string> {
  const { uid } = platform.purchase({
    business_uid,
    payment: states[0] === 'purchased' ? 'succeeded' : 'failed',
  })
  for (const [i, state] of states.entries()) {
    if (i > 0 && state === 'purchased') platform.confirmPayment(uid)
    if (i > 0 && state === 'suspended') platform.paymentIssue(uid)
    if (i > 0 && state === 'canceled') platform.cancel(uid)
    await marketplace.subscriptions.track({ subscriptionUid: uid, businessUid: business_uid })
    await until(`${state} is seen`, async () => {
      const { subscriptions } = await marketplace.explain(business_uid)
      return subscriptions.some((each) => each.subscription_uid === uid && each.purchase_state === state)
    })
  }
  return uid
}

/** The number of changes that are not handled yet. */
export async function pendingChanges({ journal }: Marketplace): Promise<number> {
  const changes = await journal.list({ kind: 'change' })
  return changes.filter(({ status }) => status === 'pending').length
}

export function explode(): never {
  throw new Error('a hostile value')
}
