import { spread } from '../backoff.js'
import { type Clock, MINUTE, SECOND } from '../clock.js'
import type { Store, Topic } from '../store/store.js'

/** How often the store is told that this process still handles its topics. */
const REPEAT_MS = 30 * SECOND
/** A topic that nobody named for so long is retired: its entries wait, and stand in nobody's way. */
const RETIRE_MS = 3 * MINUTE
/** A receiver that looked just before a handler was added has committed by then. */
const SECOND_LOOK_MS = 15 * SECOND
/** Events that came so shortly before a handler was added are handed to it too. */
const MARGIN_MS = SECOND

/** Keeps the topics that this process handles known to all that receive, and what waited for them moving. */
export function createTopicKeeper(options: {
  store: Pick<Store, 'handleTopics'>
  topics(): Topic[]
  clock: Clock
  onError(error: unknown): void
}) {
  const { store, topics, clock, onError } = options
  /** When a handler for it was added, and when the store was first told; null: not yet. `settled`: looked twice since. */
  const added = new Map<Topic, { at: number; knownAt: number | null; isSettled: boolean }>()
  let state: 'new' | 'started' | 'closed' = 'new'
  let running = false
  let isAskedAgain = false
  let timer: unknown

  function note() {
    const now = topics()
    for (const topic of added.keys()) if (!now.includes(topic)) added.delete(topic)
    for (const topic of now)
      if (!added.has(topic)) {
        added.set(topic, { at: clock.monotonic(), knownAt: null, isSettled: false })
      }
  }

  async function keep() {
    clock.clearTimeout(timer)
    if (state !== 'started') return
    if (running) {
      isAskedAgain = true
      return
    }
    running = true
    const beganAt = clock.monotonic()
    const young = [...added.values()].filter(({ isSettled }) => !isSettled)
    let nextMs: number
    try {
      await store.handleTopics({
        topics: [...added.keys()],
        rescueMs: young.length === 0 ? 0 : beganAt - Math.min(...young.map(({ at }) => at)) + MARGIN_MS,
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
    if (isAskedAgain) {
      isAskedAgain = false
      void keep()
    } else timer = clock.setTimeout(keep, nextMs)
  }

  return {
    start() {
      if (state !== 'new') return
      state = 'started'
      note()
      void keep()
    },
    /** A handler was added or removed. */
    changed() {
      note()
      void keep()
    },
    close() {
      state = 'closed'
      clock.clearTimeout(timer)
    },
  }
}
