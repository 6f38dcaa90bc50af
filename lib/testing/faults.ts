import { MarketplaceError } from '../base/errors.js'
import type { Seeded } from './random.js'

/** The three calls of the interface document. */
export type Endpoint = 'register' | 'read' | 'token'

/** Where a fault strikes: one call, all three of them (`platform`), or the deliveries to registered targets. */
export type FaultPoint = Endpoint | 'platform' | 'delivery'

/** Milliseconds, or the bounds between which the seed chooses a value each time. */
export type Span = number | readonly [least: number, most: number]

type OnCall = {
  /** The call that it strikes; `platform` is all of them. */
  on: Endpoint | 'platform'
}
type OnRead = {
  /** It strikes reads of subscriptions. */
  on: 'read'
}
type OnDelivery = {
  /** It strikes deliveries of events. */
  on: 'delivery'
}

interface StatusFault {
  /** Answers with a status of your choice. */
  kind: 'status'
  /** The status of the reply. */
  status: number
  /** The Retry-After header: seconds, or whatever text. */
  retryAfter?: number | string
  /** Sent as JSON, or as HTML if it is a string. Default: the platform's usual error body. */
  body?: unknown
  /** Further headers, such as the `location` of a redirect. */
  headers?: Record<string, string>
}

/** Which traffic a fault strikes, and how often. An omitted field matches everything. */
export interface FaultAim {
  /** Ends after this many strikes. */
  times?: number
  /** The chance of a strike, 0 to 1, drawn from the seed for each subject separately. */
  probability?: number
  /** Only traffic of this business. */
  business_uid?: string
  /** Only traffic of this subscription. */
  subscription_uid?: string
  /** The registration name, for deliveries and the register call. */
  event?: string
}

/** One fault: where, what, and how often. `FAULT_KINDS` describes each kind. */
export type Fault = FaultAim &
  (
    | (OnCall & { kind: 'slow'; ms: Span })
    | (OnCall & StatusFault)
    | (OnCall & { kind: 'html'; status?: number })
    | (OnCall & { kind: 'hang' | 'truncate' | 'reset' | 'down' })
    | (OnRead & { kind: 'lag'; reads?: number; ms?: number })
    | (OnRead & { kind: 'wrongRecord' | 'extraRecords' })
    | (OnDelivery & { kind: 'delay'; ms: Span })
    | (OnDelivery & { kind: 'duplicate'; copies?: number })
    | (OnDelivery & { kind: 'drop' | 'hangUp' })
    | (OnDelivery & { kind: 'reorder'; hold: number })
  )

/** See `FAULT_KINDS`. */
export type FaultKind = Fault['kind']

const CALLS: readonly FaultPoint[] = ['register', 'read', 'token', 'platform']

/**
 * Every kind of fault. At most one fault of each stage strikes a request or delivery, the one added first. The stages
 * are the time (`when`), the content (`what`) and the end (`end`).
 */
export const FAULT_KINDS = {
  slow: { stage: 'when', on: CALLS, does: 'answers after a pause' },
  delay: { stage: 'when', on: ['delivery'], does: 'sends it later, so that others overtake it' },
  lag: { stage: 'what', on: ['read'], does: 'shows the state from before the latest changes' },
  wrongRecord: { stage: 'what', on: ['read'], does: 'answers with the record of another subscription' },
  extraRecords: { stage: 'what', on: ['read'], does: 'puts records of others in front of the right one' },
  duplicate: { stage: 'what', on: ['delivery'], does: 'sends further copies' },
  status: { stage: 'end', on: CALLS, does: 'does nothing, and answers with a status of your choice' },
  html: { stage: 'end', on: CALLS, does: 'answers with an HTML page, status 200 by default' },
  hang: { stage: 'end', on: CALLS, does: 'never answers' },
  truncate: { stage: 'end', on: CALLS, does: 'handles the request, and sends half of the reply' },
  reset: { stage: 'end', on: CALLS, does: 'resets the connection after reading the request' },
  down: { stage: 'end', on: CALLS, does: 'closes every connection: the platform cannot be reached' },
  drop: { stage: 'end', on: ['delivery'], does: 'never sends it' },
  hangUp: { stage: 'end', on: ['delivery'], does: 'closes the connection right after the request' },
  reorder: { stage: 'end', on: ['delivery'], does: 'holds deliveries and releases them in another order' },
} as const satisfies Record<
  FaultKind,
  { stage: 'when' | 'what' | 'end'; on: readonly FaultPoint[]; does: string }
>

/** A fault that was added. */
export interface FaultHandle {
  /** How often it has struck. */
  readonly strikes: number
  /** Ends it, and releases the deliveries it holds. */
  remove(): void
}

/** A request or delivery that a fault may strike. Its `key` is the same in every run with one seed. */
export interface Subject {
  key: string
  businessUid?: string | undefined
  subscriptionUid?: string | undefined
  event?: string | undefined
}

/** An active fault, with its number in the order of adding. */
export type ActiveFault = Fault & { readonly number: number }

/** The faults that strike one request or delivery: at most one of each stage. */
export interface Strike {
  /** The stage `when`. */
  delayMs: number
  /** The stage `what`: it changes the content. */
  what?: ActiveFault
  /** The stage `end`: it decides how the exchange ends. */
  end?: ActiveFault
  /** The kinds that struck, for the log. */
  kinds: FaultKind[]
}

