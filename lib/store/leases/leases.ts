import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { SECOND } from '../../base/clock.js'
import type { Leased } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, type Sql, sql } from '../sql/sql.js'

/**
 * The tables whose rows are leased. `dueAt` is when a row is due; while it is leased, when the lease runs out, in the time of
 * leases. Rows of the first two are suspect after that (`suspects.ts`).
 */
export const LEASED = {
  lane: { table: sql`lanes`, id: sql`key`, dueAt: sql`due_at` },
  read: { table: sql`subscriptions`, id: sql`subscription_uid`, dueAt: sql`refresh_at` },
  search: { table: sql`searches`, id: sql`business_uid`, dueAt: sql`search_at` },
} as const

/** The token of a lane that was taken from its holder. Nobody may claim it before that lease would have run out. */
export const TAKEN_BACK = 'taken back'

/** Two loads in one process measure its start with at most this difference. */
const SAME_START_MS = 100
const host = hostname()
/**
 * When this process started, by the machine's monotonic clock. Process ids are reused, and a restarted container often has
 * the same one: this time distinguishes them. Every load of this file in the process, also on another thread, measures the
 * same time to a fraction of a millisecond.
 */
const startedAt = Math.round(Number(process.hrtime.bigint()) / 1e6 - process.uptime() * SECOND)
/** Distinguishes this load from the others. Short, because every entry that ends keeps the token of its lease. */
const load = randomBytes(9).toString('base64url')
let leases = 0

/** A token for the leases of one claim, never used again. It contains the process that holds them. */
export function newLeaseToken(): string {
  return [host, process.pid, startedAt, load, ++leases].join('/')
}

/**
 * Whether the process that took the lease ran on this machine and has ended, so that the lease need not run out. False
 * where that is uncertain: for another machine, and for a process id that another process now has.
 */
export function isAbandoned(leaseToken: string): boolean {
  const [itsHost, itsPid, itsStart] = leaseToken.split('/')
  if (itsHost !== host) return false
  const pid = Number(itsPid)
  if (pid !== process.pid) return !isAlive(pid)
  const isThisProcess = Math.abs(Number(itsStart) - startedAt) < SAME_START_MS
  return !isThisProcess
}

function isAlive(pid: number): boolean {
  try {
    // Signal 0 ends nothing. It only shows whether the process exists.
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: alive, and owned by another user.
    return (error as { code?: unknown }).code !== 'ESRCH'
  }
}

/** Extends a lease. False when the caller has lost it. */
export async function renewLease(
  { leaseNow }: Pick<Engine, 'leaseNow'>,
  trx: Connection,
  kind: keyof typeof LEASED,
  lease: Leased,
  leaseMs: number,
): Promise<boolean> {
  const { table, id, dueAt } = LEASED[kind]
  const rows = await sql`
    update ${table} set ${dueAt} = ${leaseNow()} + ${leaseMs}
    where ${id} = ${lease.id} and ${sql.still(sql`lease_token = ${lease.leaseToken}`)} returning ${id}`.execute(
    trx,
  )
  return rows.length > 0
}

/** Lets the leases of processes of this machine that died run out at once. */
export async function endAbandonedLeases({ write, leaseNow }: Engine) {
  const all = Object.values(LEASED)
  await write(async (trx) => {
    // The others have run out. On PostgreSQL the index has an entry of every lease that was held since the oldest transaction.
    const isHeld = (dueAt: Sql) => sql`lease_token is not null and ${dueAt} > ${leaseNow()}`
    const tokens = all.map(
      ({ table, dueAt }) => sql`select lease_token as token from ${table} where ${isHeld(dueAt)}`,
    )
    const rows = await sql<{ token: string }>`${sql.join(tokens, ' union ')}`.execute(trx)
    for (const { token } of rows.filter((row) => isAbandoned(row.token)))
      for (const { table, dueAt } of all)
        await sql`update ${table} set ${dueAt} = ${leaseNow()} where lease_token = ${token} and ${isHeld(dueAt)}`.execute(
          trx,
        )
  })
}
