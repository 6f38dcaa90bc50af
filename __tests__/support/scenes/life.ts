import { createMarketplace, type Marketplace, type MarketplaceOptions } from '../../../lib/index.js'
import type { Store } from '../../../lib/store/port/store.js'
import { storeOption } from '../engines/store-option.js'
import type { VirtualClock } from '../machine/virtual-clock.js'

// A killed life is never closed, so it never releases its hold on the process. Here that is the process of the tests.
const { setInterval } = globalThis
globalThis.setInterval = ((callback: () => void, delayMs: number) =>
  setInterval(callback, delayMs).unref()) as typeof setInterval

/** The calls of a database that are under way: while there are any, virtual time stands still. */
export function createCalls() {
  let underWay = 0
  return {
    isBusy: () => underWay > 0,
    async follow<T>(call: Promise<T>): Promise<T> {
      underWay++
      try {
        return await call
      } finally {
        underWay--
      }
    },
  }
}

/** An app as a process on a database, in virtual time. After `kill`, none of its code runs any more. */
export function createLife(options: {
  clock: VirtualClock
  database: Store
  calls: ReturnType<typeof createCalls>
  fetch: typeof fetch
  marketplace: Omit<MarketplaceOptions, 'platform' | 'store' | 'clock'>
}): { marketplace: Marketplace; kill(): void } {
  const { clock, database, calls, fetch } = options
  const own = clock.forProcess()
  const unsubscribes: (() => void)[] = []
  let isKilled = false

  /** A life that was killed during the call never gets the result. */
  const follow = (call: Promise<unknown>) =>
    calls.follow(call).finally(() => (isKilled ? new Promise(() => {}) : undefined))

  const store = new Proxy(database, {
    get(target, name: keyof Store) {
      if (name === 'close') return async () => {}
      if (name === 'problem') return () => target.problem?.() ?? null
      if (name === 'subscribe') {
        return (listener: Parameters<Store['subscribe']>[0]) => {
          const unsubscribe = target.subscribe((hint) => void (isKilled || listener(hint)))
          unsubscribes.push(unsubscribe)
          return unsubscribe
        }
      }
      const method = target[name] as (...args: unknown[]) => Promise<unknown>
      return (...args: unknown[]) => (isKilled ? new Promise(() => {}) : follow(method(...args)))
    },
  })
  return {
    marketplace: createMarketplace({
      closeTimeoutMs: 1_000,
      ...options.marketplace,
      store: storeOption(store),
      clock: own,
      platform: { baseUrl: 'https://platform.test', authUrl: 'https://auth.test', fetch },
    }),
    kill() {
      isKilled = true
      own.kill()
      for (const unsubscribe of unsubscribes) unsubscribe()
    },
  }
}
