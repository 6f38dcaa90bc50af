import type { Decision } from './entitlement/decide.js'
import type { ItemOptions } from './entitlement/items.js'
import type { EventDefinitions } from './events/define-event.js'
import type { AnyEvent, EventName, MarketplaceEvent, Registry, TokensOf } from './events/registry.js'
import type { HandlerOptions, RequestListener } from './express/handler.js'
import type { createReceiver } from './express/receiver.js'
import type { createRequireEntitlement, RequireEntitlementOptions } from './express/require-entitlement.js'
import type { Health } from './lifecycle.js'
import type { ImportOptions } from './operations/import-options.js'
import type { ImportSummary } from './operations/import-results.js'
import type { DeadEntry, HandlerFailure } from './operations/public-entry.js'
import type { Readiness } from './operations/readiness.js'
import type { ExplainOptions } from './operations/records.js'
import type { RecordsApi } from './operations/records-api.js'
import type { TrackedSubscription, TrackOptions } from './operations/track.js'
import type { WebhookReport } from './operations/webhooks-check.js'
import type { RegisterResult } from './platform/register-webhook.js'
import type { Token } from './platform/token.js'
import type { HandlerContext as ContextOf, Handler as HandlerOf } from './work/handlers.js'
import type { UnrecognisedDelivery } from './work/payloads.js'
import type { PurchaseChange } from './work/purchase-change.js'

/** Ends what the call began. */
export type Unsubscribe = () => void

/** A request handler of Express 4 and 5, by shape. */
export type Middleware = ReturnType<typeof createReceiver>

/** What every handler gets beside its payload. */
export type HandlerContext = ContextOf<Marketplace>

/** A handler of `Payload`. It has dealt with it when it returns or its promise resolves; anything else is tried again. */
export type Handler<Payload> = HandlerOf<Payload, Marketplace>

/**
 * The type of a handler for one event, for handlers in files of their own; for events of the app's own, with the type of
 * their definitions.
 *
 * @example
 * export const onInstalled: HandlerFor<'application/installed'> = async ({ data }) => welcome(data.business_id)
 * export const onPaid: HandlerFor<'invoice/paid', typeof customEvents> = ({ data }) => book(data.total)
 */
export type HandlerFor<
  Name extends EventName<Registry<Custom>>,
  Custom extends EventDefinitions = Record<never, never>,
> = Handler<MarketplaceEvent<Name, Registry<Custom>>>

/** The type of a handler for `onPurchaseChange`. */
export type ChangeHandler = Handler<PurchaseChange>

/** The object that `createMarketplace` returns. One with events of its own fits wherever a `Marketplace` is expected. */
export interface Marketplace<Custom extends EventDefinitions = Record<never, never>> extends RecordsApi {
  /** Every event by its registration name, the app's own included, with the kinds of token that register it. */
  readonly events: {
    readonly [Name in keyof Registry<Custom>]: { readonly tokens: Registry<Custom>[Name]['tokens'] }
  }

  /** Mount it with `app.use(path, marketplace.router)`: it takes deliveries at `POST <path>/<delivery secret>`. */
  router: Middleware
  /**
   * A listener for `createServer` that takes deliveries at `POST <path>/<delivery secret>` in front of any framework, and
   * hands all other requests to `otherwise`; without it they get 404. Quicker than the router, because a delivery skips the
   * framework. Throws `argument_invalid` when `path` does not begin with `/`, or could never match.
   *
   * An `otherwise` that throws or rejects is answered with an empty 500, or cut off where its reply has begun, and reported
   * by a process warning, once for each message.
   *
   * @example createServer(marketplace.handler({ path: '/webhooks/marketplace', otherwise: app })).listen(3000)
   */
  handler(options: HandlerOptions): RequestListener

  /** Calls `handler` for each event of this name, at least once, in order per subscription. */
  on<Name extends EventName<Registry<Custom>>>(event: Name, handler: HandlerFor<Name, Custom>): Unsubscribe
  onAny(handler: Handler<AnyEvent<Registry<Custom>>>): Unsubscribe
  /** For deliveries that are not a known event. */
  onUnrecognised(handler: Handler<UnrecognisedDelivery>): Unsubscribe
  /** For every observed change of `purchase_state`. Changes wait in the journal until there is such a handler. */
  onPurchaseChange(handler: ChangeHandler): Unsubscribe
  /**
   * Called once, in this process, for an entry that ran out of tries, or of time while no handler was registered for it.
   * `journal.replay(id)` revives it.
   */
  onDead(listener: (entry: DeadEntry) => void): Unsubscribe
  /** Called for each failed try of a handler in this process, also when it is tried again. */
  onHandlerError(listener: (failure: HandlerFailure) => void): Unsubscribe

