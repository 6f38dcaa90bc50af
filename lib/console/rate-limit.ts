const MINUTE_MS = 60_000
/** The most names that are counted: more than a company has people. `authorize` already limits the names. */
const MAX_NAMES = 1_000

/** Returns a function that decides whether `name` may make one more call: up to `perMinute` at once, refilled evenly. */
export function createRateLimit(options: { perMinute: number; now?: () => number }) {
  const { perMinute, now = Date.now } = options
  const buckets = new Map<string, { left: number; at: number }>()

  return function take(name: string): boolean {
    const at = now()
    const { left, at: before } = buckets.get(name) ?? { left: perMinute, at }
    const refilled = Math.min(perMinute, left + (Math.max(0, at - before) / MINUTE_MS) * perMinute)
    const may = refilled >= 1
    buckets.delete(name)
    buckets.set(name, { left: may ? refilled - 1 : refilled, at })
    if (buckets.size > MAX_NAMES) buckets.delete(buckets.keys().next().value as string)
    return may
  }
}
