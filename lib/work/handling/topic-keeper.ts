import { spread } from '../../base/backoff.js'
import { type Clock, MINUTE, SECOND } from '../../base/clock.js'
import { HANDLED_FOR_MS, type Store, type Topic } from '../../store/port/store.js'

/** Interval at which this process reports its topics to the store. */
const REPEAT_MS = 30 * SECOND
/** A new handler also gets the unhandled events that came this shortly before its marketplace was created. */
const MARGIN_MS = MINUTE

/**
 * Reports the topics of this process to all receivers through the store. Entries of a topic are claimed once the store
 * knows it, and has made those pending that came before and are unhandled: since a minute before this keeper was created, or
 * while no process had such a handler any more. So a handler that is added late gets them first. What was pending when it
 * came, for another handler, is not called again for it.
 */
export function createTopicKeeper(options: {
  store: Pick<Store, 'handleTopics'>
  topics(): Topic[]
  clock: Clock
  /** Called when more topics may be claimed. */
  onKnown?(): void
  onError(error: unknown): void
}) {
  const { store, topics, clock, onKnown = () => {}, onError } = options
  const createdAt = clock.monotonic()
  const added = new Map<Topic, { isKnown: boolean }>()
  let state: 'new' | 'started' | 'closed' = 'new'
  let running = false
  let isRequestedAgain = false
  let timer: unknown

  function note() {
    const now = topics()
    for (const topic of added.keys()) if (!now.includes(topic)) added.delete(topic)
    for (const topic of now) if (!added.has(topic)) added.set(topic, { isKnown: false })
  }

  async function report() {
    clock.clearTimeout(timer)
    if (state !== 'started') return
    if (running) {
      isRequestedAgain = true
      return
    }
    running = true
    const young = [...added.values()].filter(({ isKnown }) => !isKnown)
    let nextMs = spread(REPEAT_MS, 0.1)
    try {
      await store.handleTopics({
        topics: [...added.keys()],
        rescueMs: young.length === 0 ? 0 : clock.monotonic() - createdAt + MARGIN_MS,
        retireMs: HANDLED_FOR_MS,
      })
      for (const topic of young) topic.isKnown = true
      if (young.length > 0) onKnown()
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
    /** The topics that this process may claim. */
    known: (): Topic[] => topics().filter((topic) => added.get(topic)?.isKnown),
    /** Whether the store knows all topics of this process, so that its events for them are pending. */
    isUpToDate: () => topics().every((topic) => added.get(topic)?.isKnown),
    close() {
      state = 'closed'
      clock.clearTimeout(timer)
    },
  }
}
