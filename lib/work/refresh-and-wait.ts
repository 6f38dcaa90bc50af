import { type Clock, SECOND } from '../clock.js'
import type { Store } from '../store/store.js'

/** Asks for a read of everything known of a business and waits until it is read, or has failed, or time is up. */
export function createRefreshAndWait<Decision>(options: {
  store: Pick<Store, 'requestRefresh' | 'subscriptionsOf' | 'subscribe'>
  explain(businessUid: string): Promise<Decision>
  /** Throws for what is no identifier. */
  checked(businessUid: string | number): string
  timeoutMs: number
  clock: Clock
}) {
  const { store, explain, checked, timeoutMs, clock } = options

  return async function refresh(given: string | number): Promise<Decision> {
    const businessUid = checked(given)
    const deadline = clock.monotonic() + timeoutMs
    let look = () => {}
    const unsubscribe = store.subscribe(() => look())
    try {
      await store.requestRefresh({ kind: 'business', businessUid, install: null })
      for (;;) {
        // A read that failed has been tried: it goes on by itself, and the decision says so.
        const owed = (await store.subscriptionsOf(businessUid)).some(
          (each) => each.pending && each.failure === null,
        )
        const leftMs = deadline - clock.monotonic()
        if (!owed || leftMs <= 0) break
        await new Promise<void>((resolve) => {
          const timer = clock.setTimeout(resolve, Math.min(SECOND / 4, leftMs), true)
          look = () => {
            clock.clearTimeout(timer)
            resolve()
          }
        })
      }
    } finally {
      unsubscribe()
    }
    return explain(businessUid)
  }
}
