/** A problem of `health()` or `readiness()`. */
export interface HealthProblem {
  /** Stable: compare this, never the message. See `PROBLEMS`. */
  code: ProblemCode
  /** The cause, with its numbers, for a log or a person. It contains no secret, no token and no body. */
  message: string
  /** What to do. */
  next: string
}

/**
 * Every problem by its code. `failing`: this instance cannot store deliveries, or has stopped working, and another one
 * may serve the requests better. `degraded`: a person should look, and another instance would not do better.
 */
export const PROBLEMS = {
  // The store
  closed: {
    status: 'failing',
    means: 'Your app called close().',
    next: 'Nothing: the process is about to end. If it goes on, restart it.',
  },
  store_not_open: {
    status: 'failing',
    means: 'The database did not open. Until it does, no delivery is accepted and every business is denied.',
    next: 'Correct the cause that the message names. The package tries again by itself.',
  },
  store_not_answering: {
    status: 'failing',
    means: 'The database did not answer in time.',
    next: 'Check the database, its disk, its synchronous standbys, and the network between this instance and the database.',
  },
  store_write_failed: {
    status: 'failing',
    means:
      'A write failed, has not finished or takes too long: a full or slow disk, a missing privilege, a lock of another program.',
    next: 'Correct the cause that the message names. Until then deliveries get 503. The package tries to write by itself, and the problem ends when that was quick.',
  },
  transaction_open: {
    status: 'degraded',
    means:
      'A transaction of this database has been open for over five minutes, so PostgreSQL keeps every row that was changed or deleted since. The tables grow, and all work on them becomes slower.',
    next: 'Let that application end its transaction, or end it with pg_terminate_backend and the process that the message names (a prepared one with rollback prepared, a slot that nobody uses with pg_drop_replication_slot). Run long reports and pg_dump on a standby, without hot_standby_feedback.',
  },
  worker_stuck: {
    status: 'failing',
    means: 'The process was frozen, or its loops are stuck.',
    next: 'Restart this instance. Another instance takes over its work.',
  },
  deliveries_failing: {
    status: 'failing',
    means:
      'Most deliveries of the last two minutes got 503, because this instance could not store them in time.',
    next: 'Check the database, its disk and the network to it, and the other problems.',
  },
  // The handlers
  entries_dead: {
    status: 'degraded',
    means:
      'A handler failed on every try, or none was registered in time, so your app has not handled the entry.',
    next: "Look at the error in journal.list({ status: 'dead' }), fix the handler or register the missing one (an empty one if you removed it), and replay them.",
  },
  entries_retrying: {
    status: 'degraded',
    means: 'A handler throws, rejects, or takes too long. The package calls it again by itself.',
    next: "Look at the error in journal.list({ status: 'retrying' }), and fix the handler.",
  },
  entries_overdue: {
    status: 'degraded',
    means: 'No process with that handler runs, or the handlers are too slow for the number of events.',
    next: 'Start a process with a worker and the handler. If one runs, raise handlers.concurrency or make the handler faster.',
  },
  handlers_missing: {
    status: 'degraded',
    means:
      'Entries wait for a handler that a process had within the last week, and that no process with a worker has now. They are kept, and become dead when their retention ends.',
    next: "Register the handler again: journal.list({ status: 'unhandled' }) shows its events, journal.list({ status: 'pending', kind: 'change' }) its changes, kind: 'entitlement' its changes of access, and it gets them in order. If you removed it on purpose, register an empty one.",
  },
  // The reads of the platform
  requests_overdue: {
    status: 'degraded',
    means:
      'No process with a worker runs, the platform is too slow for the number of events, or some reads fail again and again. A business that paid may have no access.',
    next: 'Start a process with a worker. If one runs, subscriptions.list() shows which requested reads have a failure. Without one, raise reads.concurrency if the platform allows it.',
  },
  reads_throttled: {
    status: 'degraded',
    means:
      'The platform answered 429. This instance waits as long as the platform asks, 1 s to 1 h. If reads of new purchases may be the cause, they are slower for an hour.',
    next: 'Wait: the reads continue by themselves. If it returns, lower reads.concurrency or raise freshness.reconcileEveryMs.',
  },
  credentials_refused: {
    status: 'degraded',
    means:
      "The token endpoint refused the app's credentials. Meanwhile the gate keeps its answers for freshness.maxStaleMs.",
    next: 'Correct app.clientId and app.clientSecret.',
  },
  tokens_refused: {
    status: 'degraded',
    means: 'The platform gives no token for most businesses.',
    next: 'Check platform.authUrl, app.clientId and app.clientSecret, and whether the businesses have the app installed.',
  },
  reads_refused: {
    status: 'degraded',
    means:
      'The platform answers most reads with 4xx. The cause is the configuration or the platform, not a single business.',
    next: 'Check platform.baseUrl, and whether the app is still listed on the platform and may read subscriptions.',
  },
  reads_failing: {
    status: 'degraded',
    means:
      'The platform is down, or has another address. The gate keeps its answers for freshness.maxStaleMs.',
    next: 'If the platform is down, wait. Otherwise correct platform.baseUrl and platform.authUrl.',
  },
  records_vanished: {
    status: 'degraded',
    means:
      'The platform answers for most businesses that it knows no such subscription. They keep their access for freshness.maxStaleMs.',
    next: 'Check platform.baseUrl, and whether the app may still read subscriptions.',
  },
  searches_overdue: {
    status: 'degraded',
    means:
      'Searches with platform.findSubscriptions are due and are not made: no process with a worker has this option, or it does not keep up. Businesses without a stored subscription get 503.',
    next: 'Start a process with a worker and the option platform.findSubscriptions. If one runs, look at the other problems.',
  },
  find_subscriptions_failed: {
    status: 'degraded',
    means:
      'Searches with your option platform.findSubscriptions fail: it throws, takes too long or returns no array of identifiers, or the platform gives no token. Businesses without a stored subscription get 503.',
    next: 'Look at the error in the log. If the platform is down, wait: the searches are tried again by themselves. Otherwise correct the option.',
  },
  searches_full: {
    status: 'degraded',
    means:
      'The app has asked about more businesses without a stored subscription than platform.findSubscriptions searches for: 100,000. Further ones get the answer that they would get without the option.',
    next: 'Look at who asks: a page that anybody can open should not ask about a business that the visitor has typed. Searches that nobody wants are deleted after 30 days.',
  },
  reads_end_process: {
    status: 'degraded',
    means:
      'Reading these subscriptions ended or froze the process, five times or more, while nothing else was read. They are read again after pauses from 5 min to 5 h; until then their answers stand, at most for freshness.maxStaleMs.',
    next: 'Look at what ended the process, and at platform.fetch and entitledWhen. The subscriptions have the failure lease_lapsed.',
  },
  reads_given_up: {
    status: 'degraded',
    means: 'The database contains subscriptions that were read before and are not read any more.',
    next: 'Find them in subscriptions.list(), and call refresh for their businesses.',
  },
  reads_overdue: {
    status: 'degraded',
    means:
      'Regular reads are due and are not done: no process with a worker runs, or it does not keep up. After freshness.maxStaleMs every answer is stale, and the gate lets nobody in.',
    next: 'Start a process with a worker. If one runs, look at the other problems, and raise reads.concurrency if the platform allows it.',
  },
  answers_stale: {
    status: 'degraded',
    means:
      'No read has confirmed most businesses for freshness.maxStaleMs: in an outage, or while no worker ran. Those that have paid get 503.',
    next: 'If the platform was down, or the app was stopped, wait: the reads continue by themselves, and one that succeeds brings its business back. Otherwise look at the other problems.',
  },
  // The deliveries
  secrets_wrong: {
    status: 'degraded',
    means:
      'Deliveries arrive, and none has had a right secret for an hour. The address that is registered is not that of deliverySecrets.',
    next: 'Compare the registered address with targetUrl(), and register it again; or put the secret of the registered address back into deliverySecrets.',
  },
  deliveries_not_accepted: {
    status: 'degraded',
    means: 'Most of the last deliveries got 503, because this instance could not store them in time.',
    next: 'Check the database, its disk and the network to it. The problem ends with the next deliveries that are accepted.',
  },
  verification_failing: {
    status: 'degraded',
    means: 'verifyDelivery throws, rejects or does not answer in time for most deliveries, so they get 503.',
    next: 'Fix verifyDelivery: the failures in the log have its error.',
  },
  deliveries_refused: {
    status: 'degraded',
    means: 'verifyDelivery does not return true for most deliveries, so they get 403.',
    next: 'Check verifyDelivery, and the secret or address list that it compares with.',
  },
  bodies_already_read: {
    status: 'degraded',
    means: 'Another middleware has read the body of most deliveries and left nothing of it, so they get 500.',
    next: 'Mount the router before that middleware, or let it keep the bytes in req.rawBody.',
  },
  bodies_too_large: {
    status: 'degraded',
    means: 'Most deliveries are larger than the limit, so they get 413.',
    next: 'Raise bodyLimitBytes, or the limit of the body parser in front of the router.',
  },
  content_types_unsupported: {
    status: 'degraded',
    means: 'Most deliveries have a content type or an encoding that is not accepted, so they get 415.',
    next: 'Look for a proxy that changes Content-Type or Content-Encoding, or for a form parser in front of the router.',
  },
  bodies_not_json: {
    status: 'degraded',
    means: 'The body of most deliveries is not JSON in UTF-8, so they get 400.',
    next: 'Look for a proxy or a middleware that changes bodies. If the platform sends another format now, update this package.',
  },
  bodies_incomplete: {
    status: 'degraded',
    means: 'The body of most deliveries does not arrive completely or in time, so they get 400 or 408.',
    next: 'Check the network and the time limits of the proxies between the platform and this instance. A body has 10 s to arrive.',
  },
  methods_not_allowed: {
    status: 'degraded',
    means: 'Most requests at the delivery address are not POST, so they get 405.',
    next: 'Look for a proxy that redirects: clients turn the POST into a GET. Register the address to which it redirects.',
  },
  events_missing: {
    status: 'degraded',
    means:
      'The platform does not deliver all events to this app, or not with its secret. The reconcile finds changes of known subscriptions up to a day late. A purchase whose event is lost is found only by its next event, track or an import, or with platform.findSubscriptions by a search.',
    next: 'Register the four events of the gate again, with targetUrl(): it is harmless if they are registered already. Then run webhooks.check(), and track or import the purchases that are missing.',
  },
  entitled_when_failed: {
    status: 'degraded',
    means: 'Your option entitledWhen throws, or returns no answer. These businesses are denied with 503.',
    next: 'Correct the rule: this message and explain say what it did. The problem ends when the rule answers for them, or after a day in which nobody asked.',
    quotes: true,
  },
  other_items_only: {
    status: 'degraded',
    means:
      'All known subscriptions, or all that are new within a day, are for other items than yours, so these businesses have no access.',
    next: 'Compare app.purchasableUid with the items that the message names.',
    quotes: true,
  },
  deliveries_turned_away: {
    status: 'degraded',
    means:
      'More deliveries arrived than the database keeps, or long ones than the process can read. So further ones are refused, or only counted if they are not recognised, or the oldest finished entries were deleted before their retention ended. Subscriptions that were read before are read all the same.',
    next: 'Look at the newest entries of the journal. If your platform did not send them, somebody has a delivery secret: replace it, as docs/security.md describes. If it did, import the purchases that are missing, or lower retention.eventsMs if only entries were deleted.',
    quotes: true,
  },
  shapes_refused: {
    status: 'degraded',
    means:
      'Deliveries are stored, but most of an event or of all do not have the expected shape, or none is of an event that the app knows. No handler is called, and no purchase is read.',
    next: "Compare payload and issues in journal.list({ kind: 'unrecognised' }). Look for a proxy or a middleware that changes bodies. Correct or add the schema of an event of your own. For one of the platform, update this package, and track or import the purchases meanwhile.",
  },
} as const satisfies Record<
  string,
  { status: 'failing' | 'degraded'; means: string; next: string; quotes?: true }
>

/** A code of `PROBLEMS`. Codes are stable: a new version may add some, and renames none. */
export type ProblemCode = keyof typeof PROBLEMS

/** The problem of a code, with the next step of the table. */
export function problemOf(code: ProblemCode, message: string): HealthProblem {
  return { code, message, next: PROBLEMS[code].next }
}

/** The worst status among the problems. */
export function statusOf(problems: readonly { code: ProblemCode }[]): 'ok' | 'degraded' | 'failing' {
  if (problems.length === 0) return 'ok'
  return problems.some(isFailing) ? 'failing' : 'degraded'
}

/** The problems, those that take the instance out of rotation first. */
export function worstFirst(problems: readonly HealthProblem[]): HealthProblem[] {
  return [...problems.filter(isFailing), ...problems.filter((problem) => !isFailing(problem))]
}

export function isFailing({ code }: { code: ProblemCode }): boolean {
  return PROBLEMS[code].status === 'failing'
}

/** Whether `some` are most of `all`, and no chance: at least three and more than half, or all of them. */
export function isMost(some: number, all: number): boolean {
  return some > 0 && (some === all || (some >= 3 && some * 2 > all))
}
