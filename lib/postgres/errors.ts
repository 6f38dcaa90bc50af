import { MarketplaceError } from '../errors.js'

/** The SQLSTATE of an error, or the network's own code, or ''. */
export function postgresCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : ''
}

/**
 * Whether it speaks of a row's data: 22 data exception (a NUL in a text), 23 integrity constraint, 54000 program limit
 * (an index row too long).
 */
export function isDataError(error: unknown): boolean {
  return /^(22|23|54)\w{3}$/.test(postgresCode(error))
}

/**
 * Whether the connection is gone or unfit with it: 08 connection, 57P shutdown and the like, 25P03 idle in a
 * transaction for too long (this process stood still), 25P04 a transaction that took too long, 25006 read only (this
 * server is no primary any more).
 */
export function endsConnection(error: unknown): boolean {
  return /^(08\w{3}|57P\w{2}|25P03|25P04|25006)$/.test(postgresCode(error))
}

/**
 * Whether the same transaction may succeed at once: two that waited for each other (40), two that leased one key
 * (23505), a connection that ended, a server that is coming up again. Not 57P04: the database was dropped.
 */
export function isTransient(error: unknown): boolean {
  const code = postgresCode(error)
  if (/^(40001|40P01|23505|ECONNRESET|ECONNREFUSED|EPIPE)$/.test(code)) return true
  if (endsConnection(error)) return code !== '57P04'
  return error instanceof Error && /^Connection terminated unexpectedly|not queryable/.test(error.message)
}

/** Without `detail`, `where` and the like, which repeat rows' values; a password is in none of what is left. */
export function explainPostgres(error: unknown): unknown {
  if (error instanceof MarketplaceError) return error
  // By shape: in a realm of its own, as under jest, an error of Node's is no instance of this Error.
  const { message } = (error ?? {}) as { message?: unknown }
  const words = typeof message === 'string' && message !== '' ? message : 'the database does not answer'
  return Object.assign(new Error(words), { code: postgresCode(error) })
}
