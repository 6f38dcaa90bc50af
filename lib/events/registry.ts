import { ConfigError, MarketplaceError } from '../base/errors.js'
import { announcedRecord } from '../base/record.js'
import { definitionFaults, type EventDefinitions } from './define-event.js'
import { application, appSubscription, notice, noticeOrRecord } from './schemas.js'
import { installSubject, noticeSubject, recordSubject } from './subject.js'

/**
 * The events of the interface document: its tables "Events" and registration tokens in one. Names of events, types of
 * handlers, checks of tokens and the classification of deliveries all derive from it.
 *
 * Of rows with the same `entity_name` and `event_type`, the first whose `data` accepts is the event. So
 * `purchasable_subscription/updated` precedes `/update`: data with both shapes is a record.
 */
export const EVENTS = {
  'purchasable_subscription/create': {
    entity_name: 'purchasable_subscription',
    event_type: 'created',
    data: noticeOrRecord,
    tokens: ['app'],
    // Even with a full record it is a notice: it announces one of the app's own subscriptions.
    subject: noticeSubject,
  },
  'purchasable_subscription/updated': {
    entity_name: 'purchasable_subscription',
    event_type: 'update',
    data: announcedRecord,
    tokens: ['app', 'business', 'directory'],
    subject: recordSubject,
  },
  'purchasable_subscription/update': {
    entity_name: 'purchasable_subscription',
    event_type: 'update',
    data: notice,
    tokens: ['app'],
    subject: noticeSubject,
  },
  'app_subscription/installed': {
    entity_name: 'app_subscription',
    event_type: 'installed',
    data: appSubscription,
    tokens: ['business', 'directory'],
    subject: installSubject('installed'),
  },
  'app_subscription/uninstalled': {
    entity_name: 'app_subscription',
    event_type: 'uninstalled',
    data: appSubscription,
    tokens: ['business', 'directory'],
    subject: installSubject('uninstalled'),
  },
  'application/installed': {
    entity_name: 'application',
    event_type: 'installed',
    data: application,
    tokens: ['app'],
    subject: installSubject('installed'),
  },
  'application/uninstalled': {
    entity_name: 'application',
    event_type: 'uninstalled',
    data: application,
    tokens: ['app'],
    subject: installSubject('uninstalled'),
  },
} as const satisfies EventDefinitions

export type BuiltInEvents = typeof EVENTS

/** The built-in events together with an app's own. */
export type Registry<Custom extends EventDefinitions = Record<never, never>> = BuiltInEvents & Custom

/** The registration names of a registry. */
export type EventName<R extends EventDefinitions = BuiltInEvents> = keyof R & string

/** `data` of an event as handlers get it: identifiers as strings, all other fields as the platform sent them. */
export type EventData<Name extends EventName<R>, R extends EventDefinitions = BuiltInEvents> = Extract<
  ReturnType<R[Name]['data']['safeParse']>,
  { success: true }
>['data']

/** The kinds of token that may register an event. */
export type TokensOf<
  Name extends EventName<R>,
  R extends EventDefinitions = BuiltInEvents,
> = R[Name]['tokens'][number]

/** An event as handlers get it. */
export interface MarketplaceEvent<Name extends EventName<R>, R extends EventDefinitions = BuiltInEvents> {
  /** The same at every try: the handler's idempotency key. The receiver creates it; the platform sends none. */
  id: string
  /** The registration name. */
  name: Name
  /** `entity_name` of the envelope, as sent. */
  entity_name: R[Name]['entity_name']
  /** `event_type` of the envelope, as sent. */
  event_type: R[Name]['event_type']
  /** `data` of the envelope: identifiers as strings, all other fields as the platform sent them. */
  data: EventData<Name, R>
  /** When the delivery was stored: ISO 8601, UTC. */
  receivedAt: string
}

/** Any event of a registry, discriminated by `name`. */
export type AnyEvent<R extends EventDefinitions = BuiltInEvents> = {
  [Name in EventName<R>]: MarketplaceEvent<Name, R>
}[EventName<R>]

/** The faults of an app's own definitions, one sentence each. */
export function eventFaults(custom: EventDefinitions): string[] {
  return Object.entries(custom).flatMap(([name, definition]) =>
    Object.hasOwn(EVENTS, name)
      ? [`event "${name}" is built in and cannot be defined again`]
      : definitionFaults(name, definition),
  )
}

/**
 * The built-in events, followed by `custom`. If both accept the same data, the built-in event wins, so an app's own
 * definition cannot hide a purchase. Throws `config_invalid` with every fault at once.
 */
export function createRegistry<const Custom extends EventDefinitions = Record<never, never>>(
  custom?: Custom,
): Registry<Custom> {
  const faults = eventFaults(custom ?? {})
  if (faults.length > 0) throw new ConfigError(faults)
  return Object.freeze(Object.assign(Object.create(null), EVENTS, custom)) as Registry<Custom>
}

/** Throws `event_unknown` for a name that is not in the registry. */
export function requireEvent(registry: EventDefinitions, name: string) {
  if (Object.hasOwn(registry, name)) return
  const known = Object.keys(registry).join(', ')
  throw new MarketplaceError(
    'event_unknown',
    `Cannot register a handler for ${name}: it is not one of the events ${known}`,
  )
}
