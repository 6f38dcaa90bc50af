import { type Clock, SECOND } from '../base/clock.js'
import { MarketplaceError } from '../base/errors.js'
import { sleep } from '../base/waiting.js'
import type { DueWork, Store, Topic } from '../store/port/store.js'

/** Work due within this time is waited for, such as a first retry or the pause between two reads. */
const SOON_MS = SECOND
/** The pause between two looks. Any process may do the work, and only tests call `settled`. */
const LOOK_EVERY_MS = 10
const TIMEOUT_MS = 30 * SECOND

/**
 * Settled means: this process accepts no delivery at the moment, and in no process on the store is a read, or an entry with
 * a handler, under way or due within a second. So `settled` waits for a first read, for the handlers of the change it found,
 * and for a retry within a second. It does not wait for a later retry, verification or reconcile, nor for changes without
 * a handler.
 */
export function createSettling(options: {
  store: Pick<Store, 'dueWork'>
  /** The topics this process handles. Undefined if other processes do: then entries of all topics that a process handles count. */
  topics: (() => readonly Topic[]) | undefined
  /** Whether searches for subscriptions count as reads. */
  searches?: boolean
  /** Whether the store knows the handlers of this process. One that was just added gets its events after that. */
  areTopicsKnown(): boolean
  /** Whether this process has work under way. The database shows its results before their answer is here, and is told. */
  isWorking(): boolean
  clock: Clock
}) {
  const { store, topics, searches = false, areTopicsKnown, isWorking, clock } = options
  let accepting = 0
  const accepted = () => {
    accepting--
  }

  async function settled({ timeoutMs = TIMEOUT_MS }: { timeoutMs?: number } = {}): Promise<void> {
    const until = clock.monotonic() + timeoutMs
    for (;;) {
      const due = await look()
      if (due === undefined) return
      if (clock.monotonic() >= until)
        throw new MarketplaceError('not_settled', `Cannot settle within ${timeoutMs} ms: ${due}`)
      await sleep(LOOK_EVERY_MS, clock)
    }
  }

  /** The reason to wait, as a phrase; undefined when settled. */
  async function look(): Promise<string | undefined> {
    if (accepting > 0) return 'a delivery is being accepted'
    const areKnown = areTopicsKnown()
    // Asked in any case, because it rejects if the store cannot be used any more, so that nobody waits for that in vain.
    const { reads, entries }: DueWork = await store.dueWork({
      withinMs: SOON_MS,
      topics: topics?.(),
      searches,
    })
    if (accepting > 0) return 'a delivery is being accepted'
    if (!areKnown) return 'the store does not know a new handler yet'
    const due = [...(reads ? ['a read'] : []), ...(entries ? ['an entry of the journal'] : [])]
    if (due.length > 0) return `${due.join(' and ')} is due or under way`
    return isWorking() ? 'the result of a read or of a handler is being written' : undefined
  }

  return {
    settled,
    /** Counts a delivery while it is being accepted. */
    accepting<T>(call: () => Promise<T>): Promise<T> {
      accepting++
      const called = call()
      called.then(accepted, accepted)
      return called
    },
  }
}
