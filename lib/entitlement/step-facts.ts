import { DAY, MINUTE, SECOND, systemClock } from '../base/clock.js'
import { withDeadline } from '../base/waiting.js'
import { type Fact, type Facts, nextStepOf } from './next-step.js'
import { type NextStep, REASONS, type Reason, type ReasonRow } from './reasons.js'

type StepDecision = Parameters<typeof nextStepOf>[0] & { business_uid: string; reason: Reason }

/** The methods of a marketplace that are asked for facts. */
interface Asked {
  journal: { list(filter: Filter): Promise<readonly Entry[]> }
  health(): Promise<Health>
}

interface Health {
  problems: readonly { code: string }[]
}

type Kind = 'entitlement' | 'change' | 'event'

interface Filter {
  businessUid?: string
  kind?: Kind
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
 * show. Of the journal it reads the newest 10,000 entries of each kind, for two seconds at most: what is older, or cannot be
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
  return nextStepOf(decision, await factsFor(decision, marketplace, now))
}

async function factsFor({ reason, business_uid }: StepDecision, asked: Asked, now: number): Promise<Facts> {
  const { known, nextIf = {} }: ReasonRow = REASONS[reason]
  const depends = (fact: Fact) => Object.hasOwn(nextIf, fact)
  if (depends('handler_dead')) {
    const [[handled], entries] = await Promise.all([
      inTime<readonly Entry[]>([], () => asked.journal.list({ kind: 'change', status: 'done', limit: 1 })),
      newestEntries(asked.journal, business_uid, ['entitlement', 'change', 'event']),
    ])
    return factsOfHandlers(entries, handled, now)
  }
  if (depends('change_announced')) {
    const since = new Date(now - LAG_MS + 1)
    return factsOfEvents(await newestEntries(asked.journal, business_uid, ['change', 'event'], since))
  }
  if (known || !depends('reads_throttled')) return new Map()
  const { problems } = await inTime<Health>({ problems: [] }, () => asked.health())
  return new Map(problems.some(({ code }) => code === 'reads_throttled') ? [['reads_throttled', '']] : [])
}

/**
 * The newest entries of a business, kind by kind, newest first: those that are read in time. Whoever has the delivery secret can add events
 * without end, so the number of a kind is bounded, and what only a read makes comes first. The journal finds a kind at once;
 * for a status it would look through all entries.
 */
async function newestEntries(
  journal: Asked['journal'],
  businessUid: string,
  kinds: readonly Kind[],
  since?: Date,
): Promise<Entry[]> {
  const entries: Entry[] = []
  await inTime(undefined, async (isLate) => {
    for (const kind of kinds) {
      let before: string | undefined
      for (let read = 0; read < MOST_ENTRIES; read += ENTRIES_A_PAGE) {
        const from = { ...(since && { since }), ...(before !== undefined && { before }) }
        const page = await journal.list({ businessUid, kind, ...from, limit: ENTRIES_A_PAGE })
        if (isLate()) return
        for (const { id, name, status, attempts, receivedAt, dueAt } of page)
          entries.push({ id, kind, name, status, attempts, receivedAt, dueAt })
        before = page.at(-1)?.id
        if (page.length < ENTRIES_A_PAGE) break
      }
    }
  })
  return entries
}

/** What `ask` resolves with, or `otherwise` if it rejects or takes longer than two seconds. */
async function inTime<T>(otherwise: T, ask: (isLate: () => boolean) => Promise<T>): Promise<T> {
  let late = false
  function onLate() {
    late = true
    return new Error('not in time')
  }
  return withDeadline(
    ask(() => late),
    FACTS_MS,
    systemClock,
    onLate,
  ).catch(() => otherwise)
}

/**
 * Handlers that have not finished: of those tried, the newest entry of each counts.
 *
 * @param entries of the business, kind by kind, newest first
 * @param handled the newest change of any business that the app has handled
 */
function factsOfHandlers(entries: readonly Entry[], handled: Entry | undefined, now: number): Facts {
  const facts = new Map<Fact, string>()
  const add = (fact: Fact, { id }: Entry) => facts.has(fact) || facts.set(fact, id)
  const setUp = entries.find(({ kind, status }) => kind === 'entitlement' && status === 'done')
  const seen = new Set<string>()
  for (const entry of entries) {
    const { kind, name, status, attempts } = entry
    if (status === 'unhandled') continue
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
function factsOfEvents(entries: readonly Entry[]): Facts {
  const change = entries.find(({ kind }) => kind === 'change')
  const announced = entries.find(({ kind, name }) => kind === 'event' && name.startsWith(PURCHASE))
  return new Map(announced && !(change && change.id > announced.id) ? [['change_announced', '']] : [])
}

/** 10,000 entries take 0.2 s. */
const FACTS_MS = 2 * SECOND

/** The most entries of a kind at which it looks. */
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
