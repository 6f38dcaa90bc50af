import { MarketplaceError } from '../errors.js'
import type { Entry, EntryKind } from '../store/store.js'

export interface HandlerContext<M> {
  /** Aborted when the handler has run out of time, its lease is lost, or the marketplace closes. */
  signal: AbortSignal
  /** 1 at the first try. */
  attempt: number
  marketplace: M
}

/** A handler has dealt with it when it returns or its promise resolves; anything else is tried again. */
export type Handler<Payload, M> = (payload: Payload, context: HandlerContext<M>) => unknown

// biome-ignore lint/suspicious/noExplicitAny: handlers of all payloads stand in one list; `on…` are the typed doors
export type AnyHandler = Handler<any, any>

/** The app's handlers: who wants which entry of the journal. */
export function createHandlers() {
  const byName = new Map<string, Set<AnyHandler>>()
  const any = new Set<AnyHandler>()
  const unrecognised = new Set<AnyHandler>()
  const changes = new Set<AnyHandler>()

  function add(handlers: Set<AnyHandler>, handler: AnyHandler) {
    requireFunction(handler)
    // A wrapper, so that one function registered twice is two handlers and each unsubscribes itself.
    const own: AnyHandler = (payload, context) => handler(payload, context)
    handlers.add(own)
    return () => void handlers.delete(own)
  }

  return {
    on(name: string, handler: AnyHandler) {
      const handlers = byName.get(name) ?? new Set()
      byName.set(name, handlers)
      return add(handlers, handler)
    },
    onAny: (handler: AnyHandler) => add(any, handler),
    onUnrecognised: (handler: AnyHandler) => add(unrecognised, handler),
    onChange: (handler: AnyHandler) => add(changes, handler),

    for({ kind, name }: Pick<Entry, 'kind' | 'name'>): AnyHandler[] {
      if (kind === 'change') return [...changes]
      if (kind === 'unrecognised') return [...unrecognised]
      return [...(byName.get(name) ?? []), ...any]
    },

    /** What to claim: a change waits in the journal until somebody handles changes; events do not. */
    wantedKinds(): EntryKind[] {
      return changes.size > 0 ? ['event', 'unrecognised', 'change'] : ['event', 'unrecognised']
    },

    /** What nobody handles, as the journal's `skipEntries` takes it. */
    unhandled(): { kinds: ('event' | 'unrecognised')[]; exceptNames: string[] } {
      const kinds: ('event' | 'unrecognised')[] = []
      if (any.size === 0) kinds.push('event')
      if (unrecognised.size === 0) kinds.push('unrecognised')
      const exceptNames = [...byName].filter(([, handlers]) => handlers.size > 0).map(([name]) => name)
      return { kinds, exceptNames }
    },
  }
}

/** Found only when it is called, what is no function would have made every entry dead. */
export function requireFunction(handler: unknown) {
  if (typeof handler !== 'function')
    throw new MarketplaceError('argument_invalid', 'Cannot register the handler: it is not a function')
}

export type Handlers = ReturnType<typeof createHandlers>
