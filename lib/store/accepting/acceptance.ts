import { createBatches } from '../../base/batches.js'
import { type Clock, SECOND } from '../../base/clock.js'
import { createDeadlines } from '../../base/deadlines.js'
import { MarketplaceError } from '../../base/errors.js'
import { sleep } from '../../base/waiting.js'
import type { Journal } from '../journal/journal.js'
import type { LifeCycle } from '../life-cycle.js'
import type { Ownership } from '../ownership.js'
import type { Hint, NewEvent } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import type { Requested } from '../subscriptions/merge-requests.js'
import type { RefreshRequests } from '../subscriptions/requests.js'
import type { Searches } from '../subscriptions/searches.js'
import type { Subscriptions } from '../subscriptions/subscriptions.js'
import type { WriteHealth } from '../write-health.js'
import { type Allowance, createAllowance, sizesOf, type Wanted } from './allowance.js'
import {
  add,
  BATCH,
  double,
  fits,
  isSmall,
  NOTHING,
  orderOf,
  type Size,
  subtract,
  WAITING,
  weightOf,
} from './sizes.js'
import { createTurnedAway, MAX_WAIT_MS } from './turned-away.js'
import { createTurns } from './turns.js'

/** The events and refresh requests of one call. */
interface Accepted {
  events: readonly NewEvent[]
  requests: readonly Requested[]
}

/**
 * Writes events and refresh requests durably. Many calls share a transaction, a sync and the hints: while one batch is
 * committed and synced, the next one collects. A batch is bounded in rows and bytes, so that no commit holds the event loop
 * for long.
 *
 * What waits is bounded too. When more waits than fits into one batch, calls go first that the app asked for or that name only
 * what was read before, and of these and of all others the small ones. But each of the four classes gets a share, so whoever
 * sends any number of one keeps out none of another. The last ones in this order are refused when too much waits.
 *
 * A delivery that waits until its sender gives up is refused as well. A large one is then not stored, unless its batch is
 * being written; a small one still is if there is room for it, because it may be a first purchase that nobody sends again.
 */
