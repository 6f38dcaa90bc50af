/**
 * Freezes all levels without recursion: a payload may be nested deeper than the stack, and have longer lists. What is inside an
 * object that is frozen already stays as it is.
 */
export function deepFreeze<T>(value: T): T {
  const rest: unknown[] = [value]
  while (rest.length > 0) {
    const next = rest.pop()
    if (typeof next !== 'object' || next === null || Object.isFrozen(next)) continue
    Object.freeze(next)
    for (const inner of Object.values(next)) rest.push(inner)
  }
  return value
}
