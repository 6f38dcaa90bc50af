import { type Clock, SECOND } from '../../base/clock.js'
import { createDeadlines } from '../../base/deadlines.js'
import { MarketplaceError } from '../../base/errors.js'
import { isThenable } from '../../base/waiting.js'
import type { Entry } from '../../store/port/store.js'
import type { AnyHandler, HandlerContext } from './handlers.js'

/** Calls one handler, with its context and its deadline. */
export function createHandlerCall(options: {
  marketplace: () => unknown
  timeoutMs: number
  clock: Clock
  /** Runs around each call of a handler, and returns its result. */
  around?: ((entry: Entry, call: () => unknown) => unknown) | undefined
}) {
  const { marketplace, timeoutMs, clock, around = (_entry, call) => call() } = options
  const deadlines = createDeadlines(timeoutMs, clock)

  return {
    /** Called when the work has ended. */
    rest: deadlines.rest,

    /**
     * Undefined when the handler has returned without a promise. Otherwise a promise that settles as that of the handler
     * does, and rejects at the deadline. `interrupted` only aborts the signal of the handler: its slot and its lane
     * stay taken while it runs. Throws what the handler throws.
     */
    call(
      handler: AnyHandler,
      payload: unknown,
      entry: Entry,
      interrupted: AbortSignal,
    ): Promise<void> | undefined {
      const interruption = createInterruption()
      const context = new CallContext(entry.attempt, marketplace(), interruption)
      const returned = around(entry, () => handler(payload, context))
      if (!isThenable(returned)) return undefined
      return new Promise<void>((resolve, reject) => {
        const onInterrupted = () => interruption.abort(leaseLost())
        const cancelDeadline = deadlines.set(() => {
          end()
          const error = tooLate(timeoutMs)
          interruption.abort(error)
          reject(error)
        })
        const end = () => {
          cancelDeadline()
          interrupted.removeEventListener('abort', onInterrupted)
        }
        interrupted.addEventListener('abort', onInterrupted, { once: true })
        Promise.resolve(returned)
          .then(() => resolve(), reject)
          .finally(end)
      })
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
      reason ??= error
      controller?.abort(reason)
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
