import { type Decision, nextStepFor, REASONS, type Reason } from '../../../index.js'
import type { Person } from '../../protocol/roles.js'
import type { BusinessReply, Replies } from '../../protocol/shapes.js'
import { type ConsoleMarketplace, rowsFor } from '../rows.js'

const SUBSCRIPTIONS_A_PAGE = 20
const ITEMS_A_PAGE = 30
/** Limit of verdicts in a reply. The first ones contain the reason of the decision. */
const MAX_VERDICTS = 50

/** The calls about one business. */
export function createBusinessCalls(marketplace: ConsoleMarketplace) {
  /** `answered`: the decision, if the caller has it already. */
  async function business(
    person: Person,
    { business_uid, after }: { business_uid: string; after?: string | undefined },
    answered?: Decision,
  ): Promise<BusinessReply> {
    const decision = answered ?? (await marketplace.explain(business_uid))
    // If these fail, the decision contains the reason of the failure.
    const [page, step] = await Promise.all([
      marketplace.subscriptions
        .list({
          businessUid: business_uid,
          limit: SUBSCRIPTIONS_A_PAGE,
          ...(after === undefined ? {} : { after }),
        })
        .catch(() => null),
      nextStepFor(decision, marketplace),
    ])
    return {
      business_uid,
      decision: rowsFor(person).decisionShown(shortened(decision)),
      headline: HEADLINES[decision.reason],
      cause: REASONS[decision.reason].meaning,
      step,
      subscriptions: page?.map(rowsFor(person).subscriptionRow) ?? null,
      after: page?.[SUBSCRIPTIONS_A_PAGE - 1]?.subscription_uid ?? null,
    }
  }

  async function history(
    person: Person,
    { business_uid, before }: { business_uid: string; before?: string | undefined },
  ): Promise<Replies['history']> {
    const items = await marketplace.businesses.history(business_uid, {
      limit: ITEMS_A_PAGE,
      ...(before === undefined ? {} : { before }),
    })
    return {
      items: items.map(rowsFor(person).historyItem),
      before: items.length < ITEMS_A_PAGE ? null : (items.at(-1)?.id ?? null),
    }
  }

  return { business, history }
}

function shortened(decision: Decision): Decision {
  return { ...decision, subscriptions: decision.subscriptions.slice(0, MAX_VERDICTS) }
}

/** The answer as a headline, for each reason of a decision. A reason without one is a type error. */
export const HEADLINES: Readonly<Record<Reason, string>> = {
  purchased: 'May use the app',
  not_read_yet: 'Not known yet',
  stale: 'Not now: not confirmed for too long',
  entitled_when_failed: 'Not known: the rule of the app fails',
  denied_by_rule: 'May not use the app: the rule of the app denies it',
  not_purchased: 'May not use the app',
  revoked: 'May not use the app: uninstalled',
  ended: 'May not use the app: the subscription has ended',
  missing: 'May not use the app: the platform does not show the subscription',
  unreadable: 'May not use the app: the platform refuses to show the subscription',
  other_app: 'May not use the app: bought another item',
  other_item: 'May not use this: bought another item of yours',
  unknown_business: 'Not known here',
  invalid_business_uid: 'This is not an identifier',
  item_unknown: 'The item does not exist',
  store_unavailable: 'There is no answer at the moment',
}
