/**
 * The payloads that one transaction reads or rewrites, apart from the last: on SQLite the event loop waits for it, and an
 * update writes the whole row again.
 */
export const MAX_BYTES = 1024 * 1024

/** The rows from `at` on, until their payloads reach `MAX_BYTES`: at least one, if any is left. */
export function withinBytes<Row extends { bytes: number }>(rows: readonly Row[], at = 0): Row[] {
  let end = at
  for (let bytes = 0; end < rows.length && bytes < MAX_BYTES; end++) bytes += (rows[end] as Row).bytes
  return rows.slice(at, end)
}
