import { MINUTE } from '../base/clock.js'
import { type NextStep, REASONS, type Reason, type ReasonRow } from './reasons.js'
import { itemsInWords } from './words.js'

/** What the history of a business, or the search for its subscriptions, may show that changes the next step. */
export const FACTS = {
  handler_dead: 'A handler of the app failed at each try, and no later entry of its kind was handled.',
  handler_retrying_later:
    'A handler of the app has failed so far, and is tried again in more than ten minutes.',
  handler_retrying: 'A handler of the app has failed so far, and is tried again.',
  handler_overdue: 'No handler of the app has answered an entry for more than ten minutes.',
  handler_waiting: 'No handler of the app has answered an entry so far.',
  change_announced:
    'A purchase event came within the last ten minutes, and no read has shown a change since.',
  unsearched: 'The app can search the platform for the business, and nobody has asked it to.',
  searched: 'The app has searched the platform, which shows no subscription of the business.',
} as const

/** A key of `FACTS`. */
type Fact = keyof typeof FACTS

/**
 * The next step for a decision: that of its reason, or a more specific one, by what the history or a search shows, or by a
 * state or failure that all deciding subscriptions share. `history`: the newest items of `businesses.history`; without them, no step
 * is about a handler that failed or a platform that lags.
 *
 * @example
 * const decision = await marketplace.explain('business-1')
 * const history = await marketplace.businesses.history('business-1', { limit: 1_000 })
 * const { next, action, entryId } = nextStepOf(decision, history)
 */
export function nextStepOf(
  decision: {
    reason: Reason
    otherItems?: { bought: readonly string[]; accepted: readonly string[] }
    search?: { answered: boolean; pending: boolean; failure: string | null }
    subscriptions: readonly { reason: Reason; purchase_state: string | null; failure: string | null }[]
  },
  history: readonly {
    kind: string
    at: string
    entryId: string
    of?: string
    name?: string
    outcome?: string
    dueAt?: string | null
    waiting?: boolean
  }[] = [],
  now: number = Date.now(),
): NextStep {
  const { next, action, customer, nextIf = {} }: ReasonRow = REASONS[decision.reason]
  const deciding = decision.subscriptions.filter(({ reason }) => reason === decision.reason)
  const ofSearch = factOf(decision.search)
  const facts = factsIn(history, now)
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
function factOf(search: Parameters<typeof nextStepOf>[0]['search']): string | undefined {
  if (!search || search.failure !== null) return search?.failure ?? undefined
  if (search.pending) return undefined
  return (search.answered ? 'searched' : 'unsearched') satisfies Fact
}

type Items = Parameters<typeof nextStepOf>[0]['otherItems']
type History = NonNullable<Parameters<typeof nextStepOf>[1]>

/** The facts in a history, each with its newest entry. */
function factsIn(history: History, now: number): ReadonlyMap<Fact, string> {
  const facts = new Map<Fact, string>()
  const add = (fact: Fact, { entryId }: History[number]) => facts.has(fact) || facts.set(fact, entryId)
  /** Handlers of which a newer outcome counts. */
  const seen = new Set<string>()
  for (const item of history) {
    const handler = handlerOf(item)
    if (handler === undefined || seen.has(handler)) continue
    if (item.waiting || item.outcome === 'waiting')
      add(now - Date.parse(item.at) > SOON_MS ? 'handler_overdue' : 'handler_waiting', item)
    if (item.kind !== 'handled' || item.outcome === 'waiting') continue
    seen.add(handler)
    if (item.outcome === 'dead') add('handler_dead', item)
    if (item.outcome !== 'retrying') continue
    const isLater = Date.parse(item.dueAt ?? '') - now > SOON_MS
    add(isLater ? 'handler_retrying_later' : 'handler_retrying', item)
  }
  const newest = history.find(
    ({ kind, name }) => kind === 'change' || (kind === 'delivery' && name?.startsWith(PURCHASE)),
  )
  if (newest?.kind === 'delivery' && now - Date.parse(newest.at) < LAG_MS) add('change_announced', newest)
  return facts
}

/** What handles an item; undefined for an action, and for an unrecognised delivery, which sets nothing up. */
function handlerOf({ kind, of, name }: History[number]): string | undefined {
  if (kind === 'change') return 'change '
  const isDelivery = kind === 'delivery' || of === 'delivery'
  if (kind === 'action' || (isDelivery && (!name || name === 'unrecognised'))) return undefined
  return `${isDelivery ? 'delivery' : of} ${name}`
}

/** The events about a purchase. */
const PURCHASE = 'purchasable_subscription/'

/** A customer can wait for a try that comes within this time. */
const SOON_MS = 10 * MINUTE

/** A lag lasts seconds. An event without a change for this long was about something else. */
const LAG_MS = 10 * MINUTE

function otherItemsInWords(otherItems: Items): string {
  if (!otherItems) return ''
  const { bought, accepted } = otherItems
  return `They have ${itemsInWords(bought, 'and')}, and need ${itemsInWords(accepted, 'or')}. `
}
