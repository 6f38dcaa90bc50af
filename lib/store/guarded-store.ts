import { MarketplaceError, messageOf } from '../errors.js'
import type { Store } from './store.js'

/**
 * A store of the app's own as the rest of the package relies on it: every call returns a promise, whatever the store
 * throws, and rejects with a `MarketplaceError`.
 */
export function guardedStore(store: Store): Store {
  const guarded = new Map<PropertyKey, unknown>()

  function guard(name: string, method: (...given: unknown[]) => unknown) {
    return async (...given: unknown[]) => {
      try {
        return await method.apply(store, given)
      } catch (error) {
        throw asStoreError(error, `Cannot use the store: ${name} failed`)
      }
    }
  }

  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function' || typeof name === 'symbol') return value
      if (!guarded.has(name)) {
        const method = value as (...given: unknown[]) => unknown
        guarded.set(name, SYNCHRONOUS.has(name) ? method.bind(store) : guard(name, method))
      }
      return guarded.get(name)
    },
  })
}

/** The calls of the port that return no promise. */
const SYNCHRONOUS = new Set(['subscribe', 'problem'])

/** What a caller of a store may see: an error of this package, with what the driver said in words. */
export function asStoreError(error: unknown, cannot: string): MarketplaceError {
  if (error instanceof MarketplaceError) return error
  return new MarketplaceError('store_unavailable', `${cannot}: ${messageOf(error)}`, { cause: error })
}
