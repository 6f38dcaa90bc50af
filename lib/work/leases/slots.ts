import { type Clock, SECOND } from '../../base/clock.js'
import { createDeadlines } from '../../base/deadlines.js'
import { createLine } from '../../base/line.js'

/**
 * Items are leased before a slot is free: as many as end in this time, or in the time of two claims. So no slot waits
 * for a claim on a slow database, and what becomes due meanwhile waits hardly longer.
 */
const AHEAD_MS = 30
const MAX_AHEAD = 64
/** How long an item that was leased ahead waits for a slot. If the items before it are slow, it goes back to the store. */
const PATIENCE_MS = SECOND / 2
/** The most items that are being written and have left their slots. */
const MAX_WRITING = 128
/** The most items that wait for something else and take no slot. The lease of each is renewed meanwhile. */
const MAX_WAITING = 250

export interface SlotsOptions<Item> {
  concurrency: number
  /** Whether an item in a slot only waits, so that another one may run beside it. */
  isWaiting?(item: Item): boolean
  /** Whether one of `seats` slots or leases is left for this item beside the others. By default it always is. */
  hasSeat?(item: Item, others: readonly Item[], seats: number): boolean
  /** Items of one class have a seat all or none. By default each item is asked. */
  classOf?(item: Item): unknown
  clock: Clock
}

export interface Slot {
  /** The item is being written, so its slot goes to the next one. */
  leave(): void
  /** The item has ended. */
  end(): void
}

/**
 * At most `concurrency` leased items run at once, apart from up to 250 that only wait (`isWaiting`) and 128 that are being
 * written. While items end quickly, more are leased ahead and wait here in order.
 */
export function createSlots<Item>(options: SlotsOptions<Item>) {
  const { concurrency, isWaiting, hasSeat = () => true, classOf = (item) => item, clock } = options
  const running = createLine<Item>()
  const waiting = createLine<Waiter<Item>>()
  const deadlines = createDeadlines(PATIENCE_MS, clock)
  let writing = 0
  /** Moving average of the time that a claim takes. */
  let claimMs = 0
  /** Moving average of the time that an item holds its slot. */
  let slotMs = Number.POSITIVE_INFINITY
  let isClosed = false

  /** The items in slots that do not only wait. */
  function busy(): Item[] {
    const items = running.values()
    if (!isWaiting) return items
    let left = MAX_WAITING
    return items.filter((item) => !(isWaiting(item) && left-- > 0))
  }

  const areAllUsed = () => isWaiting === undefined && running.size >= concurrency

  function isFree(item: Item): boolean {
    if (areAllUsed()) return false
    const others = busy()
    return others.length < concurrency && hasSeat(item, others, concurrency)
  }

  /** Gives free slots to those that have waited longest. */
  function admit() {
    // Most often the first may enter, and a look at all for each item that ends would cost more than the rest of it.
    for (let first = waiting.first(); first && isFree(first.item); first = waiting.first()) first.end(true)
    if (waiting.size === 0 || areAllUsed()) return
    const without = new Set<unknown>()
    for (const { item, end } of waiting.values()) {
      if (areAllUsed()) return
      const ofClass = classOf(item)
      if (without.has(ofClass)) continue
      if (isFree(item)) end(true)
      else without.add(ofClass)
    }
  }

  function enter(item: Item): Slot {
    const beganAt = clock.monotonic()
    const remove = running.add(item)
    let state: 'running' | 'writing' | 'ended' = 'running'

    function free() {
      remove()
      const ms = Math.max(0.01, clock.monotonic() - beganAt)
      slotMs = Number.isFinite(slotMs) ? slotMs * 0.9 + ms * 0.1 : ms
      admit()
    }

    return {
      leave() {
        if (state !== 'running' || writing >= MAX_WRITING) return
        state = 'writing'
        writing++
        free()
      },
      end() {
        if (state === 'running') free()
        else if (state === 'writing') writing--
        state = 'ended'
      },
    }
  }

  function wait(item: Item, signal: AbortSignal): Promise<Slot | undefined> {
    return new Promise((resolve) => {
      const end = (hasSlot: boolean) => {
        leave()
        cancelDeadline()
        signal.removeEventListener('abort', giveUp)
        resolve(hasSlot ? enter(item) : undefined)
      }
      const giveUp = () => end(false)
      const leave = waiting.add({ item, end })
      const cancelDeadline = deadlines.set(() => {
        // The items in the slots are slow.
        slotMs = Number.POSITIVE_INFINITY
        giveUp()
      })
      signal.addEventListener('abort', giveUp)
    })
  }

  return {
    /** Undefined: give the item back, because it lost its lease or waited too long, or the slots are closed. */
    take(item: Item, signal: AbortSignal): Slot | undefined | Promise<Slot | undefined> {
      if (signal.aborted || isClosed) return undefined
      admit()
      return isFree(item) ? enter(item) : wait(item, signal)
    },

    /** How many items to lease now: those leased ahead are filled up in one claim, when half of them are missing. */
    room(): number {
      if (isClosed) return 0
      const aheadMs = Math.max(AHEAD_MS, 2 * claimMs)
      const ahead = Math.min(MAX_AHEAD, Math.floor((concurrency * aheadMs) / slotMs))
      const used = (isWaiting ? busy().length : running.size) + waiting.size
      const free = concurrency + ahead - used
      return free > ahead / 2 ? free : 0
    },

    /** Whether an item waits for a slot. */
    areWaitedFor: () => waiting.size > 0,

    /** The items that have a slot or wait for one. */
    taken: (): Item[] => [...busy(), ...waiting.values().map(({ item }) => item)],

    claimTook(ms: number) {
      claimMs = claimMs * 0.8 + Math.min(ms, PATIENCE_MS) * 0.2
    },

    /** Gives back every item that waits for a slot. */
    close() {
      isClosed = true
      for (const { end } of waiting.values()) end(false)
      deadlines.rest()
    },
  }
}

interface Waiter<Item> {
  item: Item
  end(hasSlot: boolean): void
}
