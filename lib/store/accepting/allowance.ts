import { type Clock, MINUTE, SECOND } from '../../base/clock.js'
import { MarketplaceError } from '../../base/errors.js'
import { nextTurn } from '../../base/waiting.js'
import type { LifeCycle } from '../life-cycle.js'
import { ENTRY_STATUSES, type EntryStatus, type NewEvent, URGENCY } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import { type Sql, sql } from '../sql/sql.js'
import { IS_DENIED } from '../subscriptions/other-businesses.js'
import { add, fits, type Size } from './sizes.js'

const MIB = 1024 * 1024
/** Some GB of a database with all indexes, and far more than an app gets in a week. */
const ALLOWANCE: Allowance = {
  event: { rows: 1_000_000, bytes: 512 * MIB },
  known: { rows: 2_000_000, bytes: 1024 * MIB },
  unrecognised: { rows: 10_000, bytes: 64 * MIB },
  subscriptions: 1_000_000,
}
/** The part of an allowance up to which nobody looks up what an event names. */
const UNCLEAR_PART = 0.9
/** The part of the known events that may be deleted for events which a measurement would show to be others. */
const UNCLEAR_PART_OF_KNOWN = 0.001
/** The least and the most time between two measurements, while the allowance is nearly used up. */
const MEASURE_EVERY_MS = { least: 10 * SECOND, most: 10 * MINUTE }
/** Measurements of very many rows take this part of the time. */
const MEASURING_PART = 0.05
/** The time between two searches for what may be deleted, while there is nothing. */
const DELETE_EVERY_MS = SECOND
/** The rows of one statement: on SQLite the event loop waits for it. */
const WINDOW = 2_000
/** Rows that are deleted at once to make room. */
const BATCH = 500
/** The entries that are deleted to make room, by status, in this order. */
const FREED = { known: ['done', 'unhandled'], event: ['done', 'unhandled', 'dead'] } as const

/** The most that the store keeps of what anybody with the delivery secret can send. */
export interface Allowance {
  /** Events that name nothing that was read before. */
  event: Size
  /** Events that name what was read before. */
  known: Size
  unrecognised: Size
  /** Subscriptions that events named and no read has shown. */
  subscriptions: number
}

/**
 * Bounds what the store keeps of entries and subscriptions that deliveries make. Events of what was read before, and all
 * others, which may be made up, have an allowance each, so neither takes the other's. Room is made from what is finished:
 * entries that were handled or that nobody handles, then dead ones that may be made up, and subscriptions that the platform
 * has denied, the oldest first. What waits for its handler or for its first read is never deleted.
 *
 * Between two measurements every event counts in both allowances, whatever it names, so accepting one asks the database
 * nothing. Beyond `UNCLEAR_PART` the caller looks up which of them it belongs to.
 */
