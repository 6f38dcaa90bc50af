import { type Clock, SECOND } from '../schedule.js'
import type { Store } from '../store/store.js'

/** Asks for a read of everything known of a business and waits until it is read, or has failed, or time is up. */
export function createRefreshNow<Decision>(options: {
  store: Pick<Store, 'want' | 'subscriptionsOf' | 'subscribe'>
  explain(businessUid: string): Promise<Decision>
  /** Throws for what is no identifier. */
  checked(businessUid: string): string
  timeoutMs: number
  clock: Clock
}) {
  const { store, explain, checked, timeoutMs, clock } = options

  return async function refresh(given: string): Promise<Decision> {
    const businessUid = checked(given)
    const deadline = clock.now() + timeoutMs
    let tries = 0
    let look = () => {}
    const unsubscribe = store.subscribe((hint) => {
      if (hint.type !== 'decided') return
      if (hint.businessUid === businessUid) tries++
      look()
    })
    try {
      await store.want({ what: 'business', businessUid, installed: null })
      for (;;) {
        const pending = (await store.subscriptionsOf(businessUid)).filter((each) => each.pending)
        // A read that failed has been tried too: it goes on by itself, and the decision says so.
        if (pending.length === 0 || tries > pending.length || clock.now() >= deadline) break
        if (pending.every((each) => each.failure !== null) && tries >= pending.length) break
        await new Promise<void>((resolve) => {
          const timer = clock.setTimeout(resolve, SECOND / 4, true)
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