/** The active faults. They decide; the caller carries the decision out. */
export interface FaultRules {
  add(fault: Fault): FaultHandle
  clear(): void
  strike(point: Endpoint | 'delivery', subject: Subject): Strike
  /** Whether every request to these endpoints is refused at present. */
  isDown(endpoints: readonly Endpoint[]): boolean
}

interface Rule {
  fault: ActiveFault
  strikes: number
  /** Tries so far by subject. The decision about the n-th try of a subject does not depend on other subjects. */
  tries: Map<string, number>
}

/** @param onChange called when a fault was added, or has ended (last strike, removed, cleared). */
export function createFaultRules(
  seed: Seeded,
  onChange: (fault: ActiveFault, change: 'added' | 'ended') => void,
): FaultRules {
  let rules: Rule[] = []
  let added = 0

  function end(rule: Rule): void {
    if (!rules.includes(rule)) return
    rules = rules.filter((other) => other !== rule)
    onChange(rule.fault, 'ended')
  }

  return {
    add(fault) {
      checkFault(fault)
      added += 1
      const rule: Rule = { fault: { ...fault, number: added }, strikes: 0, tries: new Map() }
      rules = [...rules, rule]
      onChange(rule.fault, 'added')
      return {
        get strikes() {
          return rule.strikes
        },
        remove: () => end(rule),
      }
    },
    clear() {
      for (const rule of rules) end(rule)
    },
    strike(point, subject) {
      const strike: Strike = { delayMs: 0, kinds: [] }
      const struck = new Set<string>()
      for (const rule of rules) {
        const { fault } = rule
        const { stage } = FAULT_KINDS[fault.kind]
        if (struck.has(stage) || !aimsAt(fault, point, subject)) continue
        const tries = rule.tries.get(subject.key) ?? 0
        rule.tries.set(subject.key, tries + 1)
        const random = seed.stream(`fault/${fault.number}/${subject.key}/${tries}`)
        if (fault.probability !== undefined && random() >= fault.probability) continue
        struck.add(stage)
        strike.kinds.push(fault.kind)
        if (fault.kind === 'slow' || fault.kind === 'delay') strike.delayMs = msIn(fault.ms, random)
        else if (stage === 'what') strike.what = fault
        else strike.end = fault
        rule.strikes += 1
        if (rule.strikes === fault.times) end(rule)
      }
      return strike
    },
    isDown(endpoints) {
      const down = rules.filter(({ fault }) => fault.kind === 'down' && isAimless(fault))
      return endpoints.every((name) => down.some(({ fault }) => fault.on === name || fault.on === 'platform'))
    },
  }
}

function aimsAt(fault: Fault, point: FaultPoint, subject: Subject): boolean {
  return (
    (fault.on === point || (fault.on === 'platform' && point !== 'delivery')) &&
    (fault.business_uid === undefined || fault.business_uid === subject.businessUid) &&
    (fault.subscription_uid === undefined || fault.subscription_uid === subject.subscriptionUid) &&
    (fault.event === undefined || fault.event === subject.event)
  )
}

/** Whether it strikes everything at its point. */
function isAimless(fault: Fault): boolean {
  const { times, probability, business_uid, subscription_uid, event } = fault
  return [times, probability, business_uid, subscription_uid, event].every((aim) => aim === undefined)
}

/** A time within the span. */
function msIn(span: Span, random: () => number): number {
  if (typeof span === 'number') return span
  return Math.round(span[0] + (span[1] - span[0]) * random())
}

/** Bounds, so that a typing mistake cannot fill the memory or stop a run. */
const BOUNDS = {
  times: [1, 1e9],
  probability: [0, 1],
  ms: [0, 3_600_000],
  reads: [1, 10_000],
  copies: [1, 10_000],
  hold: [2, 10_000],
  status: [200, 599],
} as const

function checkFault(fault: Fault): void {
  const kind = Object.hasOwn(FAULT_KINDS, fault.kind) ? FAULT_KINDS[fault.kind] : undefined
  if (kind === undefined) throw invalid(`there is no kind "${fault.kind}"`)
  if (!(kind.on as readonly FaultPoint[]).includes(fault.on)) {
    throw invalid(`"${fault.kind}" strikes ${kind.on.join(', ')}, not "${fault.on}"`)
  }
  const given = fault as unknown as Record<string, unknown>
  for (const [field, [least, most]] of Object.entries(BOUNDS)) {
    for (const value of [given[field] ?? []].flat()) {
      if (typeof value === 'number' && value >= least && value <= most) continue
      throw invalid(`${field} must be a number from ${least} to ${most}`)
    }
  }
  for (const [field, kinds] of [
    ['ms', ['slow', 'delay']],
    ['hold', ['reorder']],
    ['status', ['status']],
  ] as const) {
    if ((kinds as readonly string[]).includes(fault.kind) && given[field] === undefined) {
      throw invalid(`"${fault.kind}" needs ${field}`)
    }
  }
}

function invalid(why: string): MarketplaceError {
  return new MarketplaceError('argument_invalid', `Cannot add the fault: ${why}`)
}