  /**
   * Whether the business may use the app now. Never rejects; what is not known for certain is false.
   *
   * @example
   * if (await marketplace.isEntitled(business_uid, { purchasableUid: ['pro', 'team'] })) showReports()
   */
  isEntitled(businessUid: string | number, options?: ItemOptions): Promise<boolean>
  /**
   * The answer of `isEntitled` without a promise, for code that runs very often; undefined when it is not in memory, or
   * is no longer fresh. Never throws. Looks nothing up, also not in the background: `isEntitled` does that.
   *
   * @example
   * const entitled = marketplace.peek(business_uid) ?? (await marketplace.isEntitled(business_uid))
   */
  peek(businessUid: string | number, options?: ItemOptions): boolean | undefined
  /**
   * The same answer with its reason, evidence and age. Never rejects.
   *
   * With `at`, the answer as it was at that time, by the rules of today, from the changes in the journal: `restsOn` names
   * them. What is not recorded, or not any more, is `not_recorded` and not `known`. Then it rejects `argument_invalid`,
   * `store_unavailable` or `closed`.
   *
   * @example
   * const { entitled, explanation, restsOn } = await marketplace.explain('business-1', { at: '2026-03-01T09:00:00Z' })
   */
  explain(businessUid: string | number, options?: ExplainOptions): Promise<Decision>
  /** Middleware that lets only entitled businesses through: 402 when denied, 503 when it cannot be known yet. */
  requireEntitlement(
    options: RequireEntitlementOptions,
  ): ReturnType<ReturnType<typeof createRequireEntitlement>>

  /**
   * Learns of a subscription without an event: an import, or a `created` that never came.
   * Rejects `argument_invalid` or `store_unavailable`; resolves when it is on disk, the read follows.
   *
   * @example
   * await marketplace.track({ subscription_uid, business_uid }, { announce: false }) // no change for handlers
   */
  track(subscription: TrackedSubscription, options?: TrackOptions): Promise<void>
  /**
   * `track` for many: batches share a commit, few wait for their reads at a time, events go first, and each line gets its
   * result from the platform's answer. Run again with the same lines after whatever has ended it, it skips what is read
   * and asks for nothing twice. The reads are done by the workers on this database: this one, or with `worker: false`
   * those of the app that runs beside. Rejects `argument_invalid`, `store_unavailable`, `closed`, and what the iterable or
   * `onProgress` throws; what was asked for until then is on disk.
   *
   * @example
   * const { read, notRead } = await marketplace.importSubscriptions(customers, { announce: false })
   */
  importSubscriptions(
    lines: Iterable<TrackedSubscription> | AsyncIterable<TrackedSubscription>,
    options?: ImportOptions,
  ): Promise<ImportSummary>
  /**
   * Reads everything known of the business again, waits for it (at most twice the platform's time limit and a second) and answers
   * as `explain`. Rejects `argument_invalid` or `store_unavailable`.
   */
  refresh(businessUid: string | number): Promise<Decision>

  /** The address to register with the platform: `mountUrl` and the first delivery secret. Treat it as a secret. */
  targetUrl(mountUrl: string): string
  /**
   * Registers a target for an event. A token of a kind the event does not accept is a type error, and rejects
   * `token_kind_not_accepted`. Registering again is a success too.
   */
  registerWebhook(
    registration: WebhookRegistration<EventName<Registry<Custom>>, Registry<Custom>>,
  ): Promise<RegisterResult>
  /** A token of the app for a business, to register with. Rejects `token_refused`, `app_credentials_refused`, or as the connection does. */
  fetchAppToken(businessUid: string | number): Promise<Token<'app'>>

  /**
   * Copies the SQLite database into the new file `path` while the app works on; the copy opens as a store. Rejects
   * `backup_failed`, also for PostgreSQL (use `pg_dump`); `store_unavailable`.
   */
  backup(path: string): Promise<void>
  webhooks: {
    /**
     * Which events have come in, when, how many and by which delivery secret: what is registered with the platform cannot be
     * listed by its documented calls. All processes on the store together, and over restarts.
     *
     * @example
     * const { events, secretWrong } = await marketplace.webhooks.check()
     * const silent = events.filter(({ count }) => count === 0).map(({ event }) => event)
     */
    check(): Promise<WebhookReport>
  }
  /**
   * For tests: resolves when no delivery is being accepted here, and no read and no entry with a handler is due within a
   * second or under way. It does not wait for what is further ahead: later retries, verifications, the reconcile. Rejects
   * `not_idle` after `timeoutMs` (30 s unless told).
   *
   * @example
   * platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
   * await platform.settled() // delivered
   * await marketplace.idle() // read and handled
   */
  idle(options?: { timeoutMs?: number }): Promise<void>
  /**
   * For a readiness probe: whether this process can accept a delivery and answer `isEntitled` now. Never rejects, and answers
   * within a second.
   *
   * @example
   * app.get('/readyz', async (_req, res) => {
   *   const { ready, reasons } = await marketplace.readiness()
   *   res.status(ready ? 200 : 503).json({ ready, reasons })
   * })
   */
  readiness(): Promise<Readiness>
  /** For a health check: never rejects. */
  health(): Promise<Health>
  /** Begins reading and handling. Called by itself right after construction; rejects when the store cannot be opened. */
  start(): Promise<void>
  /** Stops receiving, lets work finish for `closeGraceMs`, closes the store. Safe to call twice. */
  close(): Promise<void>
}

/** For each event its own kinds of token, so that a union of events does not mix them. */
export type WebhookRegistration<Name extends EventName<R>, R extends EventDefinitions> = {
  [Each in Name]: { event: Each; targetUrl: string; token: Token<TokensOf<Each, R>> }
}[Name]
