import { type Clock, SECOND } from '../clock.js'
import type { NewTally, Store, Tally } from '../store/store.js'
import { withDeadline } from '../waiting.js'

/** How long counts wait in memory. A killed process loses them. */
const FLUSH_MS = 5 * SECOND
const CLOSE_MS = SECOND

/** What is counted together. */
type Counted = Pick<Tally, 'kind' | 'name' | 'secret'>

interface Sum extends Counted {
  count: number
  /** By the monotonic clock. */
  firstAt: number
  lastAt: number
}

/**
 * Counts deliveries. Each costs an addition in memory, and the sums go to the store every few seconds, in one statement.
 * A killed process loses the sums it had not written: the numbers answer "does it arrive?", not "how much?".
 */
export function createDeliveryCounts(options: {
  store: Pick<Store, 'addTallies'>
  clock: Clock
  onError(error: unknown): void
}) {
  const { store, clock, onError } = options
  let unwritten = new Map<string, Sum>()
  let timer: unknown
  let flushing: Promise<void> = Promise.resolve()

  function add({ kind, name, secret }: Counted) {
    const at = clock.monotonic()
    const id = `${kind} ${name} ${secret}`
    const sum = unwritten.get(id)
    if (sum) {
      sum.count++
      sum.lastAt = at
    } else {
      unwritten.set(id, { kind, name, secret, count: 1, firstAt: at, lastAt: at })
    }
    flushLater()
  }

  function flushLater() {
    timer ??= clock.setTimeout(() => flush().catch(onError), FLUSH_MS)
  }

  /** Writes the sums, one flush at a time. Sums that could not be written stay counted. */
  function flush(): Promise<void> {
    clock.clearTimeout(timer)
    timer = undefined
    flushing = flushing.catch(() => {}).then(write)
    return flushing
  }

  async function write() {
    if (unwritten.size === 0) return
    const sums = unwritten
    unwritten = new Map()
    const now = clock.monotonic()
    const tallies = [...sums.values()].map(
      ({ firstAt, lastAt, ...sum }): NewTally => ({
        ...sum,
        firstAgoMs: Math.max(0, now - firstAt),
        lastAgoMs: Math.max(0, now - lastAt),
      }),
    )
    await store.addTallies(tallies).catch((error) => {
      for (const [id, sum] of sums) {
        const later = unwritten.get(id)
        unwritten.set(id, later ? { ...later, count: sum.count + later.count, firstAt: sum.firstAt } : sum)
      }
      flushLater()
      throw error
    })
  }

  return {
    add,
    flush,
    /** Writes the remaining sums, within CLOSE_MS: a store that hangs must not delay the close. */
    close: () =>
      withDeadline(
        flush(),
        CLOSE_MS,
        clock,
        () => new Error('the store did not write the counts of deliveries in time'),
      ).catch(onError),
  }
}
