import { type NextStep, REASONS, type Reason, type ReasonRow } from './reasons.js'
import { itemsInWords } from './words.js'

/** What the journal, the health or the search for subscriptions may show of a business that changes the next step. */
export const FACTS = {
  handler_dead: 'A handler of the app failed at each try, and no later entry of its kind was handled.',
  handler_retrying_later:
    'A handler of the app has failed so far, and is tried again in more than ten minutes.',
  handler_retrying: 'A handler of the app has failed so far, and is tried again.',
  handler_overdue: 'An entry has waited for its handler, or for its end, for more than ten minutes.',
  handler_waiting: 'An entry waits for its handler, or for its end.',
  reads_throttled: 'This process makes no read now, because the platform limits their rate.',
  change_announced:
    'A purchase event came within the last ten minutes, and no read has shown a change since.',
  unsearched: 'The app can search the platform for the business, and nobody has asked it to.',
  searched: 'The app has searched the platform, which shows no subscription of the business.',
} as const

/** A key of `FACTS`. */
export type Fact = keyof typeof FACTS

/** The facts about a business: those of handlers with the entry that shows it, others with an empty text. */
export type Facts = ReadonlyMap<Fact, string>

/** The parts of a decision by which the next step is found. */
interface Decided {
  reason: Reason
  otherItems?: { bought: readonly string[]; accepted: readonly string[] }
  search?: { answered: boolean; pending: boolean; failure: string | null }
  subscriptions: readonly { reason: Reason; purchase_state: string | null; failure: string | null }[]
}

/**
 * The next step for a decision: that of its reason, or a more specific one, by the given facts or a search, or by a state or
 * failure that all deciding subscriptions share. It asks nobody, so it knows no handler that failed and no platform that lags:
 * `nextStepFor` does.
 *
 * @example const { next, action } = nextStepOf(await marketplace.explain('business-1'))
 */
export function nextStepOf(decision: Decided, facts: Facts = new Map()): NextStep {
  const { next, action, customer, nextIf = {} }: ReasonRow = REASONS[decision.reason]
  const deciding = decision.subscriptions.filter(({ reason }) => reason === decision.reason)
  const ofSearch = factOf(decision.search)
  const isShared = (key: string) =>
    deciding.length === 0
      ? key === ofSearch
      : deciding.every(({ purchase_state, failure }) => key === purchase_state || key === failure)
  const key = Object.keys(nextIf).find((each) => facts.has(each as Fact) || isShared(each))
  const step = key === undefined ? undefined : nextIf[key]
  if (step?.action === 'replay') return { ...step, entryId: facts.get(key as Fact) as string }
  if (step) return { ...step }
  return { next: otherItemsInWords(decision.otherItems) + next, action, customer }
}

/** The failure of a search, or the fact that it shows. */
function factOf(search: Decided['search']): string | undefined {
  if (!search || search.failure !== null) return search?.failure ?? undefined
  if (search.pending) return undefined
  return (search.answered ? 'searched' : 'unsearched') satisfies Fact
}

function otherItemsInWords(otherItems: Decided['otherItems']): string {
  if (!otherItems) return ''
  const { bought, accepted } = otherItems
  return `They have ${itemsInWords(bought, 'and')}, and need ${itemsInWords(accepted, 'or')}. `
}
