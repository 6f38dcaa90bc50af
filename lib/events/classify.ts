import type { EventDefinition, EventDefinitions, EventSchema, SchemaIssue } from './define-event.js'
import { type BuiltInEvents, EVENTS, type EventData, type EventName } from './registry.js'
import { completeSubject, type Subject } from './subject.js'

/** The event of an envelope, or why the envelope is not a known event. */
export type Classification<R extends EventDefinitions = BuiltInEvents> = Recognised<R> | Unrecognised

type Recognised<R extends EventDefinitions = BuiltInEvents> = {
  [Name in EventName<R>]: { recognised: true; name: Name; data: EventData<Name, R>; subject: Subject }
}[EventName<R>]

interface Unrecognised {
  recognised: false
  /** Whether it names a known event, so that only its data is unexpected. */
  isKnownEvent: boolean
  /** At most 10 short sentences, each with a path in front. They never contain a value. */
  issues: string[]
}

type Reading = { success: true; data: unknown; subject: Subject }
type Refusal = Extract<ReturnType<EventSchema['safeParse']>, { success: false }>

const MAX_ISSUES = 10
const MAX_ISSUE_LENGTH = 200

/**
 * Returns `classify(envelope)`, which finds the event of an envelope in `registry`. The wire pair of `entity_name` and
 * `event_type` selects the candidate rows; the shape of `data` decides between them. It accepts any value, never throws
 * and never changes the envelope.
 */
export function createClassifier<R extends EventDefinitions>(
  registry: R,
): (envelope: unknown) => Classification<R> {
  const rowsOfPair = new Map<string, [name: string, row: EventDefinition][]>()
  // An object lists integers among its names first, wherever they stand.
  const isOwn = (name: string) => Number(!Object.hasOwn(EVENTS, name))
  const builtInFirst = Object.entries<EventDefinition>(registry).sort(([a], [b]) => isOwn(a) - isOwn(b))
  for (const [name, row] of builtInFirst) {
    const pair = pairOf(row.entity_name, row.event_type)
    rowsOfPair.set(pair, [...(rowsOfPair.get(pair) ?? []), [name, row]])
  }

  function examine(envelope: unknown) {
    if (typeof envelope !== 'object' || envelope === null || Array.isArray(envelope)) {
      return unrecognised('envelope: expected object')
    }
    const { entity_name, event_type, data } = envelope as Record<string, unknown>
    if (typeof entity_name !== 'string') return unrecognised('entity_name: expected string')
    if (typeof event_type !== 'string') return unrecognised('event_type: expected string')
    const rows = rowsOfPair.get(pairOf(entity_name, event_type))
    if (rows === undefined) return unrecognised('entity_name: no known event has it with this event_type')

    const refusals: Refusal[] = []
    for (const [name, row] of rows) {
      const found = read(row, data)
      if (found.success) return { recognised: true, name, data: found.data, subject: found.subject }
      refusals.push(found)
    }
    // zod creates issues only when they are read, so a refusal costs little if another row accepts.
    const issues = closest(refusals.map((refusal) => flatten(refusal.error.issues)))
    return { ...unrecognised(...new Set(issues.map(sentence))), isKnownEvent: true }
  }

  return function classify(envelope) {
    try {
      return examine(envelope) as Classification<R>
    } catch {
      // For an object with a throwing getter, which no JSON value has, and for an app's own schema that returns no result.
      return unrecognised('envelope: it cannot be examined')
    }
  }
}

/** No defined name contains a newline, so two pairs never share a key. */
function pairOf(entityName: string, eventType: string): string {
  return `${entityName}\n${eventType}`
}

/**
 * Parses `data` with the row's schema. An error thrown by an app's own schema or `subject` is an issue like any
 * other.
 */
function read(row: EventDefinition, data: unknown): Reading | Refusal {
  try {
    const parsed = row.data.safeParse(data)
    if (!parsed.success) return parsed
    return { success: true, data: parsed.data, subject: completeSubject(row.subject?.(parsed.data)) }
  } catch {
    return { success: false, error: { issues: [{ path: [], message: 'the schema of this event failed' }] } }
  }
}

function unrecognised(...issues: string[]): Unrecognised {
  return { recognised: false, isKnownEvent: false, issues: issues.slice(0, MAX_ISSUES) }
}

/** Replaces the issue of a union by the issues of its closest option. */
function flatten(issues: readonly SchemaIssue[]): SchemaIssue[] {
  return issues.flatMap((issue) => {
    if (!issue.errors?.length) return [issue]
    const options = issue.errors.map(flatten)
    return closest(options).map(({ path, message }) => ({ path: [...issue.path, ...path], message }))
  })
}

/** The shape with the fewest issues was probably meant. */
function closest(refusals: readonly SchemaIssue[][]): SchemaIssue[] {
  return refusals.reduce((least, issues) => (issues.length < least.length ? issues : least))
}

/** "data.subscription_uid: expected …", of bounded length and without control characters. */
function sentence({ path, message }: SchemaIssue): string {
  const text = `${['data', ...path].map(String).join('.')}: ${message.replace(/^Invalid input: /, '')}`
  return text.slice(0, MAX_ISSUE_LENGTH).replace(/[\p{Cc}\p{Cs}]/gu, '?')
}
