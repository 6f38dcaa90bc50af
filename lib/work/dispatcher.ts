import type { Clock } from '../clock.js'
import {
  type DeadEntry,
  type Entry,
  type EntryEnd,
  type LaneClaim,
  MAX_LAPSES,
  type Store,
} from '../store/store.js'
import { createHandlerCalls, type Handled } from './call-handlers.js'
import { createLaneFinishes } from './lane-finishes.js'
import { createLaneResults } from './lane-results.js'
import { createLaneSlots, PATIENCE_MS } from './lane-slots.js'
import { createLeaseLoop, type LeaseLoop } from './lease-loop.js'
import { createSlices } from './slices.js'

/**
 * Entries that one claim reads: SQLite takes about 2 ms for as many lanes with payloads of some hundred bytes. With twice
 * as many the garbage collector, which copies what is claimed, stops the event loop for twice as long.
 */
const ENTRY_LIMIT = 128
/**
 * The most lanes of one claim. Half of `ENTRY_LIMIT`, so that each lane may hand out two: that shows whether lanes are
 * deep.
 */
const MAX_LANES = ENTRY_LIMIT / 2
/** The most lanes leased before a slot is free. The next ones are leased when fewer than half of them wait. */
const MAX_AHEAD = MAX_LANES

interface Lane extends LaneClaim {
  /** Its handlers have run: it waits for its finish to be written, without a slot. */
  isHandled: boolean
}

type HandlerCallsOptions = Parameters<typeof createHandlerCalls>[0]

/**
 * Hands journal entries to the app's handlers: at least once, in order within a lane, never two of one lane at once.
 * At most `concurrency` lanes have handlers running. If handlers return at once, more lanes are leased ahead.
 */
export function createDispatcher(
  options: HandlerCallsOptions & {
    store: Pick<Store, 'claimLanes' | 'finishLanes' | 'renewLane'>
    concurrency: number
    leaseMs: number
    renewEveryMs: number
    pollMs: number
    clock: Clock
    onHandled?(entry: Entry, result: EntryEnd['result']): void
    /** Called for an entry that became dead without a failed try. */
    onDead(entry: DeadEntry): void
    onError(error: unknown): void
  },
) {
  const { store, handlers, concurrency, leaseMs, renewEveryMs, pollMs, clock, onError } = options
  const { onHandled = () => {}, onDead } = options
  const calls = createHandlerCalls(options)
  const finishes = createLaneFinishes({ store, clock })
  const slots = createLaneSlots({ concurrency, maxAhead: MAX_AHEAD, clock })
  const slices = createSlices(clock)
  /** Lanes whose lease may have been revoked. Before their next entry is handled, the store confirms the lease. */
  const doubted = new WeakSet<LaneClaim>()
  /** Fewer when lanes are deep: each then hands out more entries, for one lease and one finish. */
  let lanesAtOnce = MAX_LANES

  const loop: LeaseLoop<Lane> = createLeaseLoop<Lane>({
    concurrency,
    ahead: slots.ahead,
    isWaiting: (lane) => lane.isHandled,
    maxWaiting: 2 * MAX_AHEAD,
    leaseMs,
    renewEveryMs,
    pollMs,
    clock,
    onError,
    renew: (lane) => store.renewLane(lane, leaseMs),
    run,
    claim,
  })

  async function claim(free: number): Promise<Lane[]> {
    const topics = handlers.topics()
    if (topics.length === 0) return []
    // Not in the turn of the event loop in which a batch was written.
    await slices.turn()
    const limit = Math.min(lanesAtOnce, free)
    const exceptKeys = [...new Set([...loop.items().map(({ id }) => id), ...calls.busyKeys()])]
    const lanes = await store.claimLanes({ limit, entryLimit: ENTRY_LIMIT, leaseMs, topics, exceptKeys })
    const handedOut = lanes.reduce((sum, { entries }) => sum + entries.length, 0)
    // Lanes are deep if their entries have nearly reached the limit.
    lanesAtOnce =
      handedOut > ENTRY_LIMIT * 0.75
        ? Math.max(Math.min(concurrency, MAX_LANES), Math.floor(lanesAtOnce / 2))
        : Math.min(MAX_LANES, lanesAtOnce * 2)
    return lanes.map((lane) => ({ ...lane, isHandled: false }))
  }

  async function run(lane: Lane, lost: AbortSignal, isHeld: () => boolean) {
    const results = createLaneResults({ lane, finishes, lost, onWritten: note })
    if (await slots.take(lost)) {
      const beganAt = clock.monotonic()
      try {
        for (const entry of lane.entries) {
          await slices.turn()
          // Before the payload: making it calls a function of the app too, `entitledWhen`.
          if (lane.lapses >= MAX_LAPSES) {
            results.add(entry, endedTheProcess(lane.lapses))
            break
          }
          let prepared = calls.prepare(entry, lost)
          // An event needs no look into the store, and so no promise.
          if (prepared instanceof Promise) prepared = await prepared
          let isConfirmed = true
          // A commit that casts doubt on the lease may also have changed the answer in the payload.
          while (isConfirmed && doubted.delete(lane)) {
            isConfirmed = await store.renewLane(lane, leaseMs).catch(() => true)
            if (isConfirmed) prepared = await calls.prepare(entry, lost)
          }
          // After these waits, each of which may outlast the lease.
          if (!isConfirmed || lost.aborted || !isHeld() || !results.isHeld()) break
          if (clock.monotonic() - beganAt > PATIENCE_MS) break
          const result = await calls.call(entry, prepared, lost)
          if (!result) break
          results.add(entry, result)
          if (result.kind === 'retry') break
          results.writeSoon()
        }
      } finally {
        lane.isHandled = true
        slots.leave(beganAt)
        if (slots.waiting() <= slots.ahead() / 2) loop.wake()
      }
    }
    await results.complete()
  }

  function note({ entry, result }: { entry: Entry; result: Handled }) {
    if (result.kind === 'retry') loop.wake(result.inMs)
    if (result.kind === 'retry' && result.isUntried) return
    onHandled(entry, result)
    if (result.kind !== 'dead') return
    if (result.report) return result.report()
    const { id, kind, name, businessUid, subscriptionUid, attempt: attempts } = entry
    onDead({ id, kind, name, businessUid, subscriptionUid, attempts, error: result.error })
  }

  return {
    ...loop,
    runAlone: (lane: LaneClaim, heldUntil: number) => loop.runAlone({ ...lane, isHandled: false }, heldUntil),
    /** The keys of handlers that have not settled, whatever became of their leases. */
    busyKeys: calls.busyKeys,
    async close(graceMs: number) {
      await loop.close(graceMs)
      calls.rest()
      slots.rest()
    },
    /** The store's data of a business (null: of any) has changed: it may have been erased, and its lanes revoked. */
    doubt(business: string | null) {
      for (const lane of loop.items())
        if (business === null || lane.entries.some(({ businessUid }) => businessUid === business))
          doubted.add(lane)
    },
  }
}

function endedTheProcess(times: number): Handled {
  return {
    kind: 'dead',
    isUntried: true,
    error: `it was handled ${times} times alone, and each time the process ended or froze before its handler returned`,
  }
}
