import { TOKEN_KINDS, type TokenKind } from '../base/envelope.js'
import type { Subject } from './subject.js'

/** A schema: of zod, or any other object with such a `safeParse`. */
export interface EventSchema<Data = unknown> {
  /** Checks `data` synchronously, and never throws. */
  safeParse(
    value: unknown,
  ): { success: true; data: Data } | { success: false; error: { issues: readonly SchemaIssue[] } }
}

/** A fault in the data of an event. */
export interface SchemaIssue {
  /** Where in `data` the fault is. */
  readonly path: readonly PropertyKey[]
  /** What is wrong there. */
  readonly message: string
  /** Of a union: the issues of each of its options. */
  readonly errors?: readonly (readonly SchemaIssue[])[]
}

/** One row of the table: the wire pair of an event, the shape of its data, and the tokens that may register it. */
export interface EventDefinition<Data = unknown, Token extends TokenKind = TokenKind> {
  /** `entity_name` of the envelope. */
  readonly entity_name: string
  /** `event_type` of the envelope. */
  readonly event_type: string
  /** Must accept `data` synchronously. It decides between rows of the same `entity_name` and `event_type`. */
  readonly data: EventSchema<Data>
  /** The kinds of token that may register it. */
  readonly tokens: readonly Token[]
  /**
   * Which subscription or business the event concerns; without it no read follows. A method, so that rows of any
   * `Data` fit one table.
   */
  subject?(data: Data): Partial<Subject>
}

/** A table of events by registration name. */
export type EventDefinitions = Readonly<Record<string, EventDefinition>>

/**
 * Defines an event of the app's own, which the interface document does not have. Returns the definition with its literal
 * types, from which the types of handlers derive. `createRegistry` checks it.
 *
 * @example
 * const paid = defineEvent({
 *   entity_name: 'invoice',
 *   event_type: 'paid',
 *   data: z.object({ total: z.number() }),
 *   tokens: ['business'],
 * })
 * createMarketplace({ ...options, events: { 'invoice/paid': paid } })
 */
export function defineEvent<
  const Entity extends string,
  const Type extends string,
  Data,
  const Token extends TokenKind,
>(
  definition: EventDefinition<Data, Token> & { readonly entity_name: Entity; readonly event_type: Type },
): EventDefinition<Data, Token> & { readonly entity_name: Entity; readonly event_type: Type } {
  return definition
}

/** The faults of a definition that the type checker did not see, one sentence each. */
export function definitionFaults(name: string, definition: EventDefinition): string[] {
  const faults: string[] = []
  if (name === '') faults.push('an event needs a name')
  if (name === '*') faults.push('an event cannot be named "*", which stands for all events')
  if (typeof definition !== 'object' || definition === null)
    return [...faults, `event "${name}" is not an object: make it with defineEvent({ … })`]
  for (const field of ['entity_name', 'event_type'] as const) {
    // A name with a control character would never match, and would break the lookup key of the pair.
    const fit = typeof definition[field] === 'string' && /^\P{Cc}+$/u.test(definition[field])
    if (!fit) faults.push(`event "${name}" has no usable ${field}`)
  }
  if (typeof definition.data?.safeParse !== 'function') faults.push(`event "${name}" needs a schema as data`)
  const { tokens } = definition
  if (!Array.isArray(tokens) || tokens.length === 0 || !tokens.every((kind) => TOKEN_KINDS.includes(kind))) {
    faults.push(`event "${name}" needs tokens, each of them one of ${TOKEN_KINDS.join(', ')}`)
  }
  if (definition.subject !== undefined && typeof definition.subject !== 'function') {
    faults.push(`event "${name}" has a subject that is not a function`)
  }
  return faults
}
