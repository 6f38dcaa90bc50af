/**
 * A cell of CSV (RFC 4180), in quotes if it begins or ends with white space. A spreadsheet would run a received text that
 * begins as a formula, so a `'` stands before it, and before a `'` of its own, so that `textOfCell` finds the text again.
 */
export function cellOf(text: string): string {
  const safe = text.replace(/[\r\n]+/g, ' ').replace(/^(?=[=+\-@'])/, "'")
  return /[",]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** The text of a cell without its quotes: the opposite of `cellOf`. A `'` before any other text is a part of it. */
export function textOfCell(cell: string): string {
  return cell.replace(/^'(?=[=+\-@'])/, '')
}
