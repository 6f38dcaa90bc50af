import { type Clock, SECOND } from '../clock.js'
import { NoThread, type SqliteThread } from './thread.js'
import type { Turns } from './turns.js'
import type { Wal } from './wal.js'

/** 8 MiB of WAL: some 7,000 deliveries. */
const PAGES = 2_000
/** Looking costs some 4 µs, so it is done once for so many commits. */
const COMMITS_BETWEEN_LOOKS = 16

/**
 * The first commit after a complete checkpoint begins the WAL anew, and syncs its header: the thread makes that commit,
 * of a count that nobody reads (SQLite writes no page whose bytes stay the same).
 */
export const BEGIN_WAL = 'update marketplace_time set wals = wals + 1'

/**
 * Keeps the WAL short. A checkpoint copies it into the database and syncs both, 20 to 50 ms for 8 MiB on an SSD; so a
 * thread does it.
 *
 * The WAL begins anew with the first commit after a checkpoint that left nothing behind. While deliveries come in
 * without a pause, there is always something behind: so a second checkpoint, of the few pages of the meantime, has the
 * turn for itself. A library that two connections must not write with has no first one.
 */
export function createCheckpoints(options: {
  wal: Pick<Wal, 'reaches'>
  thread: SqliteThread
  turns: Turns
  /** Whether others may write during a checkpoint. */
  mayOverlap: boolean
  /** There is no thread: SQLite must do it by itself. */
  onNoThread(): void
  clock: Clock
}): { afterCommit(): void } {
  const { wal, thread, turns, mayOverlap, onNoThread, clock } = options
  let commits = 0
  let isRunning = false
  let notBefore = 0

  async function run() {
    if (mayOverlap) await thread.run('pragma wal_checkpoint(passive)')
    const pass = await turns.take()
    try {
      await thread.run('pragma wal_checkpoint(passive)')
      await thread.run(BEGIN_WAL)
    } finally {
      pass()
    }
  }

  return {
    afterCommit() {
      if (++commits % COMMITS_BETWEEN_LOOKS || isRunning || clock.monotonic() < notBefore) return
      if (!wal.reaches(PAGES)) return
      isRunning = true
      run()
        .catch((error) => {
          // A full disk, say; the commits that need room report it. The thread ends when the store is closed.
          notBefore = clock.monotonic() + 5 * SECOND
          if (error instanceof NoThread) onNoThread()
        })
        .finally(() => {
          isRunning = false
        })
    },
  }
}
