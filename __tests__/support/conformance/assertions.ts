import assert from 'node:assert/strict'

/** Asserts that two values are equal in structure. Rows of another realm (jest gives each file one) have other prototypes. */
export function same(actual: unknown, expected: unknown, message?: string): void {
  assert.deepStrictEqual(ownRealm(actual), ownRealm(expected), message)
}

function ownRealm(value: unknown): unknown {
  if (Array.isArray(value)) return Array.from(value, ownRealm)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, ownRealm(each)]))
}

/** Asserts that `actual` has these fields with these values. It may have others. */
export function has<T extends object>(actual: T | undefined, expected: Partial<T>): void {
  assert(actual, 'the value is missing')
  const named = Object.keys(expected) as (keyof T)[]
  same(Object.fromEntries(named.map((key) => [key, actual[key]])), expected)
}

export const idsOf = (items: readonly { id: string }[]): string[] => items.map(({ id }) => id)

/** Asserts that a time or a count is a number, not a bigint or text. */
export function isNumber(value: unknown, what: string): asserts value is number {
  assert(Number.isSafeInteger(value), `${what} is ${typeof value} ${String(value)}`)
}
