import { type Clock, SECOND } from '../../base/clock.js'
import type { Mutex } from '../mutex.js'
import { NoThread, type SqliteThread } from './thread.js'
import type { Wal } from './wal.js'

/** 8 MiB of WAL: about 7,000 deliveries. */
const MAX_PAGES = 2_000
/** A look at the WAL takes about 4 µs, so it is done once for this many commits. */
const COMMITS_BETWEEN_LOOKS = 16

/**
 * The first commit after a complete checkpoint restarts the WAL and syncs its header, so the thread makes that commit. It
 * writes a counter that is never read, because SQLite writes no page whose bytes stay the same.
 */
export const BEGIN_WAL = 'update marketplace_time set wals = wals + 1'

/**
 * Limits the length of the WAL by two checkpoints in the thread: one beside the writers, and one without writers, after
 * which the WAL can restart. A library whose files must not be shared runs only the second. See
 * docs/decisions/sqlite-thread.md.
 */
export function createCheckpoints(options: {
  wal: Pick<Wal, 'reaches'>
  thread: SqliteThread
  mutex: Mutex
  /** Whether others may write during a checkpoint. */
  mayOverlap: boolean
  /** Called when there is no thread, so that SQLite makes checkpoints by itself. */
  onNoThread(): void
  /** Called when a checkpoint fails, which may be a failed sync. */
  onFailure(error: unknown): void
  clock: Clock
}): { afterCommit(): void } {
  const { wal, thread, mutex, mayOverlap, onNoThread, onFailure, clock } = options
  let commits = 0
  let isRunning = false
  let notBefore = 0

  async function run() {
    if (mayOverlap) await thread.run('pragma wal_checkpoint(passive)')
    const unlock = await mutex.lock()
    try {
      await thread.run('pragma wal_checkpoint(passive)')
      await thread.run(BEGIN_WAL)
    } finally {
      unlock()
    }
  }

  return {
    afterCommit() {
      if (++commits % COMMITS_BETWEEN_LOOKS || isRunning || clock.monotonic() < notBefore) return
      if (!wal.reaches(MAX_PAGES)) return
      isRunning = true
      run()
        .catch((error) => {
          // A closed store ends the thread.
          notBefore = clock.monotonic() + 5 * SECOND
          if (error instanceof NoThread) onNoThread()
          else onFailure(error)
        })
        .finally(() => {
          isRunning = false
        })
    },
  }
}