export function createAllowance(options: {
  engine: Pick<Engine, 'read' | 'write' | 'skipLocked' | 'byIndex'>
  clock: Pick<Clock, 'monotonic'>
  whileOpen: LifeCycle['whileOpen']
  isClosed: LifeCycle['isClosed']
  allowance?: Allowance
  /** Called with the number of finished entries that were deleted to make room. */
  onDeleted(count: number): void
}) {
  const { engine, clock, whileOpen, isClosed, allowance = ALLOWANCE, onDeleted } = options
  /** What is stored, at most. */
  let used = nothing()
  /** What is not written yet, so no measurement counts it. */
  const underWay = nothing()
  /** What the measurement under way may not count: what was not written when it began, and what came since. */
  let added = nothing()
  let measuring: Promise<void> | undefined
  let measureAgainAt = Number.NEGATIVE_INFINITY
  /** The events since the last measurement that count in both allowances. */
  let unclear = 0
  /** Up to where finished entries were searched since the last measurement, by kind and status. */
  const searchedTo = new Map<string, number>()
  /** When a deletion found nothing since the last measurement. */
  const foundNothingAt = new Map<() => Promise<boolean>, number>()
  const freeKnown = shared(() => deleteEntries('known'))
  const freeEvents = shared(() => deleteEntries('event'))
  const freeSubscriptions = shared(deleteSubscriptions)

  /** The sizes of the events. Counting ends when those of both classes are more than their allowances. */
  async function events(): Promise<Pick<Allowance, 'event' | 'known'>> {
    const [known, event] = [zero(), zero()]
    for await (const [read, unread] of windowsOf('event')) {
      add(known, read)
      add(event, unread)
      if (!fits(known, zero(), allowance.known) && !fits(event, zero(), allowance.event)) break
    }
    return { known, event }
  }

  /** The size of the unrecognised deliveries. Counting ends when they are more than their allowance. */
  async function unrecognised(): Promise<Size> {
    const size = zero()
    for await (const classes of windowsOf('unrecognised')) {
      for (const each of classes) add(size, each)
      if (!fits(size, zero(), allowance.unrecognised)) break
    }
    return size
  }

  /** The sizes of the entries of a kind, a window at a time: of those that name what was read before, and of the others. */
  async function* windowsOf(kind: 'event' | 'unrecognised'): AsyncGenerator<[read: Size, unread: Size]> {
    for (const status of ENTRY_STATUSES)
      for (let after: number | null = 0; after !== null; await nextWindow()) {
        const source = rangeOf(kind, status, after)
        const row = await engine.read((db) =>
          sql<Record<'rows' | 'unread' | 'bytes' | 'unread_bytes', number | null> & { last: number | null }>`
            select count(*) as rows, max(seq) as last, sum(unread) as unread, sum(bytes) as bytes,
              sum(bytes * unread) as unread_bytes
            from (
              select seq, unread, octet_length(payload) as bytes ${source} order by seq limit ${sql.lit(WINDOW)}
            ) as ${sql.ref('window')}`.one(db),
        )
        const all = { rows: row.rows ?? 0, bytes: row.bytes ?? 0 }
        const unread = { rows: row.unread ?? 0, bytes: row.unread_bytes ?? 0 }
        yield [{ rows: all.rows - unread.rows, bytes: all.bytes - unread.bytes }, unread]
        after = all.rows < WINDOW ? null : row.last
      }
  }

  /** A range of the index by status, which has the class of each entry behind its number. */
  const rangeOf = (kind: 'event' | 'unrecognised', status: EntryStatus, after: number) =>
    sql`from journal ${engine.byIndex('journal_status')}
      where status = ${sql.lit(status)} and kind = ${sql.lit(kind)} and seq > ${after}`

  /** A measurement takes long, and ends when the store closes. */
  async function nextWindow() {
    await nextTurn()
    if (isClosed()) throw new MarketplaceError('closed', 'Cannot measure the store: it was closed')
  }

  async function subscriptions(): Promise<number> {
    let count = 0
    for (let after: number | null = -1; after !== null; await nextWindow()) {
      const rest: Sql = sql`from subscriptions
        where urgency = ${sql.lit(URGENCY.eventOfUnread)} and refresh_at > ${after}`
      // A window ends with all rows that are due at the same time as its last one.
      const row = await engine.read((db) =>
        sql<{ rows: number; last: number | null }>`
          select count(*) as rows, max(refresh_at) as last ${rest} and refresh_at <= (
            select max(refresh_at) from (
              select refresh_at ${rest} order by refresh_at limit ${sql.lit(WINDOW)}
            ) as ${sql.ref('window')}
          )`.one(db),
      )
      count += row.rows
      after = row.rows < WINDOW ? null : row.last
    }
    return count
  }

  async function measure({ isDue = clock.monotonic() >= measureAgainAt } = {}) {
    if (!isDue) return
    measuring ??= (async () => {
      const beganAt = clock.monotonic()
      const unclearBefore = unclear
      added = sum(underWay, nothing())
      used = sum(
        {
          ...(await events()),
          unrecognised: await unrecognised(),
          subscriptions: await subscriptions(),
        },
        added,
      )
      unclear -= unclearBefore
      searchedTo.clear()
      foundNothingAt.clear()
      const { least, most } = MEASURE_EVERY_MS
      const tookMs = clock.monotonic() - beganAt
      measureAgainAt = beganAt + Math.min(most, Math.max(least, tookMs / MEASURING_PART))
    })().finally(() => {
      measuring = undefined
    })
    await measuring
  }

  /** A measurement that nobody waits for. The next one that is due repeats it if it fails. */
  function measureMeanwhile() {
    if (isClosed()) return
    const measured = measure().catch(() => {})
    whileOpen(() => measured)
  }

  /** Before something is refused or deleted for events: some that were counted may belong to the other allowance. */
  async function measureAgain() {
    // One under way may count twice what comes meanwhile.
    await measuring
    await measure(unclear > 0 ? { isDue: true } : {})
  }

  /**
   * Deletes finished entries of events: first those that were handled, of each status the oldest. One that was set aside waits
   * for its handler, so it is not among them, and a dead one of what was read before may be replayed. What finishes behind
   * the search is found after the next measurement.
   */
  async function deleteEntries(kind: 'event' | 'known') {
    const unread = sql.lit(kind === 'event' ? 1 : 0)
    // A range of the index for each status: for both together SQLite would sort all finished entries.
    for (const status of FREED[kind]) {
      const key = `${kind} ${status}`
      for (; ; await nextTurn()) {
        const source = rangeOf('event', status, searchedTo.get(key) ?? 0)
        const { count, ours, last } = await engine.read((db) =>
          sql<{ count: number; ours: number; last: number | null }>`
            select count(*) as count, count(case when unread = ${unread} then 1 end) as ours, max(seq) as last from (
              select seq, unread ${source} order by seq limit ${sql.lit(WINDOW)}
            ) as ${sql.ref('window')}`.one(db),
        )
        if (last === null) break
        const rows =
          ours === 0 ? [] : await deleteFrom(sql`${source} and seq <= ${last} and unread = ${unread}`)
        for (const { bytes } of rows) add(used[kind], { rows: -1, bytes: -bytes })
        // The last window is searched again, because SQLite gives the numbers of deleted rows at the end to new ones.
        const isLast = count < WINDOW
        if (!isLast && rows.length < BATCH) searchedTo.set(key, last)
        if (rows.length === 0 && isLast) break
        if (rows.length === 0) continue
        onDeleted(rows.length)
        return true
      }
    }
    return false
  }

  /** Deletes the first entries of a range that are finished. */
  function deleteFrom(range: Sql): Promise<{ bytes: number }[]> {
    return engine.write((trx) =>
      sql<{ bytes: number }>`
        delete from journal where id in (
          select id ${range} and (status <> 'unhandled' or settled_at is null)
          order by seq limit ${sql.lit(BATCH)} ${engine.skipLocked}
        ) returning octet_length(payload) as bytes`.execute(trx),
    )
  }

  /** Deletes subscriptions that the platform has denied, the oldest request first. */
  async function deleteSubscriptions() {
    const rows = await engine.write((trx) =>
      sql`
        delete from subscriptions where subscription_uid in (
          select subscription_uid from subscriptions where ${IS_DENIED} and lease_token is null
          order by requested_at limit ${sql.lit(BATCH)} ${engine.skipLocked}
        ) and ${sql.still(IS_DENIED)} returning subscription_uid`.execute(trx),
    )
    used.subscriptions -= rows.length
    return rows.length > 0
  }

  /** What makes room for the events of a call, for each allowance that has none for them within this part of it. */
  function missing({ event, known }: Wanted, part = 1): (() => Promise<boolean>)[] {
    const found: (() => Promise<boolean>)[] = []
    if (known.rows > 0 && !fits(used.known, known, partOf(allowance.known, part))) found.push(freeKnown)
    if (event.rows > 0 && !fits(used.event, event, partOf(allowance.event, part))) found.push(freeEvents)
    if (event.rows > 0 && used.subscriptions + event.rows > allowance.subscriptions * part)
      found.push(freeSubscriptions)
    return found
  }

  function hasRoom(wanted: Wanted, part?: number): boolean {
    const { unrecognised } = wanted
    return (
      (unrecognised.rows === 0 || fits(used.unrecognised, unrecognised, allowance.unrecognised)) &&
      missing(wanted, part).length === 0
    )
  }

  /** Counts events that are going to be written. The function that it returns says that they are, or never will be. */
  function use({ event, known, unrecognised }: Wanted): () => void {
    const size = { event, known, unrecognised, subscriptions: event.rows }
    for (const total of measuring ? [used, added, underWay] : [used, underWay]) addAll(total, size)
    return () => addAll(underWay, negative(size))
  }

  /**
   * All that wait for room share a deletion, and after one that found nothing the next is a moment later: a flood that is
   * refused must not keep the database busy.
   */
  function shared(deleteSome: () => Promise<boolean>): () => Promise<boolean> {
    let deleting: Promise<boolean> | undefined
    return async () => {
      const pausedAt = foundNothingAt.get(deleteSome) ?? Number.NEGATIVE_INFINITY
      if (clock.monotonic() - pausedAt < DELETE_EVERY_MS) return false
      deleting ??= deleteSome().finally(() => {
        deleting = undefined
      })
      const hasFound = await deleting
      if (!hasFound) foundNothingAt.set(deleteSome, clock.monotonic())
      return hasFound
    }
  }

  return {
    hasRoom,
    use,

    /** As `use`, for events that nobody looked up. Undefined: look them up, and `takeAfterAll`. */
    take(wanted: Wanted): (() => void) | undefined {
      // What other processes and earlier ones have stored is known a moment later.
      if (measureAgainAt === Number.NEGATIVE_INFINITY) measureMeanwhile()
      if (!hasRoom(wanted, UNCLEAR_PART)) return undefined
      unclear += wanted.event.rows
      return use(wanted)
    },

    /**
     * As `use`, for events that were looked up, with the room that what is finished makes. Undefined: the store keeps as
     * much as it may.
     */
    async takeAfterAll(wanted: Wanted): Promise<(() => void) | undefined> {
      // What is known waits for no measurement, if nearly all of it was counted exactly.
      const isClear = wanted.event.rows === 0 && unclear <= allowance.known.rows * UNCLEAR_PART_OF_KNOWN
      if (missing(wanted).length === 0 || isClear) measureMeanwhile()
      else await measureAgain()
      for (let isMeasured = false; ; ) {
        if (hasRoom(wanted)) return use(wanted)
        // Unrecognised deliveries get no room, and are only counted, so nothing waits for them.
        if (missing(wanted).length === 0) return undefined
        const hasFreed = await Promise.all(missing(wanted).map((free) => free()))
        if (hasFreed.includes(true)) continue
        if (isMeasured) return undefined
        await measureAgain()
        isMeasured = true
      }
    },
  }
}

