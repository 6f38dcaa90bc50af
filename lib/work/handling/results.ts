import { createBatches } from '../../base/batches.js'
import type { Clock } from '../../base/clock.js'
import type { Entry, LaneClaim, LaneFinish, Store } from '../../store/port/store.js'
import { isRetryable, writeWhileLeased } from '../leases/lease.js'
import type { Handled } from './call-handlers.js'

interface HandledEntry {
  entry: Entry
  result: Handled
}

/** The results of one leased lane, until they are written. */
export function createLaneResults(options: {
  lane: LaneClaim
  finishes: ReturnType<typeof createResultWrites>
  interrupted: AbortSignal
  onWritten(handled: HandledEntry): void
}) {
  const { lane, finishes, interrupted, onWritten } = options
  const unwritten: HandledEntry[] = []
  let isHeld = true
  /** No further result follows, so the next write ends the lease. */
  let isComplete = false
  /** A write has ended the lease. */
  let isReleased = false
  let hasFailed = false
  let writing: Promise<unknown> | undefined

  function finishOf(handled: readonly HandledEntry[], keepLease: boolean): LaneFinish {
    const results = handled.map(
      ({ entry: { id, attempt }, result: { report: _, thrown: __, ...result } }) => ({ id, attempt, result }),
    )
    return { id: lane.id, leaseToken: lane.leaseToken, results, keepLease }
  }

  /** A finish for each entry, in their order: some may be written, and others not. */
  const finishesOfEach = (): Unanswered[] =>
    unwritten.map((each, i) => ({
      finish: finishOf([each], i < unwritten.length - 1),
      onWritten: () => onWritten(each),
    }))

  async function write() {
    let written: HandledEntry[] = []
    const held = finishes.write(() => {
      written = unwritten.splice(0)
      isReleased = isComplete
      const bytes = written.reduce((sum, { entry: { payload } }) => sum + payload.length, 0)
      return { finish: finishOf(written, !isComplete), bytes }
    }, interrupted)
    isHeld = await held.catch((error) => {
      // The next write begins with them: a later entry must not be done before an earlier one.
      unwritten.unshift(...written)
      hasFailed = true
      isReleased = false
      throw error
    })
    if (isHeld) written.forEach(onWritten)
    else unwritten.unshift(...written)
  }

  return {
    /** False when a write has failed, or has found that the lease is lost. Then no further entry is handled. */
    isHeld: () => isHeld && !hasFailed,
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
      let isRefused = false
      try {
        await writing
        if (isHeld && !isReleased) await write()
      } catch (error) {
        isRefused = !isRetryable(error)
        throw error
      } finally {
        // Perhaps only an answer was lost, and nobody else reports what has become dead.
        const hasDead = unwritten.some(({ result }) => result.kind === 'dead')
        if (hasDead && !isRefused) finishes.repeatLater(finishesOfEach())
      }
    },
  }
}

/** The most entries of one transaction. SQLite takes about 2 ms if each is of another lane. */
const BATCH = 64
/**
 * A transaction takes no further finish when its entries have payloads of this many bytes: SQLite writes the whole row
 * of an entry again.
 */
const BATCH_BYTES = 1024 * 1024

/**
 * Writes the results of entries, many lanes in one transaction. A short outage of the database must not cost a whole
 * lease, so a failed write is tried again while its lane is leased.
 */
export function createResultWrites(options: { store: Pick<Store, 'finishLanes'>; clock: Clock }) {
  const { store, clock } = options
  /** By lane, the oldest first. */
  const unanswered = new Set<Unanswered[]>()

  const batches = createBatches<() => SizedFinish, boolean>({
    take() {
      let [entries, bytes] = [0, 0]
      return (finishOf) => {
        if (entries >= BATCH || bytes >= BATCH_BYTES) return false
        const { finish, bytes: more } = finishOf()
        entries += Math.max(1, finish.results.length)
        bytes += more
        return true
      }
    },
    async write(batch) {
      const finishes = batch.map((finishOf) => finishOf().finish)
      const held = new Set(await store.finishLanes(finishes))
      return finishes.map(({ id }) => held.has(id))
    },
    split: (error) => !isRetryable(error),
  })

  return {
    /**
     * Writes the finish that `take` returns, called just before the write, so that later results share the transaction.
     * Resolves with whether the lease was still held. Rejects if it was lost before the write succeeded.
     */
    write(take: () => SizedFinish, interrupted: AbortSignal): Promise<boolean> {
      let taken: SizedFinish | undefined
      const finishOf = () => {
        taken ??= take()
        return taken
      }
      return writeWhileLeased(() => batches.add(finishOf), interrupted, clock)
    },

    /** Takes finishes of a lane that are not known to be written, for `repeat`. */
    repeatLater(ofLane: Unanswered[]) {
      unanswered.add(ofLane)
      for (const oldest of unanswered) if (unanswered.size > MAX_UNANSWERED) unanswered.delete(oldest)
    },

    /**
     * Repeats them, before the next claim. If one is written, or is written now because nobody has taken the lane, it is as if
     * its answer had come in time. Never rejects: without an answer the next call repeats it.
     */
    async repeat() {
      try {
        for (const ofLane of unanswered) {
          for (let next = ofLane[0]; next; next = ofLane[0]) {
            const held = await store.finishLanes([next.finish])
            ofLane.shift()
            if (held.length > 0) next.onWritten()
          }
          unanswered.delete(ofLane)
        }
      } catch (error) {
        const [first] = unanswered
        if (first && !isRetryable(error)) unanswered.delete(first)
      }
    },
  }
}

/** The finish of one entry, and what follows it. */
interface Unanswered {
  finish: LaneFinish
  onWritten(): void
}

/** Lanes whose finishes are repeated: in an outage, those that were leased. */
const MAX_UNANSWERED = 100

/** A finish, and the length of the payloads of its entries. */
interface SizedFinish {
  finish: LaneFinish
  bytes: number
}
