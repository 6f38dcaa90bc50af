import { type Clock, SECOND } from '../clock.js'
import { createDeadlines } from '../deadlines.js'
import { MarketplaceError } from '../errors.js'
import type { Entry } from '../store/store.js'
import type { AnyHandler } from './handlers.js'

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
  /** The number of handlers that have not settled and are within their deadline, by key. */
  const busy = new Map<string, number>()

  /** Marks the key as busy; returns a function that ends this, once. */
  function hold(key: string): () => void {
    busy.set(key, (busy.get(key) ?? 0) + 1)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      const left = (busy.get(key) ?? 1) - 1
      if (left > 0) busy.set(key, left)
      else busy.delete(key)
    }
  }

  return {
    busyKeys: () => [...busy.keys()],
    /** Called when the work has ended. */
    rest: deadlines.rest,

    /**
     * Undefined when the handler has returned without a promise. Otherwise a promise that rejects when the handler
     * rejects, takes too long, or `lost` aborts; the handler may then still run. Throws what the handler throws.
     */
    call(handler: AnyHandler, payload: unknown, entry: Entry, lost: AbortSignal): Promise<void> | undefined {
      let controller: AbortController | undefined
      let ended: MarketplaceError | undefined
      const context = {
        // Created on first use: few handlers use it, and it costs more than all the rest of a call.
        get signal() {
          controller ??= new AbortController()
          if (ended) controller.abort(ended)
          return controller.signal
        },
        attempt: entry.attempt,
        marketplace: marketplace(),
      }
      const returned = around(entry, () => handler(payload, context))
      if (!isThenable(returned)) return undefined
      const release = hold(entry.key)
      return new Promise<void>((resolve, reject) => {
        const end = (error: MarketplaceError) => {
          ended = error
          controller?.abort(error)
          reject(error)
        }
        const onLost = () =>
          end(
            new MarketplaceError(
              'lease_lapsed',
              'Cannot finish the handler: its lease was lost, or the marketplace closes',
            ),
          )
        const seconds = timeoutMs / SECOND
        // The deadline also ends an interrupted handler that ignores its signal. Until then its key stays busy.
        const cancelDeadline = deadlines.set(() => {
          release()
          lost.removeEventListener('abort', onLost)
          end(
            new MarketplaceError('handler_timeout', `Cannot finish the handler: not done after ${seconds} s`),
          )
        })
        lost.addEventListener('abort', onLost, { once: true })
        Promise.resolve(returned)
          .then(() => resolve(), reject)
          .finally(() => {
            release()
            cancelDeadline()
            lost.removeEventListener('abort', onLost)
          })
      })
    },
  }
}

function isThenable(value: unknown): boolean {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  )
}
