import { requireFunction } from '../../base/listeners.js'
import { type Entry, EVERY_EVENT, type Topic, topicOf } from '../../store/port/store.js'

export interface HandlerContext<M> {
  /** Aborted when the handler has run out of time, its lease is lost, or the marketplace closes. */
  signal: AbortSignal
  /** 1 at the first try. */
  attempt: number
  /** The marketplace that calls the handler, for handlers in files of their own. */
  marketplace: M
}

/** A handler of the app. It succeeds when it returns or its promise resolves. Otherwise it is called again. */
export interface Handler<Payload, M> {
  (payload: Payload, context: HandlerContext<M>): unknown
  // With a property beside the signature, TypeScript compares handlers bivariantly as parameters of methods. So a
  // marketplace with events of its own fits where any marketplace is expected.
  /** The name of the function. */
  readonly name?: string
}

// biome-ignore lint/suspicious/noExplicitAny: one list has handlers of all payloads; the methods `on…` are typed
export type AnyHandler = Handler<any, any>

/** The app's handlers, by the journal entries they handle. Calls `onTopicsChange` when one was added or removed. */
export function createHandlers({ onTopicsChange = () => {} }: { onTopicsChange?: () => void } = {}) {
  const byTopic = new Map<Topic, Set<AnyHandler>>()
  const labels = new WeakMap<AnyHandler, string>()
  let count = 0

  function add(topic: Topic, handler: AnyHandler) {
    requireFunction(handler)
    // A wrapper: one function registered twice counts as two handlers, and each unsubscribes only itself.
    const own: AnyHandler = (payload, context) => handler(payload, context)
    const handlers = byTopic.get(topic) ?? new Set()
    byTopic.set(topic, handlers.add(own))
    labels.set(own, `${topic}#${++count}`)
    onTopicsChange()
    return () => {
      handlers.delete(own)
      onTopicsChange()
    }
  }

  return {
    on: (name: string, handler: AnyHandler) => add(topicOf({ kind: 'event', name }), handler),
    onAny: (handler: AnyHandler) => add(EVERY_EVENT, handler),
    onUnrecognised: (handler: AnyHandler) => add('unrecognised', handler),
    onChange: (handler: AnyHandler) => add('change', handler),
    onEntitlement: (handler: AnyHandler) => add('entitlement', handler),

    for(entry: Pick<Entry, 'kind' | 'name'>): AnyHandler[] {
      const ofEvery = entry.kind === 'event' ? byTopic.get(EVERY_EVENT) : undefined
      return [...(byTopic.get(topicOf(entry)) ?? []), ...(ofEvery ?? [])]
    },

    /** The topics this process handles. It claims no other entries. */
    topics: (): Topic[] => [...byTopic].flatMap(([topic, { size }]) => (size > 0 ? topic : [])),

    /** The handler's topic and number, for a message. */
    labelOf: (handler: AnyHandler): string => labels.get(handler) ?? 'unknown',
  }
}

export type Handlers = ReturnType<typeof createHandlers>
