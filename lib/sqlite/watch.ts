import type { Clock } from '../clock.js'
import { ANYTHING } from '../store/engine.js'
import type { Hint } from '../store/store.js'
import type { SqliteConnection } from './drivers.js'

const EVERY_MS = 500

/** Looks for commits of other processes, and calls `onHint` for them. Returns the function that ends that. */
export function watchCommits(
  connection: () => SqliteConnection | undefined,
  onHint: (hint: Hint) => void,
  clock: Clock,
): () => void {
  let seen: unknown
  let timer: unknown

  function look() {
    try {
      // It changes when another connection commits. Reading it takes a few microseconds.
      const [row] = (connection()?.all('pragma data_version', []) ?? []) as { data_version: number }[]
      if (seen !== undefined && row?.data_version !== seen) ANYTHING.forEach(onHint)
      seen = row?.data_version
    } catch {
      // The next transaction reports the error.
    }
    timer = clock.setTimeout(look, EVERY_MS)
  }

  look()
  return () => clock.clearTimeout(timer)
}
