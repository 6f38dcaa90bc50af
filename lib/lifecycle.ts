import { fullJitter } from './backoff.js'
import { type Clock, MINUTE, SECOND } from './clock.js'
import { MarketplaceError } from './errors.js'
import { createHold } from './hold.js'
import type { Store } from './store/store.js'
import type { StoreOwner } from './store/store-owner.js'

/**
 * Opens, starts and closes the parts of a marketplace. The calls may come in any order and any number of times. With a
 * worker the process stays alive until `close()` has ended; without one, while a call is under way.
 */
export function createLifecycle(options: {
  store: Pick<Store, 'open' | 'close'>
  owner: StoreOwner
  worker:
    | {
        start(): void
        close(graceMs: number): Promise<void>
      }
    | undefined
  /** Called when the store is open. */
  onOpen(): void
  /** Called before the store is closed. */
  onClose(): void | Promise<void>
  closeTimeoutMs: number
  clock: Clock
  onOpenFailed(error: unknown): void
}) {
  const { store, owner, worker, onOpen, onClose, closeTimeoutMs, clock, onOpenFailed } = options
  const hold = createHold()
  let starting: Promise<void> | undefined
  let closing: Promise<void> | undefined
  let retry: unknown
  let failures = 0
  /** Why the store did not open; undefined before the first try ends, and once the store is open. */
  let notOpen: unknown

  async function open(): Promise<void> {
    try {
      await store.open(owner)
    } catch (error) {
      starting = undefined
      notOpen = error
      throw error
    }
    notOpen = undefined
    if (closing) return
    worker?.start()
    onOpen()
  }

  function start(): Promise<void> {
    if (closing)
      return Promise.reject(
        new MarketplaceError('closed', 'Cannot start the marketplace: close() was called'),
      )
    starting ??= open()
    return starting
  }

  /** Tries again until it succeeds: a database that starts after the app must not need a person. */
  function startUntilOpen() {
    if (closing) return
    start().catch((error) => {
      if (closing) return
      retry = clock.setTimeout(startUntilOpen, SECOND + fullJitter(failures++, SECOND, MINUTE / 2))
      onOpenFailed(error)
    })
  }

  async function close() {
    clock.clearTimeout(retry)
    try {
      await worker?.close(closeTimeoutMs)
    } finally {
      try {
        await onClose()
        await store.close()
      } finally {
        hold.release()
      }
    }
  }

  if (worker) hold.take()
  // The store opens at once. The work begins a turn later, after the app has registered its handlers.
  store.open(owner).catch((error) => {
    notOpen = error
  })
  setImmediate(startUntilOpen)

  return {
    start: () => hold.during(start()),
    isClosed: () => closing !== undefined,
    whyNotOpen: () => notOpen,
    /** Keeps the process alive until `call` has settled. */
    during: hold.during,
    /** The same call, refused after `close()`. It keeps the process alive until it settles. */
    whileOpen<Arguments extends unknown[], T>(call: (...given: Arguments) => Promise<T>) {
      const checked = async (...given: Arguments): Promise<T> => {
        if (closing) throw new MarketplaceError('closed', 'Cannot use the marketplace: close() was called')
        return call(...given)
      }
      return (...given: Arguments): Promise<T> => hold.during(checked(...given))
    },

    close(): Promise<void> {
      closing ??= close()
      return hold.during(closing)
    },
  }
}
