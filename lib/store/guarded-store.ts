import { MarketplaceError, messageOf } from '../errors.js'
import type { Store } from './store.js'

/**
 * Guards a store of the app's own: every call returns a promise, also when the store throws, and rejects with a
 * `MarketplaceError`. Calls wait for an `open` that is under way.
 */
export function guardedStore(store: Store): Store {
  const guarded = new Map<PropertyKey, unknown>()
  let opening: Promise<unknown> | undefined

  function guard(name: string, method: (...given: unknown[]) => unknown) {
    return async (...given: unknown[]) => {
      if (opening && name !== 'close') await opening
      try {
        return await method.apply(store, given)
      } catch (error) {
        throw asStoreError(error, `Cannot use the store: ${name} failed`)
      }
    }
  }

  /** Its caller gets its error. Other calls wait for its end, and the store decides whether they succeed. */
  function guardOpen(open: (...given: unknown[]) => Promise<unknown>) {
    return (...given: unknown[]) => {
      const opened = open(...given)
      const settled: Promise<unknown> = opened
        .catch(() => {})
        .finally(() => {
          if (opening === settled) opening = undefined
        })
      opening = settled
      return opened
    }
  }

  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function' || typeof name === 'symbol') return value
      if (!guarded.has(name)) {
        const method = value as (...given: unknown[]) => unknown
        const call = SYNCHRONOUS.has(name) ? method.bind(store) : guard(name, method)
        guarded.set(name, name === 'open' ? guardOpen(call as ReturnType<typeof guard>) : call)
      }
      return guarded.get(name)
    },
  })
}

/** The calls of the port that return no promise. */
const SYNCHRONOUS = new Set(['subscribe', 'problem'])

/** The error for callers of a store: one of this package, with the message of the driver. */
export function asStoreError(error: unknown, cannot: string): MarketplaceError {
  if (error instanceof MarketplaceError) return error
  return new MarketplaceError('store_unavailable', `${cannot}: ${messageOf(error)}`, { cause: error })
}
