import assert from 'node:assert/strict'

/** That two values are alike in structure. Rows of another realm (jest gives each file one) have other prototypes. */
export function same(actual: unknown, expected: unknown, message?: string): void {
  assert.deepStrictEqual(ownRealm(actual), ownRealm(expected), message)
}

function ownRealm(value: unknown): unknown {
  if (Array.isArray(value)) return Array.from(value, ownRealm)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, ownRealm(each)]))
}

/** That `actual` has these fields with these values, whatever else it has. */
export function has<T extends object>(actual: T | undefined, expected: Partial<T>): void {
  assert(actual, 'there is nothing')
  const named = Object.keys(expected) as (keyof T)[]
  same(Object.fromEntries(named.map((key) => [key, actual[key]])), expected)
}

export const idsOf = (items: readonly { id: string }[]): string[] => items.map(({ id }) => id)

/** A time or a count as the port has it: a number, never a bigint or the text of one. */
export function isNumber(value: unknown, what: string): asserts value is number {
  assert(Number.isSafeInteger(value), `${what} is ${typeof value} ${String(value)}`)
}
