import { type Clock, createSleepWatch, SECOND } from '../../base/clock.js'
import { createSlices } from '../../base/waiting.js'
import {
  type DeadEntry,
  type Entry,
  isOfRead,
  LANE_URGENCY,
  type LaneClaim,
  type LaneUrgency,
  MAX_LAPSES,
  type Store,
  type Topic,
} from '../../store/port/store.js'
import { createClasses } from '../leases/classes.js'
import { createLeaseLoop, type LeaseLoop, type RunInSlot } from '../leases/lease-loop.js'
import { createHandlerCalls, type Handled } from './call-handlers.js'
import { createLaneResults, createResultWrites } from './results.js'
import { unitAt } from './units.js'

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
/** No further entry of a lane begins when the lane has had its slot for so long, so that others come next. */
const SLOT_MS = SECOND

type HandlerCallsOptions = Parameters<typeof createHandlerCalls>[0]

/**
 * Hands journal entries to the app's handlers: at least once, in order within a lane, never two of one lane at once.
 * At most `concurrency` lanes have handlers running; each entry may have several handlers. If handlers return at once, more
 * lanes are leased ahead.
 */
export function createDispatcher(
  options: HandlerCallsOptions & {
    store: Pick<Store, 'claimLanes' | 'finishLanes' | 'renewLane'>
    /** The topics whose entries may be claimed now. By default all that have handlers. */
    topics?(): Topic[]
    concurrency: number
    leaseMs: number
    renewEveryMs: number
    pollMs: number
    clock: Clock
    onHandled?(entry: Entry, result: Handled): void
    /** Called for an entry that became dead without a failed try. */
    onDead(entry: DeadEntry): void
    onError(error: unknown): void
  },
) {
  const { store, handlers, concurrency, leaseMs, clock } = options
  const { topics: claimable = handlers.topics } = options
  const { onHandled = () => {}, onDead } = options
  const calls = createHandlerCalls(options)
  const finishes = createResultWrites({ store, clock })
  const slices = createSlices(clock)
  const hasSlept = createSleepWatch(clock)
  let handlesReads = false
  const classes = createClasses<LaneClaim, LaneUrgency>({
    classes: Object.values(LANE_URGENCY),
    unread: LANE_URGENCY.eventOfUnread,
    // Anybody with the delivery secret can make up events of a business that he knows, but nothing that a read makes.
    isLong: (urgency) => handlesReads && urgency !== LANE_URGENCY.change,
  })
  /** Lanes whose lease may have been revoked. Before their next entry is handled, the store confirms the lease. */
  const doubted = new WeakSet<LaneClaim>()
  /** When lanes of a business (null: of any) were last doubted, the oldest first: for as long as a claim may take. */
  const lastDoubts = new Map<string | null, number>()
  /**
   * Fewer when lanes are deep: each then hands out more entries, for one lease and one finish. See
   * docs/decisions/lanes-at-once.md.
   */
  let lanesAtOnce = MAX_LANES

  const loop: LeaseLoop<LaneClaim> = createLeaseLoop<LaneClaim>({
    ...options,
    renew: (lane) => store.renewLane(lane, leaseMs),
    run,
    giveBack: (lane, { signal }) => resultsOf(lane, signal).complete(),
    claim,
    hasSeat: classes.hasSeat,
    classOf: ({ urgency }) => urgency,
  })

  async function claim(free: number, others: readonly LaneClaim[]) {
    const topics = claimable()
    if (topics.length === 0) return { items: [], isAll: true }
    handlesReads = topics.some(isOfRead)
    await finishes.repeat()
    // A claim takes about 2 ms of SQLite, as a batch of finishes does.
    await slices.yieldIfOver()
    const limit = Math.min(lanesAtOnce, free)
    const exceptKeys = loop.items().map(({ id }) => id)
    const seats = others.length + free
    const { choose, isWithoutSeat } = classes.chooser(others, seats, Math.max(0, seats - concurrency))
    const items = await store.claimLanes({
      ...{ limit, entryLimit: ENTRY_LIMIT, leaseMs, topics, exceptKeys },
      choose,
    })
    items.forEach(classes.leased)
    const handedOut = items.reduce((sum, { entries }) => sum + entries.length, 0)
    // Lanes are deep if their entries have nearly reached the limit.
    const areDeep = handedOut > ENTRY_LIMIT * 0.75
    lanesAtOnce = areDeep
      ? Math.max(Math.min(concurrency, MAX_LANES), Math.floor(lanesAtOnce / 2))
      : Math.min(MAX_LANES, lanesAtOnce * 2)
    return { items, isAll: items.length < limit && !areDeep && !isWithoutSeat() }
  }

  const resultsOf = (lane: LaneClaim, interrupted: AbortSignal) =>
    createLaneResults({ lane, finishes, interrupted, onWritten: note })

  /** Whether the doubt came while the lane was being claimed: whether before or after the claim is not known. */
  function wasDoubtedSince(claimBegan: number, { entries }: LaneClaim) {
    const businesses = [null, ...entries.map(({ businessUid }) => businessUid)]
    return businesses.some((business) => (lastDoubts.get(business) ?? Number.NEGATIVE_INFINITY) >= claimBegan)
  }

  /** Lanes of a business (null: of any) may have been revoked: its data was erased, or others took them over during a sleep. */
  function doubt(business: string | null) {
    const now = clock.monotonic()
    for (const [each, at] of lastDoubts) {
      if (now - at <= leaseMs) break
      lastDoubts.delete(each)
    }
    lastDoubts.delete(business)
    lastDoubts.set(business, now)
    for (const lane of loop.items())
      if (business === null || lane.entries.some(({ businessUid }) => businessUid === business))
        doubted.add(lane)
  }

  async function run(lane: LaneClaim, { signal: interrupted, isHeld, claimBegan, leaveSlot }: RunInSlot) {
    const results = resultsOf(lane, interrupted)
    const beganAt = clock.monotonic()
    if (wasDoubtedSince(claimBegan, lane)) doubted.add(lane)
    try {
      let place = 0
      for (let unit = unitAt(lane.entries, 0); unit; unit = unitAt(lane.entries, place)) {
        await slices.yieldIfOver()
        // Before the payload: making it calls a function of the app too, `entitledWhen`.
        if (lane.lapses >= MAX_LAPSES) {
          results.add(unit[0], endedTheProcess(lane.lapses))
          break
        }
        let prepared = calls.prepare(unit, interrupted)
        // An event needs no look into the store, and so no promise.
        if (prepared instanceof Promise) prepared = await prepared
        // A lease is held by a clock that stands still while the machine sleeps.
        if (hasSlept()) doubt(null)
        let isConfirmed = true
        // A commit that casts doubt on the lease may also have changed the answer in the payload. Without a confirmation no
        // handler is called: the payload may have been erased.
        while (isConfirmed && doubted.delete(lane)) {
          isConfirmed = await store.renewLane(lane, leaseMs).catch(() => false)
          if (isConfirmed) prepared = await calls.prepare(unit, interrupted)
        }
        // After these waits, each of which may outlast the lease.
        if (!isConfirmed || interrupted.aborted || !isHeld() || !results.isHeld()) break
        // The first unit is handled however long its payload took, or it would never be.
        if (place > 0 && clock.monotonic() - beganAt > SLOT_MS) break
        const result = await calls.call(unit, prepared, { lease: lane.leaseToken, interrupted })
        if (!result) break
        const settled = result.kind === 'done' ? unit : [unit[0]]
        for (const entry of settled) results.add(entry, result)
        if (result.kind === 'retry') break
        place += settled.length
        results.writeSoon()
      }
    } finally {
      leaveSlot()
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
    async close(graceMs: number) {
      await loop.close(graceMs)
      calls.rest()
    },
    doubt,
  }
}

function endedTheProcess(times: number): Handled {
  return {
    kind: 'dead',
    isUntried: true,
    error: `it was handled ${times} times alone, and each time the process ended or froze before its handler returned`,
  }
}