export function createAcceptance(options: {
  engine: Pick<
    Engine,
    'read' | 'write' | 'writeAll' | 'mark' | 'durable' | 'isDataError' | 'skipLocked' | 'byIndex'
  >
  ownership: Pick<Ownership, 'check'>
  request: RefreshRequests['request']
  searches: Pick<Searches, 'installed'>
  journal: Pick<Journal, 'insert'>
  subscriptions: Pick<Subscriptions, 'readAmong'>
  health: Pick<WriteHealth, 'watch'>
  clock: Clock
  announce(hint: Hint): void
  /** For all that goes on after a reply: closing waits for it, because a connection in use keeps its engine open. */
  whileOpen: LifeCycle['whileOpen']
  isClosed: LifeCycle['isClosed']
  /** The largest batch. A single call may be larger. */
  maxBatch?: Size
  /** The most that waits. */
  maxWaiting?: Size
  /** The most that is stored of what deliveries make. */
  most?: Allowance
}) {
  const { engine, ownership, request, searches, journal, subscriptions, health, clock, announce } = options
  const { whileOpen, isClosed, maxBatch = BATCH, maxWaiting = WAITING } = options
  const waiting: Size = { rows: 0, bytes: 0 }
  /** What waits for the store to open. */
  const beforeOpening: Size = { rows: 0, bytes: 0 }
  /** What waits to be looked up. */
  const lookedUp: Size = { rows: 0, bytes: 0 }
  /** What waits for room in an allowance: calls that name only what was read before, and all others. Or for its refusal. */
  const withoutRoom = {
    known: { rows: 0, bytes: 0 },
    event: { rows: 0, bytes: 0 },
    refused: { rows: 0, bytes: 0 },
  }
  const turnedAway = createTurnedAway(clock)
  const allowance = createAllowance({
    ...{ engine, clock, whileOpen, isClosed, onDeleted: turnedAway.deleted },
    ...(options.most && { allowance: options.most }),
  })

  const turns = createTurns<Waiting>({ classOf, weightOf: ({ size }) => weightOf(size) })
  const deadlines = createDeadlines(MAX_WAIT_MS, clock)

  /** When the last commit ended, or the first call began to wait for one; undefined while none waits. */
  let uncommittedSince: number | undefined
  const isStalled = () => uncommittedSince !== undefined && clock.monotonic() - uncommittedSince >= STALLED_MS

  const batches = createBatches<Waiting, void>({
    /** In their order: the first call that does not fit ends the batch. */
    take() {
      const batch: Size = { rows: 0, bytes: 0 }
      let isFull = false
      return (call) => {
        isFull ||= batch.rows > 0 && !fits(batch, call.size, maxBatch)
        if (isFull) return false
        add(batch, call.size)
        subtract(waiting, call.size)
        turns.took(call)
        return true
      }
    },
    arrange(calls) {
      if (!fits(waiting, NOTHING, maxBatch)) return inTurns(calls())
      turns.reset()
      return undefined
    },
    // Who has given up was refused before.
    refused: (call) =>
      call.sender.hasGivenUp || classOf(call) === 0
        ? tooMuch()
        : turnedAway.refused('too many deliveries wait for the store'),
    async write(batch) {
      try {
        await health.watch(() => commit(batch))
        uncommittedSince = clock.monotonic()
      } finally {
        if (waiting.rows === 0) uncommittedSince = undefined
      }
      return []
    },
    split: (error) => engine.isDataError(error),
  })

  /** Which events of a call name something that was read before. Calls share a query. */
  const lookUps = createBatches<readonly NewEvent[], ReadonlySet<NewEvent>>({
    take() {
      let rows = 0
      return (events) => {
        rows += events.length
        return rows === events.length || rows <= LOOKED_UP_AT_ONCE
      }
    },
    async write(calls) {
      const isRead = await engine.read((db) => subscriptions.readAmong(db, calls.flat()))
      return calls.map((events) => new Set(events.filter(isRead)))
    },
    split: () => false,
  })

  /** Sorts the calls by their turns, and leaves out the last ones that do not fit into the room or have waited too long. */
  async function inTurns(calls: readonly Waiting[]): Promise<readonly Waiting[]> {
    await Promise.all(calls.filter(({ isUnread }) => isUnread === undefined).map(findUnread))
    // Of large calls the smaller ones go first, and small ones in the order of their arrival.
    const bySize = [...calls].sort((a, b) => orderOf(a.size) - orderOf(b.size))
    const kept: Size = { rows: 0, bytes: 0 }
    const rest = turns.arrange(bySize).filter(({ size, sender }) => {
      const isLate = sender.hasGivenUp && !isSmall(size)
      const isKept = !isLate && (kept.rows === 0 || fits(kept, size, maxWaiting))
      if (isKept) add(kept, size)
      else subtract(waiting, size)
      return isKept
    })
    if (waiting.rows === 0) uncommittedSince = undefined
    return rest
  }

  /** Looks up whether a call names something that was not read before. While the store cannot tell, none does. */
  async function findUnread(call: Waiting) {
    try {
      const read = await lookUps.add(call.events)
      call.isUnread = call.events.some((event) => !read.has(event))
    } catch {
      call.isUnread = false
    }
  }

  async function commit(batch: readonly Accepted[]) {
    const events = batch.flatMap((call) => call.events)
    const requests = batch.flatMap((call) => call.requests)
    const businesses = new Set(requests.map(({ request }) => request.businessUid))
    const installs = requests.flatMap(({ request: each }) =>
      each.kind === 'business' && each.search ? each.businessUid : [],
    )
    await ownership.check()
    const searched = await searches.installed(installs)
    const mark = engine.mark()
    // In the order in which all transactions lock rows (`sql/lock-order.ts`), so that none deadlocks another.
    await engine.writeAll([...searched, ...request(requests), ...journal.insert(events)])
    // Others may see the commit before it is durable. Only the reply must wait.
    await engine.durable(mark)
    for (const businessUid of businesses) announce({ kind: 'requested', businessUid })
    if (events.length > 0) announce({ kind: 'journal' })
  }

  /**
   * Resolves when the call is on disk, with the ids of the unrecognised deliveries that were only counted, because the
   * store keeps enough of them. `waitedMs`: how long the delivery has waited before.
   */
  function accept(given: Accepted, waitedMs = 0): Promise<readonly string[]> {
    const sender: Sender = { hasGivenUp: false, waitsForRoom: false }
    const wanted = sizesOf(given.events)
    const size = sizeOf(wanted)
    const stored = storeOnceOpen(given, wanted, sender)
    // The app waits for its own requests as long as it wants.
    if (given.events.length === 0) return stored
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        // Unless it waits behind others, the store is to blame, and the deadline of the delivery says so.
        const isBehind = !fits(waiting, NOTHING, maxBatch) && !(isStalled() && isSmall(size))
        if (!isBehind && !sender.waitsForRoom) return
        sender.hasGivenUp = true
        reject(turnedAway.refused('it has waited too long'))
      }
      const cancel = waitedMs === 0 ? deadlines.set(giveUp) : callIn(MAX_WAIT_MS - waitedMs, giveUp)
      stored.then(resolve, reject).finally(cancel)
    })
  }

  async function storeOnceOpen(given: Accepted, wanted: Wanted, sender: Sender) {
    const size = sizeOf(wanted)
    requireWaitingRoom(beforeOpening, size)
    add(beforeOpening, size)
    let isOpening = true
    const opened = () => {
      if (isOpening) subtract(beforeOpening, size)
      isOpening = false
    }
    return whileOpen(() => {
      opened()
      return store(given, wanted, sender)
    }).finally(opened)
  }

  function callIn(ms: number, listener: () => void): () => void {
    const timer = clock.setTimeout(listener, Math.max(0, ms))
    return () => clock.clearTimeout(timer)
  }

  async function store(given: Accepted, wanted: Wanted, sender: Sender): Promise<readonly string[]> {
    const taken = allowance.take(wanted)
    if (!taken) return storeWithoutRoom(given, sizeOf(wanted), sender)
    await write(given, wanted, sender).finally(taken)
    return []
  }

  async function storeWithoutRoom(given: Accepted, size: Size, sender: Sender): Promise<readonly string[]> {
    sender.waitsForRoom = true
    const room = withinAllowance(given, size, sender).finally(() => {
      sender.waitsForRoom = false
    })
    const { call, unstored, written } = await room
    try {
      if (sender.hasGivenUp && !isSmall(size)) throw tooMuch()
      const isOnlyCounted = unstored.length > 0 && call.events.length === 0
      if (!isOnlyCounted) await write(call, sizesOf(call.events), sender)
    } finally {
      written()
    }
    return unstored
  }

  return {
    accept,

    /** What was not stored within the last hour, for health; null: nothing. */
    turnedAway: turnedAway.lately,
  }

  async function write(call: Accepted, sizes: Wanted, sender: Sender) {
    const size = sizeOf(sizes)
    requireWaitingRoom(waiting, size)
    add(waiting, size)
    uncommittedSince ??= clock.monotonic()
    await batches.add({ ...call, size, sender, isUnread: undefined })
  }

  /** Counts a call in what waits until the work has ended. */
  async function waitIn<T>(waiting: Size, size: Size, work: () => Promise<T>): Promise<T> {
    requireWaitingRoom(waiting, size)
    add(waiting, size)
    return work().finally(() => subtract(waiting, size))
  }

  /** Throws if a call finds no room to wait. It looks nothing up: the store may hang, and nothing more may wait for it. */
  function requireWaitingRoom(waiting: Size, size: Size) {
    // A lone call may be of any size. A small one may be of somebody who was read before, which is looked up later.
    const most = isSmall(size) ? double(maxWaiting) : maxWaiting
    if (waiting.rows === 0 || fits(waiting, size, most)) return
    throw isStalled() && isSmall(size)
      ? tooMuch()
      : turnedAway.refused('too many deliveries wait for the store')
  }

  /**
   * The part of a call for which there is room. Throws if some of its events have none: the sender gets 503 for all, and
   * those with room are stored all the same, so one known name lets no others in. So are the requests of what was read
   * before: they add no rows, and a read of each is due whatever others send for it.
   */
  async function withinAllowance(
    call: Accepted,
    size: Size,
    sender: Sender,
  ): Promise<{ call: Accepted; unstored: string[]; written: () => void }> {
    const isEvent = call.events.some(({ kind }) => kind === 'event')
    const read: ReadonlySet<NewEvent> = isEvent
      ? await waitIn(lookedUp, size, () => lookUps.add(call.events))
      : new Set()
    const wanted = sizesOf(call.events, (event) => read.has(event))
    // Made-up calls may wait for a measurement, for seconds, so they must not take the room of others.
    const room = withoutRoom[wanted.event.rows === 0 ? 'known' : 'event']
    const taken = await waitIn(room, size, () => allowance.takeAfterAll(wanted))
    if (taken) return { call, unstored: [], written: taken }
    const hasRoom = (kind: keyof Wanted) => allowance.hasRoom({ ...NO_EVENTS, [kind]: wanted[kind] })
    const isFull = { known: !hasRoom('known'), event: !hasRoom('event') }
    if (isFull.known || isFull.event) {
      const events = call.events.filter(
        (event) => event.kind === 'event' && !isFull[read.has(event) ? 'known' : 'event'],
      )
      const part = partOf(call, events, [...events, ...read])
      if (part.requests.length + part.events.length > 0) await store(part, sizesOf(part.events), sender)
      // Whoever sends the next delivery after a reply sends fewer, so a flood leaves the event loop to others.
      sender.waitsForRoom = true
      await waitIn(withoutRoom.refused, size, () => sleep(REFUSED_AFTER_MS, clock))
      // Then it was refused already.
      if (sender.hasGivenUp) throw tooMuch()
      throw turnedAway.refused('the store keeps as many events as it may')
    }
    const rest = { ...wanted, unrecognised: NOTHING }
    if (hasRoom('unrecognised')) return { call, unstored: [], written: allowance.use(wanted) }
    const unrecognised = call.events.filter(({ kind }) => kind === 'unrecognised')
    turnedAway.counted(unrecognised)
    const events = call.events.filter(({ kind }) => kind !== 'unrecognised')
    return {
      call: { ...call, events },
      unstored: unrecognised.map(({ id }) => id),
      written: allowance.use(rest),
    }
  }
}

