import { type Clock, SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import type { DueWork, Store, Topic } from '../store/store.js'

/** What is due this soon is waited for: a first retry, the pause between two reads. */
const SOON_MS = SECOND
/** How often to look when nothing tells of progress: another process may be at work. */
const POLL_MS = 100
const TIMEOUT_MS = 30 * SECOND

/**
 * Idle is: no delivery is being accepted here, and no read and no entry with a handler is due within a second or under
 * way, in any process on the store. So it waits for a first read, for the handlers of what the read changed, and for a
 * retry that is near; not for a retry, a verification or a reconcile that is further ahead, and not for changes that no
 * handler is registered for.
 */
export function createIdle(options: {
  store: Pick<Store, 'dueWork' | 'subscribe'>
  /** What this process handles; undefined: other processes do, and whatever is pending is waited for. */
  topics: (() => readonly Topic[]) | undefined
  clock: Clock
}) {
  const { store, topics, clock } = options
  let accepting = 0
  const waiting = new Set<() => void>()
  const wake = () => {
    for (const look of waiting) look()
  }

  function end() {
    accepting--
    wake()
  }

  async function idle({ timeoutMs = TIMEOUT_MS }: { timeoutMs?: number } = {}): Promise<void> {
    const until = clock.monotonic() + timeoutMs
    const unsubscribe = store.subscribe(wake)
    try {
      for (;;) {
        // Progress during the look counts: the next one must not wait for more.
        const progress = nextProgress(Math.min(POLL_MS, Math.max(1, until - clock.monotonic())))
        const due = await look()
        if (due === undefined) return progress.cancel()
        if (clock.monotonic() >= until) {
          progress.cancel()
          throw new MarketplaceError('not_idle', `Cannot wait any longer after ${timeoutMs} ms: ${due}`)
        }
        await progress.made
      }
    } finally {
      unsubscribe()
    }
  }

  /** What there is to wait for, in words. */
  async function look(): Promise<string | undefined> {
    if (accepting > 0) return 'a delivery is being accepted'
    const { reads, entries }: DueWork = await store.dueWork({ withinMs: SOON_MS, topics: topics?.() })
    if (accepting > 0) return 'a delivery is being accepted'
    const due = [...(reads ? ['a read'] : []), ...(entries ? ['an entry of the journal'] : [])]
    return due.length === 0 ? undefined : `${due.join(' and ')} is due or under way`
  }

  function nextProgress(withinMs: number) {
    let cancel = () => {}
    const made = new Promise<void>((resolve) => {
      const end = () => {
        clock.clearTimeout(timer)
        waiting.delete(end)
        resolve()
      }
      const timer = clock.setTimeout(end, withinMs)
      waiting.add(end)
      cancel = end
    })
    return { made, cancel }
  }

  return {
    idle,
    /** Something was read or handled: whoever waits looks again. */
    progress: wake,
    /** Counts a delivery that is being accepted. */
    accepting<T>(call: () => Promise<T>): Promise<T> {
      accepting++
      const accepted = call()
      accepted.then(end, end)
      return accepted
    },
  }
}

export type Idle = ReturnType<typeof createIdle>
