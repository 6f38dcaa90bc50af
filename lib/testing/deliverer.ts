import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Clock } from '../base/clock.js'
import type { EventName } from '../events/registry.js'
import type { Registrations } from './endpoints.js'
import { type DeliveryStyle, envelopeOf, type Happening, type SentEnvelope } from './envelopes.js'
import type { ActiveFault, FaultKind, FaultRules } from './faults.js'
import { type Seeded, shuffled } from './random.js'

/** One finished try to deliver an event. */
export interface Delivery {
  /** Its index in `deliveries`, for `redeliver`. */
  index: number
  /** The registration name. */
  event: EventName
  /** The registered address. It holds the receiver's delivery secret: do not print it. */
  target: string
  /** The text that was sent. */
  body: string
  /** The envelope that was sent. */
  envelope: SentEnvelope
  /** The status of the reply; undefined when there was none. */
  status?: number
  /** Why there was no reply: `dropped`, `hung up`, `timeout`, `closed`, or a code such as `ECONNREFUSED`. */
  error?: string
  /** 1 for the first try; more only with the `retries` option. */
  attempt: number
  /** The business that it concerns. */
  business_uid: string
  /** The subscription that it concerns; install events concern none. */
  subscription_uid?: string
  /** The faults that struck it. */
  faults: readonly FaultKind[]
  /** When the try ended: milliseconds since 1970. */
  at: number
}

interface DelivererOptions {
  clock: Clock
  seed: Seeded
  registrations: Registrations
  faults: FaultRules
  deliveryStyle: DeliveryStyle
  retries: number
  retryDelayMs: number
  deliveryTimeoutMs: number
  deliveryConcurrency: number
  onDelivery: (delivery: Delivery) => void
}

type Message = Omit<Delivery, 'index' | 'status' | 'error' | 'at'> & { key: string; hangUp: boolean }

/** The queue of one target. */
interface Lane {
  waiting: Message[]
  sending: number
}

/**
 * Sends deliveries: those to one target in order, `deliveryConcurrency` at a time, unless a fault changes that.
 * A message is under way (delayed, held, queued, or being sent) until its last try is in the log.
 */
export class Deliverer {
  readonly log: Delivery[] = []
  readonly #options: DelivererOptions
  readonly #lanes = new Map<string, Lane>()
  readonly #held = new Map<number, { message: Message; delayMs: number }[]>()
  readonly #timers = new Set<unknown>()
  readonly #posts = new Set<Post>()
  #underWay = 0
  #closed = false
  #waiters: (() => void)[] = []

  constructor(options: DelivererOptions) {
    this.#options = options
  }

  /** Sends an event to every target that is registered for it. */
  deliver(happening: Happening): void {
    const { registrations, deliveryStyle: style } = this.#options
    const envelope = envelopeOf(happening, style)
    const body = JSON.stringify(style.arrays ? [envelope] : envelope)
    const about =
      'record' in happening
        ? { business_uid: happening.record.business_uid, subscription_uid: happening.record.uid }
        : { business_uid: happening.businessUid }
    for (const { number, event, target } of registrations.for(happening)) {
      // The registration's number stands for the target, whose port differs from run to run.
      const key = `${number}/${event}/${about.business_uid}/${about.subscription_uid ?? ''}`
      this.#accept({ event, target, body, envelope, attempt: 1, ...about, faults: [], key, hangUp: false })
    }
  }

  /** Sends a logged delivery again with the same text. Faults strike it like any other delivery. */
  redeliver({ event, target, body, envelope, business_uid, subscription_uid }: Delivery): void {
    const about = subscription_uid === undefined ? { business_uid } : { business_uid, subscription_uid }
    const key = `again/${event}/${business_uid}/${subscription_uid ?? ''}`
    this.#accept({ event, target, body, envelope, attempt: 1, ...about, faults: [], key, hangUp: false })
  }

  /** Resolves when no message is under way. Releases deliveries that a `reorder` fault still holds. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiters.push(resolve)
      this.#settle()
    })
  }

  /** Releases the deliveries of an ended fault, at the end of this turn, when its last strike is held as well. */
  releaseAfter(fault: ActiveFault): void {
    queueMicrotask(() => this.#release(fault.number))
  }

  close(): void {
    this.#closed = true
    for (const timer of this.#timers) this.#options.clock.clearTimeout(timer)
    for (const lane of this.#lanes.values()) lane.waiting = []
    for (const under of this.#posts) under.abort('closed')
    this.#held.clear()
    this.#underWay = 0
    this.#settle()
  }

  #accept(message: Message): void {
    if (this.#closed) return
    const strike = this.#options.faults.strike('delivery', {
      key: message.key,
      event: message.event,
      businessUid: message.business_uid,
      subscriptionUid: message.subscription_uid,
    })
    const hangUp = strike.end?.kind === 'hangUp'
    const struck = { ...message, faults: strike.kinds, hangUp }
    if (strike.end?.kind === 'drop') {
      this.#note(struck, { error: 'dropped' })
      return
    }
    const copies = strike.what?.kind === 'duplicate' ? (strike.what.copies ?? 1) : 0
    for (let copy = 0; copy <= copies; copy++) {
      this.#underWay += 1
      if (strike.end?.kind === 'reorder')
        this.#hold(strike.end.number, strike.end.hold, struck, strike.delayMs)
      else this.#after(strike.delayMs, () => this.#queue(struck))
    }
  }

  #hold(fault: number, hold: number, message: Message, delayMs: number): void {
    const held = this.#held.get(fault) ?? []
    this.#held.set(fault, held)
    held.push({ message, delayMs })
    if (held.length >= hold) this.#release(fault)
    else this.#settle()
  }

  #release(fault: number): void {
    const held = this.#held.get(fault) ?? []
    this.#held.delete(fault)
    const order = this.#options.seed.stream(`reorder/${fault}/${held[0]?.message.key}/${held.length}`)
    for (const { message, delayMs } of shuffled(held, order)) this.#after(delayMs, () => this.#queue(message))
  }

