/**
 * What can be observed of an app from outside, in the order of time. `at` is the time of the world in milliseconds. The
 * second oracle judges nothing else.
 */
export type Observation = { at: number } & Observed

export type Observed =
  | { kind: 'process began'; process: string; rules: Rules }
  | { kind: 'process ended'; process: string }
  /** Frozen, or cut off from the database or the platform. */
  | { kind: 'trouble'; process: string; forMs: number }
  | { kind: 'closing'; process: string }
  | { kind: 'closed'; process: string }
  | { kind: 'delivered'; process: string; delivery: number; body: string; isWhole: boolean }
  | { kind: 'replied'; delivery: number; status: number }
  | {
      kind: 'called'
      process: string
      call: number
      of: 'token' | 'read'
      business: string
      uid: string
      token: string
    }
  | { kind: 'answered call'; call: number; reply: Reply }
  | { kind: 'asked'; process: string; ask: number; by: Door; business: string }
  | { kind: 'answered'; ask: number; answer: Answer }
  | { kind: 'registered'; process: string; topic: Topic }
  /** `handler` is its topic and the number of its registration in this process. */
  | {
      kind: 'handler began'
      process: string
      run: number
      handler: string
      topic: Topic
      entry: Entry
      attempt: number
    }
  | { kind: 'handler aborted'; run: number }
  | { kind: 'handler ended'; run: number; isDone: boolean }
  | { kind: 'handler error'; process: string; id: string; retryInMs: number | null }
  | { kind: 'health'; process: string; status: string; problems: readonly string[] }
  /** `track` and `refresh`, an import, or a replay of entries. */
  | {
      kind: 'requested'
      process: string
      what: 'track' | 'refresh' | 'all' | 'replay' | 'look'
      business: string
      uid: string
    }
  /** A `track` has resolved, so the app knows the subscription. */
  | { kind: 'tracked'; uid: string }
  | { kind: 'erased'; business: string; uids: readonly string[]; left: readonly string[] }
  /** What the platform has from now on, whatever reads show. `state` is null while it refuses tokens for the business. */
  | { kind: 'truth'; uid: string; business: string; item: string; state: string; updatedAt: number }
  | { kind: 'tokens refused'; business: string; forMs: number }
  | { kind: 'hidden'; uid: string; isHidden: boolean }
  /** The wall clock was set, the machine slept, the database became an older one, or the disk changed. */
  | {
      kind: 'machine'
      what: 'leapt' | 'slept' | 'restored' | 'disk fails' | 'disk is well' | 'power was cut'
    }
  /** No fault begins any more. */
  | { kind: 'healed' }
  | { kind: 'end' }

export type Door = 'isEntitled' | 'explain' | 'gate' | 'route' | 'nobody'
export type Topic = 'event' | 'unrecognised' | 'change' | 'entitlement'

/** The options of a process that the judge compares with; defaults as in docs/options.md. */
export interface Rules {
  items: readonly string[]
  maxStaleMs: number
  reconcileEveryMs: number
  waitMs: number
  isWorker: boolean
  /** Whether the app has a rule of its own, `entitledWhen`, which the judge does not know. */
  hasRule: boolean
  readsAtOnce: number
  handlersAtOnce: number
  retryDelaysMs: readonly number[]
  timeoutMs: number
  closeTimeoutMs: number
  /** Whether the addresses and the secret of the platform are the right ones. */
  isRight: boolean
}

/** A reply of the platform, as docs/platform-interface.md says what it means. */
export type Reply =
  | { is: 'token'; token: string }
  | { is: 'record'; business: string; item: string; state: string; updatedAt: number }
  | { is: 'nothing' }
  | { is: 'refused'; status: number }
  | { is: 'throttled'; afterMs: number }
  | { is: 'failed' }

/** What a door of the app answered. A door that answers with less leaves the rest out. */
export interface Answer {
  entitled: boolean
  known?: boolean
  reason?: string
  items?: readonly string[]
  accessUntil?: string | null
  explanation?: string
  status?: number
  retryAfter?: string | undefined
  cacheControl?: string | undefined
  isRejected?: boolean
}

/** What a handler got. Fields that its topic does not have are empty. */
export interface Entry {
  id: string
  business: string
  uid: string
  /** The name of an event, and its data as text. */
  name: string
  data: string
  from: string | null
  to: string | null
  gone: string | null
  updatedAt: number | null
  entitled: boolean | null
  reason: string
  cause: string
  items: readonly string[]
  previousItems: readonly string[]
}

/** A promise that the log breaks. `heading` is the heading of the documents that has the sentence. */
export interface Finding {
  at: number
  heading: string
  message: string
}

/** How exact a world is: what delays an app there beside its own pauses. */
export interface Exactness {
  /** How late a timer of a process may fire. */
  lateMs: number
  /** How long one call of the database may take. */
  storeMs: number
  /** How far the wall clocks of two processes may differ. */
  skewMs: number
  /** Whether the world has somebody who sends forged deliveries. */
  isForged: boolean
}
