import { readFileSync } from 'node:fs'
import { type Clock, MINUTE } from '../clock.js'
import type { SqliteConnection } from './drivers.js'

/** The time of a SQLite store, by which leases and due times are judged. */
export interface StoreTime {
  /** Milliseconds; see `startTime`. */
  now(): number
  /** To be called in a write transaction: notes the time now and then, for the next boot. */
  note(connection: SqliteConnection): void
}

/**
 * All processes on a file share a machine, and so its CLOCK_MONOTONIC, which nobody can set. The store's time is that
 * clock plus an anchor: the wall clock minus CLOCK_MONOTONIC, taken by the first process that opens the file after a
 * boot, and kept in the table `marketplace_time`. So every process reads the same time, and a wall clock that is set,
 * forward or back, moves no lease. The next boot takes a new anchor, but never one that lies before the last time
 * noted, so the time does not run backward when a machine starts with a wrong wall clock. Where there is no boot id
 * (not Linux), each process is its own boot and takes its own anchor.
 *
 * A clock of the caller's own that counts from 1970 when it measures is the time itself.
 *
 * To be called in a write transaction, which it always makes one that writes: the first commit of a WAL syncs its header,
 * and the opening should do that rather than the first delivery.
 */
export function startTime(connection: SqliteConnection, clock: Clock): StoreTime {
  // Any measuring clock from before 2001 counts from something else, such as the start of the process.
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
