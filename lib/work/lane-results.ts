import type { Entry, LaneClaim } from '../store/store.js'
import type { Handled } from './call-handlers.js'
import type { createLaneFinishes } from './lane-finishes.js'

interface HandledEntry {
  entry: Entry
  result: Handled
}

/** The results of one leased lane, until they are written. */
export function createLaneResults(options: {
  lane: LaneClaim
  finishes: ReturnType<typeof createLaneFinishes>
  lost: AbortSignal
  onWritten(handled: HandledEntry): void
}) {
  const { lane, finishes, lost, onWritten } = options
  const unwritten: HandledEntry[] = []
  let isHeld = true
  /** No further result follows, so the next write ends the lease. */
  let isComplete = false
  /** A write has ended the lease. */
  let isReleased = false
  let writing: Promise<unknown> | undefined

  async function write() {
    let written: HandledEntry[] = []
    isHeld = await finishes.write(() => {
      written = unwritten.splice(0)
      isReleased = isComplete
      const results = written.map(({ entry: { id, attempt }, result: { report: _, ...result } }) => ({
        id,
        attempt,
        result,
      }))
      const bytes = written.reduce((sum, { entry: { payload } }) => sum + payload.length, 0)
      return { finish: { id: lane.id, leaseToken: lane.leaseToken, results, keepLease: !isComplete }, bytes }
    }, lost)
    if (isHeld) written.forEach(onWritten)
  }

  return {
    /** False when a write has found that the lease is lost. */
    isHeld: () => isHeld,
    add(entry: Entry, result: Handled) {
      unwritten.push({ entry: result.isUntried ? { ...entry, attempt: entry.attempt - 1 } : entry, result })
    },
    /** Writes while the next entry is handled, so that little is repeated if the process ends. */
    writeSoon() {
      writing ??= write().finally(() => {
        writing = undefined
      })
      writing.catch(() => {})
    },
    /** Writes the rest, and ends the lease. */
    async complete() {
      isComplete = true
      await writing
      if (isHeld && !isReleased) await write()
    },
  }
}
