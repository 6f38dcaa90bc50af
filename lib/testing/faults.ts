/** The three calls of the interface document. */
export type Endpoint = 'register' | 'read' | 'token'

/** Where a fault strikes: one call, all three of them (`platform`), or the deliveries to registered targets. */
export type FaultPoint = Endpoint | 'platform' | 'delivery'

/** Milliseconds, or the bounds between which the seed chooses a value each time. */
export type Span = number | readonly [least: number, most: number]

type OnCall = { on: Endpoint | 'platform' }
type OnRead = { on: 'read' }
type OnDelivery = { on: 'delivery' }

interface StatusFault {
  kind: 'status'
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
  business_uid?: string
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
