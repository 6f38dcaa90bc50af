import { LRUCache } from 'lru-cache'

/**
 * Import this file before the package. A run makes several instances, each with three caches, and a cache of 10,000
 * entries takes most of the time to make. These caches are smaller.
 */
class SmallCache extends LRUCache<object, object> {
  constructor(options: { max: number }) {
    super({ max: Math.min(options.max, 50) })
  }
}

// The files are compiled to CommonJS here, so all importers use the same object.
Object.assign(require('lru-cache') as object, { LRUCache: SmallCache })
