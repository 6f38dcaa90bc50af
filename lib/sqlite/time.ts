import { readFileSync } from 'node:fs'
import { type Clock, LEAP_MS, MINUTE } from '../base/clock.js'
import type { SqliteConnection } from './drivers.js'

/** The two times of a SQLite store, in milliseconds; see `startTime`. */
export interface SqliteTime {
  /** For dates, ages and due times. It goes on while the machine sleeps. */
  now(): number
  /** For leases. It stands still while the machine sleeps, and setting the wall clock does not move it. */
  ofLeases(): number
  /** Notes what the clocks did, at most once a minute unless the wall clock leapt. Belongs to a write transaction. */
  note(connection: SqliteConnection): void
  /** Follows what another process has noted. */
  follow(connection: SqliteConnection): void
}

/**
 * Starts the two times of a SQLite store. The time of leases is the machine's monotonic clock plus an anchor in the
 * database; the time of dates also follows every leap of the wall clock forward. See docs/decisions/sqlite-times.md.
 *
 * When a boot begins with a wall clock that is behind the time noted last, a later correction of it counts only from the
 * noted time on.
 *
 * A `clock` whose `monotonic()` counts from 1970, as in tests, is the time of leases itself.
 *
 * Belongs to a write transaction, and always writes: the first commit of a WAL syncs its header, which the opening should
 * do and not the first delivery.
 */
export function startTime(connection: SqliteConnection, clock: Clock): SqliteTime {
  // A monotonic clock that shows less than 2001 counts from something else, such as the start of the process.
  const isTime = clock.monotonic() > 1e12
  const processStart = isTime ? 0 : Number(process.hrtime.bigint()) / 1e6 - performance.now()
  const elapsed = () => processStart + clock.monotonic()
  const wall = () => Math.round(clock.now() - elapsed())
  const boot = isTime ? 'its own clock' : bootId()

  const row = readRow(connection)
  const isSameBoot = row?.boot === boot
  const anchor = isTime
    ? 0
    : isSameBoot
      ? row.anchor
      : Math.ceil(Math.max(clock.now(), row?.noted ?? 0) - elapsed())
  const behind = isTime || isSameBoot ? 0 : Math.max(0, Math.round((row?.noted ?? 0) - clock.now()))
  const kept = isSameBoot ? readDates(connection, boot) : undefined
  let dates = afterLeap(kept ?? { dates: anchor, wall: wall(), behind }, wall())

  const now = () => {
    dates = afterLeap(dates, wall())
    return Math.floor(elapsed() + dates.dates)
  }
  let noted = now()
  let written = dates
  if (!row) connection.all('insert into marketplace_time values (?, ?, ?, 0)', [boot, anchor, noted])
  else connection.all('update marketplace_time set boot = ?, anchor = ?, noted = ?', [boot, anchor, noted])
  writeDates(connection, boot, dates)

  /**
   * Another process may have seen a leap that was over before this one looked. This one looks first: a leap that both see,
   * and both add, counts once.
   */
  function follow(connection: SqliteConnection) {
    now()
    const others = readDates(connection, boot)
    if (others && others.dates > dates.dates) dates = { ...dates, dates: others.dates }
  }

  return {
    now,
    ofLeases: () => Math.floor(elapsed() + anchor),
    follow,
    note(connection) {
      const time = now()
      if (time - noted < MINUTE && dates === written) return
      follow(connection)
      writeDates(connection, boot, dates)
      written = dates
      noted = now()
      connection.all('update marketplace_time set noted = ? where noted < ?', [noted, noted])
    },
  }
}

/** Where the time of dates is. All three are relative to CLOCK_MONOTONIC. */
interface Dates {
  dates: number
  /** The wall clock when it was last looked at. */
  wall: number
  /** How far the wall clock was behind when the machine started, as far as it has not been corrected. */
  behind: number
}

function afterLeap(before: Dates, wall: number): Dates {
  const leapt = wall - before.wall
  if (Math.abs(leapt) <= LEAP_MS) return before
  const forward = Math.max(0, leapt)
  const corrected = Math.min(before.behind, forward)
  return { dates: before.dates + forward - corrected, wall, behind: before.behind - corrected }
}

function readRow(connection: SqliteConnection) {
  const [row] = connection.all('select boot, anchor, noted from marketplace_time', [])
  return row as { boot: string; anchor: number; noted: number } | undefined
}

function readDates(connection: SqliteConnection, boot: string): Dates | undefined {
  const [row] = connection.all('select dates, wall, behind from marketplace_dates where boot = ?', [boot])
  return row as Dates | undefined
}

function writeDates(connection: SqliteConnection, boot: string, { dates, wall, behind }: Dates) {
  connection.all('delete from marketplace_dates', [])
  connection.all('insert into marketplace_dates values (?, ?, ?, ?)', [boot, dates, wall, behind])
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return `process ${process.pid} ${performance.timeOrigin}`
  }
}
