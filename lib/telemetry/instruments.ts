/**
 * Every instrument of this package by its name after `marketplace_webhooks.`. Units are those of UCUM, as OpenTelemetry
 * requires. Values of attributes come from fixed sets, never from received data.
 */
export const INSTRUMENTS = {
  deliveries: {
    kind: 'counter',
    unit: '{delivery}',
    attributes: 'outcome: received, secret_wrong, verification_failed, or an error code',
    zeros: {
      outcome: [
        ...[
          'received',
          'secret_wrong',
          'method_not_allowed',
          'body_timeout',
          'body_too_large',
          'body_not_json',
        ],
        ...['body_not_utf8', 'body_incomplete', 'body_already_read', 'body_encoding_unsupported'],
        ...['body_encoding_broken', 'content_type_unsupported', 'verification_failed', 'delivery_refused'],
        ...['delivery_not_accepted', 'delivery_turned_away'],
      ],
    },
    description: 'Requests at the delivery address.',
  },
  notices: {
    kind: 'counter',
    unit: '{notice}',
    attributes: 'item: own, other or none',
    zeros: { item: ['own', 'other', 'none'] },
    description: 'Notices accepted, while app.purchasableUid is set.',
  },
  reads: {
    kind: 'counter',
    unit: '{read}',
    attributes: 'outcome: found, missing, refused, token_refused, credentials_refused, throttled or outage',
    zeros: {
      outcome: ['found', 'missing', 'refused', 'token_refused', 'credentials_refused', 'throttled', 'outage'],
    },
    description: 'Finished reads of subscriptions.',
  },
  searches: {
    kind: 'counter',
    unit: '{search}',
    attributes: 'outcome: found, none, refused, credentials_refused, throttled or failed',
    zeros: { outcome: ['found', 'none', 'refused', 'credentials_refused', 'throttled', 'failed'] },
    description: 'Finished searches with platform.findSubscriptions.',
  },
  changes: {
    kind: 'counter',
    unit: '{change}',
    attributes: 'to: purchased, suspended, canceled, other or gone',
    zeros: { to: ['purchased', 'suspended', 'canceled', 'other', 'gone'] },
    description: 'Changes of purchase_state that reads found.',
  },
  handled: {
    kind: 'counter',
    unit: '{entry}',
    attributes: 'kind: event, change, entitlement or unrecognised; outcome: done, retry or dead',
    zeros: {
      kind: ['event', 'change', 'entitlement', 'unrecognised'],
      outcome: ['done', 'retry', 'dead'],
    },
    description: 'Finished tries of journal entries.',
  },
  failures: {
    kind: 'counter',
    unit: '{failure}',
    attributes: 'area; code: an error code, or unexpected',
    description: 'Failures in the background.',
  },
  'accept.duration': {
    kind: 'histogram',
    unit: 's',
    attributes: 'outcome: accepted or failed',
    description: 'From the body of a delivery to its entries on disk.',
  },
  'read.duration': {
    kind: 'histogram',
    unit: 's',
    attributes: 'outcome: as for reads',
    description: 'One read of a subscription, including its token.',
  },
  'handler.duration': {
    kind: 'histogram',
    unit: 's',
    attributes: 'kind: as for handled; outcome: returned or failed',
    description: 'One call of one handler.',
  },
  'gate.duration': {
    kind: 'histogram',
    unit: 's',
    attributes: 'outcome: allowed, denied, unknown or business_missing',
    description: 'Time that requireEntitlement adds to a request.',
  },
  'decision.delay': {
    kind: 'histogram',
    unit: 's',
    attributes: 'none',
    description:
      'From the last refresh request (by a delivery, track or refresh) to the decision of the read it caused.',
  },
  'health.problem': {
    kind: 'gauge',
    unit: '{problem}',
    attributes: 'code: every code of PROBLEMS',
    description: '1 while this process has the problem, else 0.',
  },
  'entries.pending': {
    kind: 'gauge',
    unit: '{entry}',
    attributes: 'none',
    description: 'Journal entries waiting for their handlers.',
  },
  'entries.retrying': {
    kind: 'gauge',
    unit: '{entry}',
    attributes: 'none',
    description: 'Pending entries whose handlers have failed before.',
  },
  'entries.dead': {
    kind: 'gauge',
    unit: '{entry}',
    attributes: 'none',
    description:
      'Dead journal entries: their tries are used up, and they are neither replayed nor deleted yet.',
  },
  'entries.oldest_pending_age': {
    kind: 'gauge',
    unit: 's',
    attributes: 'none',
    description: 'How long the longest due entry has been due; 0 when none is due.',
  },
  'subscriptions.requested': {
    kind: 'gauge',
    unit: '{subscription}',
    attributes: 'none',
    description: 'Subscriptions with a refresh request that the platform has not answered.',
  },
  'subscriptions.oldest_request_age': {
    kind: 'gauge',
    unit: 's',
    attributes: 'none',
    description: 'Age of the oldest of those requests; 0 when there is none.',
  },
  'subscriptions.oldest_overdue_age': {
    kind: 'gauge',
    unit: 's',
    attributes: 'none',
    description: 'How long the longest due read has been due; 0 when none is due.',
  },
  'subscriptions.given_up': {
    kind: 'gauge',
    unit: '{subscription}',
    attributes: 'none',
    description: 'Subscriptions whose reads were given up.',
  },
  'searches.failing': {
    kind: 'gauge',
    unit: '{search}',
    attributes: 'none',
    description:
      'Searches with platform.findSubscriptions that the app has asked for and whose last try failed.',
  },
  'searches.oldest_due_age': {
    kind: 'gauge',
    unit: 's',
    attributes: 'none',
    description: 'How long the longest due one has been due, without those of installs; 0 when none is due.',
  },
  'reads.paused': {
    kind: 'gauge',
    unit: '{process}',
    attributes: 'none',
    description: '1 while the platform limits this process or refuses its credentials, else 0.',
  },
  'database.dead_rows': {
    kind: 'gauge',
    unit: '{row}',
    attributes: 'none',
    description:
      'Changed and deleted rows that PostgreSQL has not removed yet, as it estimates them; 0 on SQLite.',
  },
  'database.oldest_transaction_age': {
    kind: 'gauge',
    unit: 's',
    attributes: 'none',
    description:
      'How long the transaction has been open for which PostgreSQL keeps most of them; 0 when there is none, and on SQLite.',
  },
  'schema.version': {
    kind: 'gauge',
    unit: '{version}',
    attributes: 'none',
    description: 'Version of the database schema.',
  },
} as const satisfies Record<string, Instrument>

interface Instrument {
  kind: 'counter' | 'histogram' | 'gauge'
  unit: string
  /** For people. */
  attributes: string
  /**
   * Of a counter: the values of its attributes of which each combination begins at 0. A series that begins with its first
   * failure has no increase, so no alert on it fires.
   */
  zeros?: Readonly<Record<string, readonly string[]>>
  description: string
}

type Named<Kind> = {
  [Name in keyof typeof INSTRUMENTS]: (typeof INSTRUMENTS)[Name]['kind'] extends Kind ? Name : never
}[keyof typeof INSTRUMENTS]

export type CounterName = Named<'counter'>
export type HistogramName = Named<'histogram'>
export type GaugeName = Named<'gauge'>

/** The bounds of durations, in seconds: a decision in memory takes microseconds, a read with its token several seconds. */
export const DURATION_BUCKETS = [
  0.0001, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
]

/** The spans of this package, after `marketplace_webhooks.`. */
export const SPANS = {
  accept: 'One request with one or several deliveries: classified and written to disk.',
  read: 'One read of a subscription. Linked to the delivery that requested it.',
  handle: 'One call of one handler. Linked to the delivery it handles.',
} as const

export type SpanName = keyof typeof SPANS
