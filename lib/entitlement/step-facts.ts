import { DAY, MINUTE, SECOND, systemClock } from '../base/clock.js'
import { withDeadline } from '../base/waiting.js'
import { type Fact, type Facts, nextStepOf } from './next-step.js'
import { type NextStep, REASONS, type Reason, type ReasonRow } from './reasons.js'

type StepDecision = Parameters<typeof nextStepOf>[0] & { business_uid: string; reason: Reason }

/** The methods of a marketplace that are asked for facts. */
interface Asked {
  journal: { list(filter: Filter): Promise<readonly Entry[]> }
  health(): Promise<{ problems: readonly { code: string }[] }>
}

interface Filter {
  businessUid?: string
  kind?: 'change'
  status?: 'done'
  before?: string
  since?: Date
  limit: number
}

interface Entry {
  id: string
  kind: string
  name: string
  status: string
  attempts: number
  receivedAt: string
  dueAt: string | null
}

/**
 * The next step for a decision, as the console and `explain` show it: like `nextStepOf`, and by what the journal and the health
 * show. Of the journal it reads the newest 10,000 entries of the business, for two seconds at most: what is older, or cannot be
 * read, counts as no fact.
 *
 * @example
 * const decision = await marketplace.explain('business-1')
 * const { next, action, entryId } = await nextStepFor(decision, marketplace)
 */
export async function nextStepFor(
  decision: StepDecision,
  marketplace: Asked,
  now: number = Date.now(),
): Promise<NextStep> {
  const deadline = new AbortController()
  function onLate() {
    deadline.abort()
    return new Error('the journal does not answer')
  }
  const facts = withDeadline(
    factsFor(decision, marketplace, now, deadline.signal),
    FACTS_MS,
    systemClock,
    onLate,
  )
  return nextStepOf(decision, await facts.catch(() => new Map()))
}

async function factsFor(
  { reason, business_uid: businessUid }: StepDecision,
  { journal, health }: Asked,
  now: number,
  deadline: AbortSignal,
): Promise<Facts> {
  const { known, nextIf = {} }: ReasonRow = REASONS[reason]
  const depends = (fact: Fact) => Object.hasOwn(nextIf, fact)
  if (depends('handler_dead')) {
    const [handled] = await journal.list({ kind: 'change', status: 'done', limit: 1 })
    return factsOfHandlers(await newestEntries(journal, { businessUid }, deadline), handled, now)
  }
  if (depends('change_announced')) {
    const since = new Date(now - LAG_MS + 1)
    return factsOfEvents(await newestEntries(journal, { businessUid, since }, deadline))
  }
  if (known || !depends('reads_throttled')) return new Map()
  const { problems } = await health()
  return new Map(problems.some(({ code }) => code === 'reads_throttled') ? [['reads_throttled', '']] : [])
}

/**
 * The newest entries, newest first. Whoever has the delivery secret can add entries of a business without end, so their number
 * is bounded. The journal looks for a status or a kind through all entries of the business: it is not asked for one.
 */
async function newestEntries(
  journal: Asked['journal'],
  of: Pick<Filter, 'businessUid' | 'since'>,
  deadline: AbortSignal,
): Promise<Entry[]> {
  const entries: Entry[] = []
  for (let before: string | undefined; entries.length < MOST_ENTRIES; before = entries.at(-1)?.id) {
    const page = await journal.list({ ...of, limit: ENTRIES_A_PAGE, ...(before && { before }) })
    for (const { id, kind, name, status, attempts, receivedAt, dueAt } of page)
      entries.push({ id, kind, name, status, attempts, receivedAt, dueAt })
    if (page.length < ENTRIES_A_PAGE || deadline.aborted) break
  }
  return entries
}

/**
 * Handlers that have not finished: of those tried, the newest entry of each counts.
 *
 * @param newestFirst the entries of the business
 * @param handled the newest change of any business that the app has handled
 */
function factsOfHandlers(newestFirst: readonly Entry[], handled: Entry | undefined, now: number): Facts {
  const facts = new Map<Fact, string>()
  const add = (fact: Fact, { id }: Entry) => facts.has(fact) || facts.set(fact, id)
  const setUp = newestFirst.find(({ kind, status }) => kind === 'entitlement' && status === 'done')
  const seen = new Set<string>()
  for (const entry of newestFirst) {
    const { kind, name, status, attempts } = entry
    if (kind === 'unrecognised' || status === 'unhandled') continue
    const dueInMs = Date.parse(entry.dueAt ?? entry.receivedAt) - now
    if (status === 'pending' && attempts === 0) {
      if (isAwaited(entry)) add(-dueInMs > SOON_MS ? 'handler_overdue' : 'handler_waiting', entry)
      continue
    }
    const handler = `${kind} ${name}`
    if (seen.has(handler)) continue
    seen.add(handler)
    if (status === 'dead') add('handler_dead', entry)
    else if (status === 'pending')
      add(dueInMs > SOON_MS ? 'handler_retrying_later' : 'handler_retrying', entry)
  }
  return facts

  /**
   * Whether a handler is expected for a pending entry. Every change is pending, also where nobody has `onPurchaseChange`: it is
   * awaited if the app handled changes lately, and has not set up the business by `onEntitlementChange`.
   */
  function isAwaited({ kind, receivedAt }: Entry): boolean {
    const at = Date.parse(receivedAt)
    if (kind !== 'change') return true
    if (!handled || Date.parse(handled.receivedAt) < at - HANDLED_LATELY_MS) return false
    return !setUp || Date.parse(setUp.receivedAt) < at
  }
}

/** A purchase event without a change after it. */
function factsOfEvents(newestFirst: readonly Entry[]): Facts {
  const found = newestFirst.find(
    ({ kind, name }) => kind === 'change' || (kind === 'event' && name.startsWith(PURCHASE)),
  )
  return new Map(found?.kind === 'event' ? [['change_announced', '']] : [])
}

/** 10,000 entries take 0.2 s. */
const FACTS_MS = 2 * SECOND

/** The most entries at which it looks. */
const MOST_ENTRIES = 10_000

/** The entries that are read at a time: a payload may have 1 MB. */
const ENTRIES_A_PAGE = 100

/** The events about a purchase. */
const PURCHASE = 'purchasable_subscription/'

/** A customer can wait for a handler that is called within this time. */
const SOON_MS = 10 * MINUTE

/** A lag lasts seconds. An event without a change for this long was about something else. */
const LAG_MS = 10 * MINUTE

/** An app that has handled no change for so long has no handler of changes any more. */
const HANDLED_LATELY_MS = 7 * DAY
