/**
 * The app's logger, by shape: pino, bunyan, `console`, Fastify's. Each call is `(fields, message)`: pino writes a
 * structured line, and `console` prints `{ code: 'handler_failed' } A handler of …`. The fields are `code`, `area` and
 * `status`. Neither fields nor messages contain a secret, a token, the address of a delivery, or a body.
 */
export interface Logger {
  /** Details for an investigation. */
  debug?(fields: LogFields, message: string): unknown
  /** A problem has ended. */
  info?(fields: LogFields, message: string): unknown
  /** A problem that needs a look. The work continues. */
  warn(fields: LogFields, message: string): unknown
  /** A failure. */
  error(fields: LogFields, message: string): unknown
}

/** The fields of a line. */
export type LogFields = Record<string, string | number>
export type LogLevel = keyof Logger

type Log = (level: LogLevel, fields: LogFields, message: string) => void

/** Errors of the logger are dropped: it must not stop the work it reports. */
export function createLog(logger: Logger | undefined): Log | undefined {
  return (
    logger &&
    function log(level, fields, message) {
      try {
        const result = logger[level]?.(fields, message)
        if (result instanceof Promise) result.catch(() => {})
      } catch {
        // There is no other place to report it.
      }
    }
  )
}

/** Whether the value has the methods of a `Logger`. */
export function isLogger(value: unknown): boolean {
  const { warn, error } = (value ?? {}) as Record<string, unknown>
  return typeof warn === 'function' && typeof error === 'function'
}
