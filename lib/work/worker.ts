import { type Clock, HOUR, SECOND } from '../schedule.js'
import type { KeepTimes, Store } from '../store/store.js'
import type { LeaseLoop } from './lease-loop.js'

/** The two loops and the sweeping, started and stopped together and woken by what the store tells. */
export function createWorker(options: {
  store: Pick<Store, 'subscribe' | 'prune'>
  refresher: Pick<LeaseLoop, 'start' | 'wake' | 'close' | 'lookedAt'>
  dispatcher: Pick<LeaseLoop, 'start' | 'wake' | 'close' | 'lookedAt'>
  keep: KeepTimes
  clock: Clock
  onError(error: unknown): void
}) {
  const { store, refresher, dispatcher, keep, clock, onError } = options
  let sweeping: unknown
  let started = false
  let closed = false

  const unsubscribe = store.subscribe((hint) => {
    if (hint.type === 'wanted') refresher.wake()
    if (hint.type === 'journal') dispatcher.wake()
  })

  async function sweep() {
    // A batch at a time with a pause between: what is over must not hold up what comes in.
    const deleted = await store.prune(keep).catch((error) => {
      onError(error)
      return 0
    })
    if (!closed) sweeping = clock.setTimeout(sweep, deleted > 0 ? SECOND / 10 : HOUR)
  }

  return {
    start() {
      if (started || closed) return
      started = true
      refresher.start()
      dispatcher.start()
      sweeping = clock.setTimeout(sweep, SECOND)
    },
    /** Milliseconds since the loop that has not looked for longest has; a loop that is stuck stops looking. */
    idleMs: () => clock.now() - Math.min(refresher.lookedAt(), dispatcher.lookedAt()),
    async close(graceMs: number) {
      closed = true
      unsubscribe()
      clock.clearTimeout(sweeping)
      await Promise.all([refresher.close(graceMs), dispatcher.close(graceMs)])
    },
  }
}

export type Worker = ReturnType<typeof createWorker>
