/**
 * Compares identifiers by their bytes in UTF-8, as `Dialect.sortedText` sorts them. JavaScript compares UTF-16 units, which
 * puts the surrogates of an emoji before U+E000 to U+FFFF.
 *
 * Every transaction that waits for the locks of several rows takes them in one order, so that no two wait for each other:
 * names (`Engine.holdNames`), searches, subscriptions, the owner, handlers, lanes, entries of the journal; within a table by
 * bytes. Rows that a query for due rows picks are locked without waiting (`Dialect.skipLocked`), so their order does not
 * matter if the transaction then waits for no row that comes before them in this order.
 */
export function byBytes(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const difference = rankOf(a.charCodeAt(i)) - rankOf(b.charCodeAt(i))
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

/** The place of a UTF-16 unit in the order of code points: surrogates come after all others. */
function rankOf(unit: number): number {
  return unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800
}
