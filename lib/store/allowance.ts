import { type Clock, HOUR, SECOND } from '../base/clock.js'
import { nextTurn } from '../base/waiting.js'
import { ENTRY_STATUSES, type NewEvent, type TurnedAway, URGENCY } from './port/store.js'
import type { Engine } from './sql/engine.js'
import { type Sql, sql } from './sql/sql.js'
import { IS_DENIED } from './subscriptions/other-businesses.js'

/** A number of rows, and the bytes of their payloads. */
export interface Size {
  rows: number
  bytes: number
}

const MIB = 1024 * 1024
/** Some hundred MB of a database with all indexes, and far more than an app gets in a week. */
const ALLOWANCE: Allowance = {
  event: { rows: 1_000_000, bytes: 512 * MIB },
  unrecognised: { rows: 10_000, bytes: 64 * MIB },
  subscriptions: 1_000_000,
}
/** The time between two measurements, while the allowance is used up. */
const MEASURE_EVERY_MS = 10 * SECOND
/** The time between two searches for what may be deleted, while there is nothing. */
const DELETE_EVERY_MS = SECOND
/** The rows of one statement: on SQLite the event loop waits for it. */
const WINDOW = 2_000
/** Rows that are deleted at once to make room. */
const BATCH = 500

/** The most that the store keeps of what anybody with the delivery secret can make up. */
export interface Allowance {
  /** Events that name nothing that was read before. */
  event: Size
  unrecognised: Size
  /** Subscriptions that events named and no read has shown. */
  subscriptions: number
}

/**
 * Bounds what the store keeps of entries and subscriptions that may be made up, because nothing that they name was read
 * before. Room is made from what is finished: entries that were handled or that nobody handles, and subscriptions that
 * the platform has denied, the oldest first. What waits for its handler or for its first read is never deleted.
 *
 * Between two measurements every event counts, whatever it names, so accepting one asks the database nothing.
 */
