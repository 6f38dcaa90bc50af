import { type Clock, SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import type { DueWork, Store, Topic } from '../store/store.js'

/** Work due within this time is waited for, such as a first retry or the pause between two reads. */
const SOON_MS = SECOND
/** Polling interval when no notification arrives: another process may do the work. */
const POLL_MS = 100
const TIMEOUT_MS = 30 * SECOND

/**
 * Idle means: this process accepts no delivery at the moment, and in no process on the store is a read, or an entry with
 * a handler, under way or due within a second. So `idle` waits for a first read, for the handlers of the change it found,
 * and for a retry within a second. It does not wait for a later retry, verification or reconcile, nor for changes without
 * a handler.
 */
export function createIdle(options: {
  store: Pick<Store, 'dueWork' | 'subscribe'>
  /** The topics this process handles. Undefined if other processes do: then every pending entry counts. */
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
        // Registered before the look, so that progress during the look is not missed.
        const progress = nextProgress(Math.min(POLL_MS, Math.max(1, until - clock.monotonic())))
        const due = await look()
        if (due === undefined) return progress.cancel()
        if (clock.monotonic() >= until) {
          progress.cancel()
          throw new MarketplaceError('not_idle', `Cannot become idle within ${timeoutMs} ms: ${due}`)
        }
        await progress.made
      }
    } finally {
      unsubscribe()
    }
  }

  /** The reason to wait, as a phrase; undefined when idle. */
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
    /** To be called after a read or a handler: everyone who waits looks again. */
    progress: wake,
    /** Counts a delivery while it is being accepted. */
    accepting<T>(call: () => Promise<T>): Promise<T> {
      accepting++
      const accepted = call()
      accepted.then(end, end)
      return accepted
    },
  }
}

export type Idle = ReturnType<typeof createIdle>
