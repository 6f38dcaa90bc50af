import type { Duplex } from 'node:stream'
import { MarketplaceError } from '../base/errors.js'

/** The SQLSTATE of an error, or its network code, or ''. */
export function postgresCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : ''
}

/**
 * Whether an error concerns the data of a row: 22 data exception (a NUL in a text), 23 integrity constraint, 54000 program limit
 * (an index row too long).
 */
export function isDataError(error: unknown): boolean {
  return /^(22|23|54)\w{3}$/.test(postgresCode(error))
}

/** Whether a statement took longer than the server allows it (57014), or the answer longer than this process waits. */
export function isTimeout(error: unknown): boolean {
  return /^(57014|ETIMEDOUT)$/.test(postgresCode(error))
}

/**
 * Whether the connection cannot be used after the error: 08 connection, 57P shutdown and similar, 25P03 idle in a
 * transaction for too long (this process was suspended), 25P04 a transaction that took too long, 25006 read only (this
 * server is not the primary any more).
 */
export function endsConnection(error: unknown): boolean {
  return /^(08\w{3}|57P\w{2}|25P03|25P04|25006)$/.test(postgresCode(error))
}

/**
 * Whether a connection does not have a prepared statement (26000), has it already because a pooler gave it to another
 * connection of ours (42P05), or a migration has changed its columns (0A000). A new connection has none of these.
 */
export function hasLostStatement(error: unknown): boolean {
  return /^(26000|42P05|0A000)$/.test(postgresCode(error))
}

/**
 * Whether the same transaction may succeed when repeated at once: a deadlock or a serialization failure (40), two
 * inserts of one key (23505), a lost connection or statement, a server that is starting. Not 57P04: the database was dropped.
 */
export function isTransient(error: unknown): boolean {
  const code = postgresCode(error)
  if (/^(40001|40P01|23505|ECONNRESET|ECONNREFUSED|EPIPE)$/.test(code)) return true
  if (hasLostStatement(error)) return true
  if (endsConnection(error)) return code !== '57P04'
  return error instanceof Error && /^Connection terminated unexpectedly|not queryable/.test(error.message)
}

/**
 * The error for callers: without `detail`, `where` and similar fields, which repeat values of rows. None of the rest has a
 * password.
 */
export function explainPostgres(error: unknown): unknown {
  if (error instanceof MarketplaceError) return error
  // The message is found by shape: in another realm, as under Jest, an error of Node is not an instance of this Error.
  const { message } = (error ?? {}) as { message?: unknown }
  const text = typeof message === 'string' && message !== '' ? message : 'the database does not answer'
  return Object.assign(new Error(text), { code: postgresCode(error) })
}

/** The part of a `Client` of `pg` that reads its socket, which may be one of TLS. */
export interface PgReader {
  attachListeners(stream: Duplex): void
}

/**
 * The parser of `pg` throws in a listener of the socket for a message that it does not know, such as the request of a
 * server for GSSAPI. That would end the process. Here it ends the connection.
 */
export function catchParserErrors(reader: PgReader | undefined): void {
  if (typeof reader?.attachListeners !== 'function') return
  const attachListeners = reader.attachListeners.bind(reader)
  reader.attachListeners = (stream) => {
    const emit = stream.emit.bind(stream) as (...event: unknown[]) => boolean
    stream.emit = (...event: unknown[]) => {
      try {
        return emit(...event)
      } catch (error) {
        stream.destroy(error as Error)
        return true
      }
    }
    attachListeners(stream)
  }
}