export function createAllowance(options: {
  engine: Pick<Engine, 'read' | 'write' | 'skipLocked'>
  clock: Pick<Clock, 'monotonic'>
  allowance?: Allowance
}) {
  const { engine, clock, allowance = ALLOWANCE } = options
  /** What is stored, at most. */
  let used = nothing()
  /** What is not written yet, so no measurement counts it. */
  const underWay = nothing()
  /** What the measurement under way may not count: what was not written when it began, and what came since. */
  let added = nothing()
  let measuring: Promise<void> | undefined
  const freeEntries = shared(deleteEntries)
  const freeSubscriptions = shared(deleteSubscriptions)
  let measuredAt = Number.NEGATIVE_INFINITY

  async function entries(kind: 'event' | 'unrecognised'): Promise<Size> {
    const size = zero()
    for (const status of ENTRY_STATUSES) {
      for (let after: number | null = 0; after !== null; await nextTurn()) {
        const row = await engine.read((db) =>
          sql<{ rows: number; bytes: number | null; last: number | null }>`
            select count(*) as rows, sum(bytes) as bytes, max(seq) as last from (
              select seq, octet_length(payload) as bytes from journal
              where unread = 1 and kind = ${kind} and status = ${sql.lit(status)} and seq > ${after}
              order by seq limit ${sql.lit(WINDOW)}
            ) as ${sql.ref('window')}`.one(db),
        )
        add(size, { rows: row.rows, bytes: row.bytes ?? 0 })
        after = row.rows < WINDOW ? null : row.last
      }
    }
    return size
  }

  async function subscriptions(): Promise<number> {
    let count = 0
    for (let after: number | null = -1; after !== null; await nextTurn()) {
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

  async function measure() {
    if (clock.monotonic() - measuredAt < MEASURE_EVERY_MS) return
    measuring ??= (async () => {
      const beganAt = clock.monotonic()
      added = sum(underWay, nothing())
      used = sum(
        {
          event: await entries('event'),
          unrecognised: await entries('unrecognised'),
          subscriptions: await subscriptions(),
        },
        added,
      )
      measuredAt = beganAt
    })().finally(() => {
      measuring = undefined
    })
    await measuring
  }

  /**
   * Deletes finished entries of events: first those that were handled, of each status the oldest. One that was set aside waits
   * for its handler, so it is not among them; only a bounded part of the index is searched beside them.
   */
  async function deleteEntries() {
    // A range of the index for each status: for both together SQLite would sort all finished entries.
    for (const status of ['done', 'unhandled']) {
      const rows = await engine.write((trx) =>
        sql<{ bytes: number }>`
          delete from journal where id in (
            select id from (
              select id, status, settled_at from journal where unread = 1 and kind = 'event' and status = ${sql.lit(status)}
              order by seq limit ${sql.lit(WINDOW)} ${engine.skipLocked}
            ) as oldest where status = 'done' or settled_at is null limit ${sql.lit(BATCH)}
          ) returning octet_length(payload) as bytes`.execute(trx),
      )
      for (const { bytes } of rows) add(used.event, { rows: -1, bytes: -bytes })
      if (rows.length > 0) return true
    }
    return false
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

  function hasRoom({ event, unrecognised }: Wanted): boolean {
    // What other processes and earlier ones have stored is known a moment later.
    if (measuredAt === Number.NEGATIVE_INFINITY) measure().catch(() => {})
    return (
      (unrecognised.rows === 0 || fits(used.unrecognised, unrecognised, allowance.unrecognised)) &&
      (event.rows === 0 ||
        (fits(used.event, event, allowance.event) &&
          used.subscriptions + event.rows <= allowance.subscriptions))
    )
  }

  /** Counts events that are going to be written. The function that it returns says that they are, or never will be. */
  function use({ event, unrecognised }: Wanted): () => void {
    const size = { event, unrecognised, subscriptions: event.rows }
    for (const total of measuring ? [used, added, underWay] : [used, underWay]) addAll(total, size)
    return () => addAll(underWay, negative(size))
  }

  /** As `use`, if there is room. Undefined: the store keeps as much as it may of what may be made up. */
  const take = (wanted: Wanted) => (hasRoom(wanted) ? use(wanted) : undefined)

  /**
   * All that wait for room share a deletion, and after one that found nothing the next is a moment later: a flood that is
   * refused must not keep the database busy.
   */
  function shared(deleteSome: () => Promise<boolean>): () => Promise<boolean> {
    let deleting: Promise<boolean> | undefined
    let foundNothingAt = Number.NEGATIVE_INFINITY
    return async () => {
      if (clock.monotonic() - foundNothingAt < DELETE_EVERY_MS) return false
      deleting ??= deleteSome().finally(() => {
        deleting = undefined
      })
      const hasFound = await deleting
      if (!hasFound) foundNothingAt = clock.monotonic()
      return hasFound
    }
  }

  return {
    hasRoom,
    use,
    take,

    /** As `take`, after a measurement, with the room that what is finished makes. */
    async takeAfterAll(wanted: Wanted): Promise<(() => void) | undefined> {
      // One under way may count twice what comes meanwhile.
      await measuring
      await measure()
      for (;;) {
        const taken = take(wanted)
        if (taken) return taken
        const free = fits(used.event, wanted.event, allowance.event) ? freeSubscriptions : freeEntries
        // Unrecognised deliveries get no room that way.
        if (hasRoom({ ...wanted, unrecognised: zero() }) || !(await free())) return undefined
      }
    },
  }
}

/** The sizes of the events of one call, by kind. */
export interface Wanted {
  event: Size
  unrecognised: Size
}

export function sizesOf(events: readonly NewEvent[]): Wanted {
  const wanted = { event: zero(), unrecognised: zero() }
  for (const { kind, payload } of events) add(wanted[kind], { rows: 1, bytes: Buffer.byteLength(payload) })
  return wanted
}

const zero = (): Size => ({ rows: 0, bytes: 0 })
const nothing = (): Allowance => ({ event: zero(), unrecognised: zero(), subscriptions: 0 })

function sum(some: Allowance, more: Allowance): Allowance {
  const total = nothing()
  for (const each of [some, more]) addAll(total, each)
  return total
}

function addAll(total: Allowance, more: Allowance): void {
  add(total.event, more.event)
  add(total.unrecognised, more.unrecognised)
  total.subscriptions += more.subscriptions
}

function negative({ event, unrecognised, subscriptions }: Allowance): Allowance {
  const minus = ({ rows, bytes }: Size) => ({ rows: -rows, bytes: -bytes })
  return { event: minus(event), unrecognised: minus(unrecognised), subscriptions: -subscriptions }
}

export function add(total: Size, more: Size): void {
  total.rows += more.rows
  total.bytes += more.bytes
}

export function fits(size: Size, more: Size, bound: Size): boolean {
  return size.rows + more.rows <= bound.rows && size.bytes + more.bytes <= bound.bytes
}

/** The most names of unrecognised deliveries that are counted apart. */
const MAX_NAMES = 20
const MAX_NAME_LENGTH = 80

/** Counts the deliveries for which there was no room; unrecognised ones by name. */
export function createTurnedAway(clock: Pick<Clock, 'monotonic'>) {
  let at = Number.NEGATIVE_INFINITY
  let refused = 0
  const names = new Map<string, number>()

  function note() {
    if (clock.monotonic() - at > HOUR) {
      refused = 0
      names.clear()
    }
    at = clock.monotonic()
  }

  return {
    refused() {
      note()
      refused++
    },
    counted(events: readonly NewEvent[]) {
      note()
      for (const { payload } of events) {
        const found = nameIn(payload)
        const name = names.has(found) || names.size < MAX_NAMES ? found : 'others'
        names.set(name, (names.get(name) ?? 0) + 1)
      }
    },
    lately: (): TurnedAway | null =>
      clock.monotonic() - at > HOUR ? null : { refused, counted: [...names] },
  }
}

/** The names of an envelope that is not recognised, or `without names`. */
function nameIn(payload: string): string {
  try {
    const { entity_name, event_type } = JSON.parse(payload) ?? {}
    if (typeof entity_name === 'string' && typeof event_type === 'string')
      return `${entity_name} ${event_type}`.slice(0, MAX_NAME_LENGTH)
  } catch {}
  return 'without names'
}
