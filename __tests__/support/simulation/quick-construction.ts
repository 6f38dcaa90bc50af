import { LRUCache } from 'lru-cache'

/**
 * To be imported before the package. A run makes a handful of instances, and most of its time would go into making them:
 * each has three caches, which lay out room for 10,000 entries. Here they lay out less.
 */
class SmallCache extends LRUCache<object, object> {
  constructor(options: { max: number }) {
    super({ max: Math.min(options.max, 50) })
  }
}

// Compiled to CommonJS, as here, all importers look into one object.
Object.assign(require('lru-cache') as object, { LRUCache: SmallCache })
