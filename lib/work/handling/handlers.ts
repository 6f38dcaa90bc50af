import { requireFunction } from '../../base/listeners.js'
import { type Entry, EVERY_EVENT, type Topic, topicOf } from '../../store/port/store.js'

export interface HandlerContext<M> {
  /** Aborted when the handler has run out of time, its lease is lost, or the marketplace closes. */
  signal: AbortSignal
  /** 1 at the first try. */
  attempt: number
  marketplace: M
}

/** Succeeds when it returns or its promise resolves. Otherwise it is called again. */
export interface Handler<Payload, M> {
  (payload: Payload, context: HandlerContext<M>): unknown
  // With a property beside the signature, TypeScript compares handlers bivariantly as parameters of methods. So a
  // marketplace with events of its own fits where any marketplace is expected.
  readonly name?: string
}

// biome-ignore lint/suspicious/noExplicitAny: one list has handlers of all payloads; the methods `on…` are typed
export type AnyHandler = Handler<any, any>

/** The app's handlers, by the journal entries they handle. Calls `onTopicsChange` when one was added or removed. */
export function createHandlers({ onTopicsChange = () => {} }: { onTopicsChange?: () => void } = {}) {
  const byName = new Map<string, Set<AnyHandler>>()
  const any = new Set<AnyHandler>()
  const unrecognised = new Set<AnyHandler>()
  const changes = new Set<AnyHandler>()
  const labels = new WeakMap<AnyHandler, string>()
  let count = 0

  function add(handlers: Set<AnyHandler>, topic: Topic, handler: AnyHandler) {
    requireFunction(handler)
    // A wrapper: one function registered twice counts as two handlers, and each unsubscribes only itself.
    const own: AnyHandler = (payload, context) => handler(payload, context)
    handlers.add(own)
    labels.set(own, `${topic}#${++count}`)
    onTopicsChange()
    return () => {
      handlers.delete(own)
      onTopicsChange()
    }
  }

  return {
    on(name: string, handler: AnyHandler) {
      const handlers = byName.get(name) ?? new Set()
      byName.set(name, handlers)
      return add(handlers, topicOf({ kind: 'event', name }), handler)
    },
    onAny: (handler: AnyHandler) => add(any, EVERY_EVENT, handler),
    onUnrecognised: (handler: AnyHandler) => add(unrecognised, 'unrecognised', handler),
    onChange: (handler: AnyHandler) => add(changes, 'change', handler),

    for({ kind, name }: Pick<Entry, 'kind' | 'name'>): AnyHandler[] {
      if (kind === 'change') return [...changes]
      if (kind === 'unrecognised') return [...unrecognised]
      return [...(byName.get(name) ?? []), ...any]
    },

    /** The topics this process handles. It claims no other entries. */
    topics(): Topic[] {
      return [
        ...[...byName].flatMap(([name, { size }]) => (size > 0 ? topicOf({ kind: 'event', name }) : [])),
        ...(any.size > 0 ? [EVERY_EVENT] : []),
        ...(unrecognised.size > 0 ? ['unrecognised'] : []),
        ...(changes.size > 0 ? ['change'] : []),
      ]
    },

    /** The handler's topic and number, for a message. */
    labelOf: (handler: AnyHandler): string => labels.get(handler) ?? 'unknown',
  }
}

export type Handlers = ReturnType<typeof createHandlers>
