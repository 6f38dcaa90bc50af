import type { Clock } from '../../base/clock.js'
import type { SqliteConnection } from '../drivers.js'

const EVERY_MS = 500

/** Looks for commits of other processes, and calls `onCommit` for them. Returns the function that ends that. */
export function watchCommits(
  connection: () => SqliteConnection | undefined,
  onCommit: (connection: SqliteConnection) => void,
  clock: Clock,
): () => void {
  let seen: unknown
  let timer: unknown

  function look() {
    try {
      // The number changes when another connection commits. Reading it takes a few microseconds.
      const current = connection()
      const [row] = (current?.all('pragma data_version', []) ?? []) as { data_version: number }[]
      if (current && seen !== undefined && row?.data_version !== seen) onCommit(current)
      seen = row?.data_version
    } catch {
      // The next transaction reports the error.
    }
    timer = clock.setTimeout(look, EVERY_MS)
  }

  look()
  return () => clock.clearTimeout(timer)
}
