import { spread } from '../backoff.js'
import { type Clock, MINUTE, SECOND } from '../clock.js'
import type { Store, Topic } from '../store/store.js'

/** Interval at which this process reports its topics to the store. */
const REPEAT_MS = 30 * SECOND
/** A topic that no process has reported for so long is retired: its entries wait without blocking others. */
const RETIRE_MS = 3 * MINUTE
/** After this time, a receiver that read the topics just before a handler was added has committed its entries. */
const SECOND_LOOK_MS = 15 * SECOND
/** A new handler also gets the events that came this shortly before its process was started. */
const MARGIN_MS = MINUTE

/**
 * Reports the topics of this process to all receivers through the store, and releases the entries that waited for
 * them. A handler added late gets all events that came since its process was started.
 */
export function createTopicKeeper(options: {
  store: Pick<Store, 'handleTopics'>
  topics(): Topic[]
  clock: Clock
  onError(error: unknown): void
}) {
  const { store, topics, clock, onError } = options
  const createdAt = clock.monotonic()
  /** When the store first knew a topic (null: not yet). `isSettled`: reported twice since. */
  const added = new Map<Topic, { knownAt: number | null; isSettled: boolean }>()
  let state: 'new' | 'started' | 'closed' = 'new'
  let running = false
  let isRequestedAgain = false
  let timer: unknown

  function note() {
    const now = topics()
    for (const topic of added.keys()) if (!now.includes(topic)) added.delete(topic)
    for (const topic of now) if (!added.has(topic)) added.set(topic, { knownAt: null, isSettled: false })
  }

  async function report() {
    clock.clearTimeout(timer)
    if (state !== 'started') return
    if (running) {
      isRequestedAgain = true
      return
    }
    running = true
    const beganAt = clock.monotonic()
    const young = [...added.values()].filter(({ isSettled }) => !isSettled)
    const since = Math.min(...young.map(({ knownAt }) => knownAt ?? createdAt))
    let nextMs: number
    try {
      await store.handleTopics({
        topics: [...added.keys()],
        rescueMs: young.length === 0 ? 0 : beganAt - since + MARGIN_MS,
        retireMs: RETIRE_MS,
      })
      for (const topic of young) {
        topic.knownAt ??= clock.monotonic()
        topic.isSettled = beganAt - topic.knownAt >= SECOND_LOOK_MS
      }
      nextMs = young.some(({ isSettled }) => !isSettled) ? SECOND_LOOK_MS : spread(REPEAT_MS, 0.1)
    } catch (error) {
      onError(error)
      nextMs = spread(2 * SECOND, 0.5)
    }
    running = false
    if (state !== 'started') return
    if (isRequestedAgain) {
      isRequestedAgain = false
      void report()
    } else timer = clock.setTimeout(report, nextMs)
  }

  return {
    start() {
      if (state !== 'new') return
      state = 'started'
      note()
      void report()
    },
    /** A handler was added or removed. */
    changed() {
      note()
      void report()
    },
    /** Whether the store knows all topics of this process, so that its events for them are pending. */
    isUpToDate: () => topics().every((topic) => (added.get(topic)?.knownAt ?? null) !== null),
    close() {
      state = 'closed'
      clock.clearTimeout(timer)
    },
  }
}
