import { readFileSync } from 'node:fs'
import { type Clock, MINUTE } from '../clock.js'
import type { SqliteConnection } from './drivers.js'

/** The time of a SQLite store, which decides about leases and due times. */
export interface StoreTime {
  /** Milliseconds; see `startTime`. */
  now(): number
  /** Notes the time for the next boot, at most once a minute. Belongs to a write transaction. */
  note(connection: SqliteConnection): void
}

/**
 * All processes of a file run on one machine and share its CLOCK_MONOTONIC, which cannot be set. The store's time is
 * that clock plus an anchor: the wall clock minus CLOCK_MONOTONIC, as measured by the first process that opens the file
 * after a boot, and stored in the table `marketplace_time`. So every process reads the same time, and setting the wall
 * clock moves no lease. The next boot measures a new anchor, but the time never falls behind the last one noted, so it
 * does not run backward when a machine starts with a wrong wall clock. Without a boot id (not Linux) each process counts
 * as a boot of its own.
 *
 * A `clock` whose `monotonic()` counts from 1970, as in tests, is the time itself.
 *
 * Belongs to a write transaction, and always writes: the first commit of a WAL syncs its header, which the opening should
 * do and not the first delivery.
 */
export function startTime(connection: SqliteConnection, clock: Clock): StoreTime {
  // A monotonic clock that shows less than 2001 counts from something else, such as the start of the process.
  const isTime = clock.monotonic() > 1e12
  const processStart = isTime ? 0 : Number(process.hrtime.bigint()) / 1e6 - performance.now()
  const elapsed = () => processStart + clock.monotonic()
  const boot = isTime ? 'its own clock' : bootId()

  const [row] = connection.all('select boot, anchor, noted from marketplace_time', []) as {
    boot: string
    anchor: number
    noted: number
  }[]
  const anchor = isTime
    ? 0
    : row?.boot === boot
      ? row.anchor
      : Math.ceil(Math.max(clock.now(), row?.noted ?? 0) - elapsed())
  const now = () => Math.floor(elapsed() + anchor)
  let noted = now()
  if (!row) connection.all('insert into marketplace_time values (?, ?, ?, 0)', [boot, anchor, noted])
  else connection.all('update marketplace_time set boot = ?, anchor = ?, noted = ?', [boot, anchor, noted])

  return {
    now,
    note(connection) {
      const time = now()
      if (time - noted < MINUTE) return
      connection.all('update marketplace_time set noted = ? where noted < ?', [time, time])
      noted = time
    },
  }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return `process ${process.pid} ${performance.timeOrigin}`
  }
}
