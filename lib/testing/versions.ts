import type { FullSubscription } from './full-subscription.js'

/** Which versions a read does not see yet: those younger than `ms`, or followed by fewer than `reads` reads. */
export interface Lag {
  reads?: number
  ms?: number
}

/** One state of a subscription; `record` is undefined once the platform no longer shows it. */
interface Version {
  record: FullSubscription | undefined
  at: number
  /** How many reads did not see it. */
  missed: number
}

/** How many versions are stored. No lag reaches further back. */
const MAX_VERSIONS = 20

/** The history of one subscription, so that a read can lag behind it. */
export class Versions {
  readonly #versions: Version[] = []
  #forgotten = false

  add(record: FullSubscription | undefined, at: number): void {
    this.#versions.push({ record, at, missed: 0 })
    if (this.#versions.length <= MAX_VERSIONS) return
    this.#versions.shift()
    this.#forgotten = true
  }

  get latest(): FullSubscription | undefined {
    return this.#versions.at(-1)?.record
  }

  /** The version that a lagging read sees. Without `reads` and `ms`, the one before the newest. */
  seen({ reads, ms }: Lag, now: number): FullSubscription | undefined {
    for (const version of [...this.#versions].reverse()) {
      const bare = reads === undefined && ms === undefined && version !== this.#versions.at(-1)
      const oldEnough = ms !== undefined && now - version.at >= ms
      const readEnough = reads !== undefined && version.missed >= reads
      if (bare || oldEnough || readEnough) return version.record
      version.missed += 1
    }
    return this.#forgotten ? this.#versions[0]?.record : undefined
  }
}
