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
  kind?: 'event' | 'change' | 'entitlement'
  name?: string
  status?: 'pending' | 'done' | 'dead'
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
 * show. The journal is asked for what is dead, pending or just announced of the business, however much came after it. What
 * cannot be read within two seconds counts as no fact.
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
  const late = () => new Error('the journal is too long')
  const facts = withDeadline(factsFor(decision, marketplace, now), FACTS_MS, systemClock, late)
  return nextStepOf(decision, await facts.catch(() => new Map()))
}

async function factsFor({ reason, business_uid }: StepDecision, asked: Asked, now: number): Promise<Facts> {
  const { known, nextIf = {} }: ReasonRow = REASONS[reason]
  const depends = (fact: Fact) => Object.hasOwn(nextIf, fact)
  if (depends('handler_dead')) return factsOfHandlers(business_uid, asked.journal, now)
  if (depends('change_announced')) return factsOfEvents(business_uid, asked.journal, now)
  if (known || !depends('reads_throttled')) return new Map()
  const { problems } = await asked.health()
  return new Map(problems.some(({ code }) => code === 'reads_throttled') ? [['reads_throttled', '']] : [])
}

/** Handlers that have not finished: of those tried, the newest entry of each counts, unless a newer one is done. */
async function factsOfHandlers(businessUid: string, journal: Asked['journal'], now: number): Promise<Facts> {
  const found = await Promise.all(
    (['dead', 'pending'] as const).map((status) =>
      journal.list({ businessUid, status, limit: MOST_ENTRIES }),
    ),
  )
  const entries = found
    .flat()
    .filter(({ kind }) => kind !== 'unrecognised')
    .sort((a, b) => (a.id < b.id ? 1 : -1))
  const facts = new Map<Fact, string>()
  const add = (fact: Fact, { id }: Entry) => facts.has(fact) || facts.set(fact, id)
  const seen = new Set<string>()
  for (const entry of entries) {
    const dueInMs = Date.parse(entry.dueAt ?? entry.receivedAt) - now
    if (entry.status === 'pending' && entry.attempts === 0) {
      if (await isAwaited(entry)) add(-dueInMs > SOON_MS ? 'handler_overdue' : 'handler_waiting', entry)
      continue
    }
    const handler = `${entry.kind} ${entry.name}`
    if (seen.has(handler)) continue
    seen.add(handler)
    if (await isDoneSince(entry)) continue
    if (entry.status === 'dead') add('handler_dead', entry)
    else add(dueInMs > SOON_MS ? 'handler_retrying_later' : 'handler_retrying', entry)
  }
  return facts

  async function isDoneSince({ id, kind, name, receivedAt }: Entry): Promise<boolean> {
    const which = { kind: kind as NonNullable<Filter['kind']>, ...(name === '' ? {} : { name }) }
    const since = new Date(receivedAt)
    const [done] = await journal.list({ businessUid, ...which, status: 'done', since, limit: 1 })
    return done !== undefined && done.id > id
  }

  /**
   * Whether a handler is expected for a pending entry. Every change is pending, also where nobody has `onPurchaseChange`: it is
   * awaited if the app handled changes lately, and has not set up the business by `onEntitlementChange`.
   */
  async function isAwaited({ kind, receivedAt }: Entry): Promise<boolean> {
    if (kind !== 'change') return true
    const since = new Date(receivedAt)
    const lately = new Date(since.getTime() - HANDLED_LATELY_MS)
    const [handled] = await journal.list({ kind: 'change', status: 'done', since: lately, limit: 1 })
    if (!handled) return false
    const ofBusiness = { businessUid, kind: 'entitlement', status: 'done', since, limit: 1 } as const
    return (await journal.list(ofBusiness)).length === 0
  }
}

async function factsOfEvents(businessUid: string, journal: Asked['journal'], now: number): Promise<Facts> {
  const since = new Date(now - LAG_MS + 1)
  const events = await journal.list({ businessUid, kind: 'event', since, limit: MOST_ENTRIES })
  const announced = events.find(({ name }) => name.startsWith(PURCHASE))
  if (!announced) return new Map()
  const ofChange = { businessUid, kind: 'change', since: new Date(announced.receivedAt), limit: 1 } as const
  const [change] = await journal.list(ofChange)
  return new Map(change && change.id > announced.id ? [] : [['change_announced', '']])
}

/** The journal reads 10,000 entries of a business in 0.3 s, and 100,000 not within this time. */
const FACTS_MS = 2 * SECOND

/** The newest entries of a status at which it looks. */
const MOST_ENTRIES = 100

/** The events about a purchase. */
const PURCHASE = 'purchasable_subscription/'

/** A customer can wait for a handler that is called within this time. */
const SOON_MS = 10 * MINUTE

/** A lag lasts seconds. An event without a change for this long was about something else. */
const LAG_MS = 10 * MINUTE

/** An app that has handled no change for so long has no handler of changes any more. */
const HANDLED_LATELY_MS = 7 * DAY
