import { fullJitter } from './base/backoff.js'
import { type Clock, MINUTE, SECOND } from './base/clock.js'
import { MarketplaceError } from './base/errors.js'
import type { Store, StoreOwner } from './store/port/store.js'

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
  const keepAlive = createKeepAlive()
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
        keepAlive.end()
      }
    }
  }

  if (worker) keepAlive.begin()
  // The store opens at once. The work begins a turn later, after the app has registered its handlers.
  store.open(owner).catch((error) => {
    notOpen = error
  })
  setImmediate(startUntilOpen)

  /** Wraps a call: it is refused after `close()`, and keeps the process alive until it settles. */
  function whileOpen<Arguments extends unknown[], T>(call: (...given: Arguments) => Promise<T>) {
    const checked = async (...given: Arguments): Promise<T> => {
      if (closing) throw new MarketplaceError('closed', 'Cannot use the marketplace: close() was called')
      return call(...given)
    }
    return (...given: Arguments): Promise<T> => keepAlive.during(checked(...given))
  }

  return {
    start: () => keepAlive.during(start()),
    isClosed: () => closing !== undefined,
    whyNotOpen: () => notOpen,
    /** Keeps the process alive until `call` has settled. */
    during: keepAlive.during,
    whileOpen,

    /** Wraps a call whose result comes in pieces: each piece is a call. */
    eachWhileOpen<Arguments extends unknown[], T>(call: (...given: Arguments) => AsyncGenerator<T, void>) {
      return async function* pieces(...given: Arguments): AsyncGenerator<T, void> {
        const from = call(...given)
        const next = whileOpen(() => from.next())
        try {
          for (let piece = await next(); !piece.done; piece = await next()) yield piece.value
        } finally {
          await from.return()
        }
      }
    },

    close(): Promise<void> {
      closing ??= close()
      return keepAlive.during(closing)
    },
  }
}

/**
 * Keeps the process alive while it is needed. The timers of this package do not keep it alive. Without this, a process
 * that only waits for work, or for one call of this package, would end silently with code 0 or 13.
 */
export function createKeepAlive() {
  let calls = 0
  let hasBegun = false
  let timer: NodeJS.Timeout | undefined

  function update() {
    if (hasBegun || calls > 0) {
      // A timer of Node, not of the app's clock: it does not measure time.
      timer ??= setInterval(() => {}, LONG_MS)
    } else {
      clearInterval(timer)
      timer = undefined
    }
  }

  function callEnded() {
    if (--calls === 0) update()
  }

  return {
    /** Keeps the process alive until `end`. */
    begin() {
      hasBegun = true
      update()
    },
    end() {
      hasBegun = false
      update()
    },
    /** Keeps the process alive until `promise` settles; returns the same promise. */
    during<T>(promise: Promise<T>): Promise<T> {
      if (++calls === 1) update()
      promise.then(callEnded, callEnded)
      return promise
    },
  }
}

const LONG_MS = 2 ** 30
