/**
 * A logger of the app's own, by shape: pino, bunyan, `console`, Fastify's. Each call is `(fields, message)`: pino makes a
 * structured line of it, and `console` prints `{ code: 'handler_failed' } A handler of …`. Fields are flat and few: `code`,
 * `area`, `status`. Neither fields nor messages hold a secret, a token, an address of a delivery, or a body.
 */
export interface Logger {
  /** Details, for looking into something. */
  debug?(fields: LogFields, message: string): unknown
  /** What is as it should be again. */
  info?(fields: LogFields, message: string): unknown
  /** What needs a look, and went on by itself. */
  warn(fields: LogFields, message: string): unknown
  /** What failed. */
  error(fields: LogFields, message: string): unknown
}

/** The fields of a line. */
export type LogFields = Record<string, string | number>
export type LogLevel = keyof Logger

export type Log = (level: LogLevel, fields: LogFields, message: string) => void

/** Whatever the logger throws or rejects with is dropped: it must not stop the work it reports. */
export function createLog(logger: Logger | undefined): Log | undefined {
  return (
    logger &&
    function log(level, fields, message) {
      try {
        const result = logger[level]?.(fields, message)
        if (result instanceof Promise) result.catch(() => {})
      } catch {
        // There is nobody left to report it to.
      }
    }
  )
}

/** Whether it can be a `Logger`. */
export function isLogger(value: unknown): boolean {
  const { warn, error } = (value ?? {}) as Record<string, unknown>
  return typeof warn === 'function' && typeof error === 'function'
}