function tooMuch() {
  return new MarketplaceError(
    'store_unavailable',
    'Cannot store the delivery: too many deliveries wait for the store',
  )
}

/** Some events of a call, and the requests of some. */
function partOf(
  { requests }: Accepted,
  events: readonly NewEvent[],
  requesting: readonly NewEvent[],
): Accepted {
  const theirs = new Set<unknown>(requesting.map(({ refresh }) => refresh))
  return { events, requests: requests.filter(({ request }) => theirs.has(request)) }
}

interface Waiting extends Accepted {
  size: Size
  sender: Sender
  /** Whether it names something that was not read before; undefined: not looked up. */
  isUnread: boolean | undefined
}

/** The sender of a call. It has given up when the call was refused because it waited too long. */
interface Sender {
  hasGivenUp: boolean
  /** The call waits for room in an allowance. */
  waitsForRoom: boolean
}

const NO_EVENTS: Wanted = { event: NOTHING, known: NOTHING, unrecognised: NOTHING }
/** The events of one look-up: on SQLite the event loop waits for it. */
const LOOKED_UP_AT_ONCE = 2_000
/** A delivery for which the store has no room waits for so long before it is refused. */
const REFUSED_AFTER_MS = SECOND
/** A commit takes less, unless the store does not answer. */
const STALLED_MS = SECOND

/** The size of a call whose events were not looked up. */
function sizeOf({ event, unrecognised }: Wanted): Size {
  const size = { ...event }
  add(size, unrecognised)
  return { ...size, rows: Math.max(1, size.rows) }
}

/** The classes of calls: 0 and 1 name only what was read before, 0 and 2 are small. */
function classOf({ isUnread, size }: Waiting): number {
  return (isUnread === true ? 2 : 0) + (isSmall(size) ? 0 : 1)
}