  #after(delayMs: number, then: () => void): void {
    if (delayMs <= 0) {
      then()
      return
    }
    const timer = this.#options.clock.setTimeout(() => {
      this.#timers.delete(timer)
      then()
    }, delayMs)
    this.#timers.add(timer)
  }

  #queue(message: Message): void {
    const lane = this.#lanes.get(message.target) ?? { waiting: [], sending: 0 }
    this.#lanes.set(message.target, lane)
    lane.waiting.push(message)
    this.#next(lane)
  }

  #next(lane: Lane): void {
    while (lane.sending < this.#options.deliveryConcurrency) {
      const message = lane.waiting.shift()
      if (message === undefined) return
      lane.sending += 1
      void this.#send(message).then(() => {
        lane.sending -= 1
        this.#next(lane)
        this.#settle()
      })
    }
  }

  async #send(message: Message): Promise<void> {
    const { deliveryStyle: style, deliveryTimeoutMs: timeoutMs, clock, retries, retryDelayMs } = this.#options
    const { target, body, hangUp } = message
    const sending = post({ target, body, style, hangUp, timeoutMs, clock })
    this.#posts.add(sending)
    const outcome = await sending.done
    this.#posts.delete(sending)
    this.#note(message, outcome)
    if (this.#closed) return
    const accepted = 'status' in outcome && outcome.status >= 200 && outcome.status < 300
    if (accepted || message.attempt > retries) this.#underWay -= 1
    else
      this.#after(retryDelayMs, () =>
        this.#queue({ ...message, attempt: message.attempt + 1, hangUp: false }),
      )
  }

  #note({ key: _key, hangUp: _hangUp, ...message }: Message, outcome: Outcome): void {
    const delivery = { ...message, ...outcome, index: this.log.length, at: this.#options.clock.now() }
    this.log.push(delivery)
    this.#options.onDelivery(delivery)
  }

  /** Resolves `settled()` when no message is under way; releases held messages when only those are left. */
  #settle(): void {
    if (this.#waiters.length === 0) return
    const held = [...this.#held.values()].reduce((sum, { length }) => sum + length, 0)
    if (this.#underWay > held) return
    if (held > 0) {
      for (const fault of [...this.#held.keys()]) this.#release(fault)
      return
    }
    for (const resolve of this.#waiters.splice(0)) resolve()
  }
}

/** The rest of a longer reply is not read. */
const MAX_REPLY_BYTES = 64 * 1024

/** The outcome of a delivery: the status of the reply, or why there was none (an error code, never an address). */
export type Outcome = { status: number } | { error: string }

export interface Post {
  done: Promise<Outcome>
  /** Stops at once; `done` resolves. */
  abort(why: string): void
}

/**
 * Sends one delivery over a new connection. A reused connection would lose deliveries to targets that restart, and the
 * platform does not promise to send them again.
 */
export function post(options: {
  target: string
  body: string
  style: DeliveryStyle
  hangUp: boolean
  timeoutMs: number
  clock: Clock
}): Post {
  const { target, body, style, hangUp, timeoutMs, clock } = options
  const { contentType = 'application/json', chunked = false, expectContinue = false } = style
  const request = (target.startsWith('https:') ? httpsRequest : httpRequest)(target, {
    method: 'POST',
    agent: false,
    headers: {
      ...(contentType === null ? {} : { 'Content-Type': contentType }),
      ...(chunked ? { 'Transfer-Encoding': 'chunked' } : { 'Content-Length': Buffer.byteLength(body) }),
      ...(expectContinue ? { Expect: '100-continue' } : {}),
    },
  })

  let finish: (outcome: Outcome) => void = () => {}
  const done = new Promise<Outcome>((resolve) => {
    finish = resolve
  })
  const abort = (why: string) => {
    finish({ error: why })
    request.destroy()
  }
  const timer = clock.setTimeout(() => abort('timeout'), timeoutMs)
  request.on('error', (error: NodeJS.ErrnoException) => finish({ error: error.code ?? 'error' }))
  request.on('response', (response) => {
    const { statusCode: status = 0 } = response
    // The status counts even if the connection closes before the rest of the reply.
    response.on('close', () => finish({ status }))
    response.on('error', () => {})
    let bytes = 0
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > MAX_REPLY_BYTES) finish({ status })
    })
  })
  if (hangUp) request.on('finish', () => abort('hung up'))
  if (expectContinue) {
    request.flushHeaders()
    request.on('continue', () => request.end(body))
  } else if (chunked) {
    const half = Math.ceil(body.length / 2)
    request.write(body.slice(0, half))
    request.end(body.slice(half))
  } else {
    request.end(body)
  }
  return {
    done: done.finally(() => {
      clock.clearTimeout(timer)
      request.destroy()
    }),
    abort,
  }
}