/** What has an allowance of rows and bytes. */
type Kind = 'event' | 'known' | 'unrecognised'

/** The sizes of the events of one call. */
export type Wanted = Record<Kind, Size>

/** Without `isRead`, every event counts as one that names what was read before, and as one that does not. */
export function sizesOf(events: readonly NewEvent[], isRead?: (event: NewEvent) => boolean): Wanted {
  const wanted = { event: zero(), known: zero(), unrecognised: zero() }
  for (const event of events) {
    const size = { rows: 1, bytes: Buffer.byteLength(event.payload) }
    if (event.kind === 'unrecognised') add(wanted.unrecognised, size)
    else {
      if (isRead?.(event) !== true) add(wanted.event, size)
      if (isRead?.(event) !== false) add(wanted.known, size)
    }
  }
  return wanted
}

const zero = (): Size => ({ rows: 0, bytes: 0 })
const nothing = (): Allowance => ({ event: zero(), known: zero(), unrecognised: zero(), subscriptions: 0 })
const KINDS = ['event', 'known', 'unrecognised'] as const

function sum(some: Allowance, more: Allowance): Allowance {
  const total = nothing()
  for (const each of [some, more]) addAll(total, each)
  return total
}

function addAll(total: Allowance, more: Allowance): void {
  for (const kind of KINDS) add(total[kind], more[kind])
  total.subscriptions += more.subscriptions
}

function negative({ subscriptions, ...sizes }: Allowance): Allowance {
  const minus = ({ rows, bytes }: Size) => ({ rows: -rows, bytes: -bytes })
  const { event, known, unrecognised } = sizes
  return {
    event: minus(event),
    known: minus(known),
    unrecognised: minus(unrecognised),
    subscriptions: -subscriptions,
  }
}

function partOf({ rows, bytes }: Size, part: number): Size {
  return { rows: rows * part, bytes: bytes * part }
}
