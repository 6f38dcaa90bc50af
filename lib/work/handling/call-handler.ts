import { type Clock, SECOND } from '../../base/clock.js'
import { createDeadlines } from '../../base/deadlines.js'
import { MarketplaceError } from '../../base/errors.js'
import { isThenable } from '../../base/waiting.js'
import type { Entry } from '../../store/port/store.js'
import type { AnyHandler, HandlerContext } from './handlers.js'

/** Calls one handler with its deadline, and knows the keys whose handlers still run. */
export function createHandlerCall(options: {
  marketplace: () => unknown
  timeoutMs: number
  clock: Clock
  /** Runs around each call of a handler, and returns its result. */
  around?: ((entry: Entry, call: () => unknown) => unknown) | undefined
}) {
  const { marketplace, timeoutMs, clock, around = (_entry, call) => call() } = options
  const deadlines = createDeadlines(timeoutMs, clock)
  const busy = createBusyKeys()

  return {
    /** The keys of handlers that have not settled and are within their deadline. */
    busyKeys: busy.keys,
    /** Called when the work has ended. */
    rest: deadlines.rest,

    /**
     * Undefined when the handler has returned without a promise. Otherwise a promise that rejects when the handler
     * rejects, takes too long, or `lost` aborts; the handler may then still run. Throws what the handler throws.
     */
    call(handler: AnyHandler, payload: unknown, entry: Entry, lost: AbortSignal): Promise<void> | undefined {
      const interruption = createInterruption()
      const context = new CallContext(entry.attempt, marketplace(), interruption)
      const returned = around(entry, () => handler(payload, context))
      if (!isThenable(returned)) return undefined
      const release = busy.mark(entry.key)
      return new Promise<void>((resolve, reject) => {
        const interrupt = (error: MarketplaceError) => {
          interruption.abort(error)
          reject(error)
        }
        const onLost = () => interrupt(leaseLost())
        // It also ends the wait for an interrupted handler that ignores its signal. Until then its key stays busy.
        const cancelDeadline = deadlines.set(() => {
          end()
          interrupt(tooLate(timeoutMs))
        })
        const end = () => {
          release()
          cancelDeadline()
          lost.removeEventListener('abort', onLost)
        }
        lost.addEventListener('abort', onLost, { once: true })
        Promise.resolve(returned)
          .then(() => resolve(), reject)
          .finally(end)
      })
    },
  }
}

/** The number of running handlers by key. */
function createBusyKeys() {
  const running = new Map<string, number>()

  return {
    keys: () => [...running.keys()],
    /** Marks the key as busy; returns a function that ends this, once. */
    mark(key: string): () => void {
      running.set(key, (running.get(key) ?? 0) + 1)
      let isMarked = true
      return () => {
        if (!isMarked) return
        isMarked = false
        const left = (running.get(key) ?? 1) - 1
        if (left > 0) running.set(key, left)
        else running.delete(key)
      }
    },
  }
}

/**
 * The context of one call. All contexts share the getter: V8 makes a hidden class for an object with a getter of its own,
 * and such a class, which is old at once, keeps the getter, the payload and the entry. Of each event that was handled
 * 1 KB stayed in memory until the next full collection.
 */
class CallContext implements HandlerContext<unknown> {
  static readonly #signal = {
    enumerable: true,
    get(this: CallContext): AbortSignal {
      return this.#interruption.signal()
    },
  }
  declare readonly signal: AbortSignal
  readonly #interruption: Interruption

  constructor(
    readonly attempt: number,
    readonly marketplace: unknown,
    interruption: Interruption,
  ) {
    this.#interruption = interruption
    // Its own, so that a copy by `{ ...context }` has it too.
    Object.defineProperty(this, 'signal', CallContext.#signal)
  }
}

type Interruption = ReturnType<typeof createInterruption>

/** The signal of one call, created on first use: few handlers use it, and it costs more than all the rest of a call. */
function createInterruption() {
  let controller: AbortController | undefined
  let reason: MarketplaceError | undefined

  return {
    signal(): AbortSignal {
      controller ??= new AbortController()
      if (reason) controller.abort(reason)
      return controller.signal
    },
    abort(error: MarketplaceError) {
      reason = error
      controller?.abort(error)
    },
  }
}

function leaseLost() {
  const why = 'its lease was lost, or the marketplace closes. The entry is handled again'
  return new MarketplaceError('lease_lapsed', `Cannot finish the handler: ${why}`)
}

function tooLate(timeoutMs: number) {
  const why =
    `it has not ended after ${timeoutMs / SECOND} s. Make it faster, let it end when context.signal aborts, ` +
    'or raise handlers.timeoutMs'
  return new MarketplaceError('handler_timeout', `Cannot finish the handler: ${why}`)
}
