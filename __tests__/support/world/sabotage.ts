import type { Marketplace, MarketplaceOptions } from '../../../lib/index.js'
import type { Store } from '../../../lib/store/port/store.js'
import type { FaultName } from '../months/faults.js'
import type { Promised } from './promises.js'

/** Breaks the package in one place: its store, what the app sees of it, its calls of the platform, or its options. */
export interface Sabotage {
  store?(real: Store): Partial<Store>
  marketplace?: Disguise
  fetch?(real: typeof fetch): typeof fetch
  options?: Partial<MarketplaceOptions>
}

/** Another marketplace in place of the real one. */
export type Disguise = (real: Marketplace) => Partial<Marketplace>

/** A sabotage that some world must detect. */
export interface Control extends Sabotage {
  what: string
  /** The promise that it breaks. */
  promised: Promised
}

/** A sabotage of a sentence of the documents. `detect.ts` shows which oracle notices it. */
export interface DocumentedSabotage extends Sabotage {
  what: string
  /** The sentence that it breaks. */
  breaks: string
  /** A change of the package itself, where no wrapper can express the sabotage. */
  source?: SourceChange
  /** A fault of months under which it shows; its worlds take turns with those of seconds. */
  fault?: FaultName
}

/** Replaces the only place of a file that reads `from`. */
export interface SourceChange {
  /** Its path in `lib`. */
  file: string
  from: string
  to: string
}
