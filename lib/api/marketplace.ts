import type { Decision } from '../entitlement/decide.js'
import type { EntitlementChange } from '../entitlement/entitlement-change.js'
import type { ExplainOptions } from '../entitlement/entitlements.js'
import type { ItemOptions } from '../entitlement/items.js'
import type { WaitOptions } from '../entitlement/wait-for-entitlement.js'
import type { EventDefinitions } from '../events/define-event.js'
import type { AnyEvent, EventName, MarketplaceEvent, Registry } from '../events/registry.js'
import type { EntitlementRouteOptions } from '../express/decision-for-request.js'
import type { ListenerOptions, Middleware, RequestListener } from '../express/doors.js'
import type { EntitlementRoute } from '../express/entitlement-route.js'
import type { Guard, RequireEntitlementOptions } from '../express/require-entitlement.js'
import type { EraseSummary } from '../operations/businesses/erase.js'
import type { BusinessData } from '../operations/businesses/export.js'
import type { HistoryItem, HistoryOptions } from '../operations/businesses/history.js'
import type { BusinessesPage } from '../operations/businesses/list.js'
import type { HealthListener } from '../operations/health/health-changes.js'
import type { Health, Readiness } from '../operations/health/health-check.js'
import type { HandlerFailure } from '../operations/journal/public-entry.js'
import type { PlatformReport } from '../operations/platform-report/platform-report.js'
import type { ImportLine, ImportOptions, ImportSummary } from '../operations/subscriptions/import.js'
import type { LookedUp } from '../operations/subscriptions/look.js'
import type {
  SubscriptionStatus,
  SubscriptionsFilter,
  TrackedSubscription,
} from '../operations/subscriptions/subscriptions.js'
import type { Token } from '../platform/token.js'
import type { HandlerContext as ContextOf, Handler as HandlerOf } from '../work/handling/handlers.js'
import type { UnrecognisedDelivery } from '../work/handling/payloads.js'
import type { PurchaseChange } from '../work/reading/purchase-change.js'
import type { JournalMethods } from './journal-methods.js'
import type { WebhookMethods } from './webhook-methods.js'

/** Ends the subscription that the call began. */
type Unsubscribe = () => void

/** What every handler gets beside its payload. */
export type HandlerContext = ContextOf<Marketplace>

/** A handler of `Payload`. It succeeds when it returns or its promise resolves. Otherwise it is called again. */
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

/** The object that `createMarketplace` returns. One with events of its own fits wherever a `Marketplace` is expected. */
export interface Marketplace<Custom extends EventDefinitions = Record<never, never>> {
  // First: TypeScript then compares `events` of two marketplaces, and so accepts one with more events as a plain one.
  /**
   * Registers webhooks, and counts what has arrived.
   *
   * @example const targetUrl = marketplace.webhooks.targetUrl('https://app.example/webhooks/marketplace')
   */
  webhooks: WebhookMethods<Custom>

  /**
   * Takes deliveries at `POST <path>/<delivery secret>`. It is the middleware itself: pass it on, do not call it.
   *
   * @example app.use('/webhooks/marketplace', marketplace.router)
   */
  router: Middleware
  /**
   * A listener for `createServer` that takes deliveries at `POST <path>/<delivery secret>` in front of any framework, and
   * passes all other requests to `otherwise`; without it they get 404. Quicker than the router, because a delivery skips the
   * framework. Throws `argument_invalid` when `path` does not begin with `/`, or could never match.
   *
   * If `otherwise` throws or rejects, the request gets an empty 500, or its reply is cut off if it has begun. A process
   * warning reports the first error of each class.
   *
   * @example createServer(marketplace.listener({ path: '/webhooks/marketplace', otherwise: app })).listen(3000)
   */
  listener(options: ListenerOptions): RequestListener

  /**
   * Calls `handler` for each event of this name, at least once, in order per subscription.
   *
   * @example marketplace.on('application/installed', async ({ data }) => welcome(data.business_id))
   */
  on<Name extends EventName<Registry<Custom>>>(event: Name, handler: HandlerFor<Name, Custom>): Unsubscribe
  /**
   * Calls `handler` for every known event, those of your own included.
   *
   * @example marketplace.onAny(({ id, name }) => console.log(id, name))
   */
  onAny(handler: Handler<AnyEvent<Registry<Custom>>>): Unsubscribe
  /**
   * Calls `handler` for each delivery that is not a known event, once for all such envelopes of an array.
   *
   * @example marketplace.onUnrecognised(({ id, envelopes, issues }) => console.warn(id, envelopes.length, issues))
   */
  onUnrecognised(handler: Handler<UnrecognisedDelivery>): Unsubscribe
  /**
   * Calls `handler` when an item begins or ends for a business: after an event, or when an answer of `entitledWhen` ends. At
   * least once, one call after the other for a business, with what is true then.
   *
   * @example marketplace.onEntitlementChange(({ business_uid, entitledItems }) => setPlans(business_uid, entitledItems))
   */
  onEntitlementChange(handler: Handler<EntitlementChange>): Unsubscribe
  /**
   * Calls `handler` for every observed change of `purchase_state`. Changes wait in the journal until there is such a handler.
   * `entitled` is the answer at the time of each call, not of the change.
   *
   * @example marketplace.onPurchaseChange(({ business_uid, entitled }) => setPlan(business_uid, entitled))
   */
  onPurchaseChange(handler: Handler<PurchaseChange>): Unsubscribe
  /**
   * Calls `listener` for each failed try of a handler in this process. If `retryInMs` is null it was the last one: the entry is
   * dead, and `journal.replay(id)` revives it. It is also called so for an entry that is dead without a failed try: it waited
   * too long for a handler or an answer, or it ended its process again and again.
   *
   * @example
   * marketplace.onHandlerError(({ id, name, error, retryInMs }) => {
   *   report(error, { id })
   *   if (retryInMs === null) page(`${name} ${id} is dead`)
   * })
   */
  onHandlerError(listener: (failure: HandlerFailure) => void): Unsubscribe

  /**
   * Whether the business may use the app now. Never rejects. An uncertain answer is false.
   *
   * Never use it without `await`: the promise itself is always true, so everybody would get in. The lint rule
   * `@typescript-eslint/no-misused-promises` reports it.
   *
   * @example if (await marketplace.isEntitled(business_uid, { purchasableUid: ['pro', 'team'] })) showReports()
   */
  isEntitled(businessUid: string | number, options?: ItemOptions): Promise<boolean>
  /**
   * The same answer with its reason, evidence and age. Never rejects. `{ search: false }` asks without a search with
   * `platform.findSubscriptions` and puts no read first, for a page where a person looks at any business.
   *
   * @example const { entitled, reason, explanation } = await marketplace.explain('business-1')
   */
  explain(businessUid: string | number, options?: ExplainOptions): Promise<Decision>
  /**
   * Waits until the business may use the app, for the page to which a buyer returns. Resolves with the decision: of a yes as
   * soon as it is known, of an item that is not the app's at once, otherwise the last one after `timeoutMs` (default 30 s), or
   * when the marketplace closes. A change wakes it, so thousands may wait. With `platform.findSubscriptions` it searches again for a business of which no
   * subscription to the app was read. Rejects with the reason of `signal`, and `argument_invalid` for a wrong option.
   *
   * @example const { entitled } = await marketplace.waitForEntitlement(business_uid, { timeoutMs: 20_000 })
   */
  waitForEntitlement(businessUid: string | number, options?: WaitOptions): Promise<Decision>
  /**
   * Middleware that lets only entitled businesses through: 402 when denied, 503 when it cannot be known yet. Give it to
   * the route itself: before the router, a path that is spelled differently may pass it. The routes behind it find the
   * decision in `res.locals.entitlement`. Throws `argument_invalid` when an option is wrong.
   *
   * @example
   * const paid = marketplace.requireEntitlement({ businessUid: (req) => req.session?.business_uid })
   * app.get('/reports', paid, (req, res) => res.json(reportFor(req.session.business_uid)))
   */
  requireEntitlement(options: RequireEntitlementOptions): Guard
  /**
   * A handler for a route that tells your own front end whether the business may use the app: 200 with
   * `{ entitled, known, accessUntil, items }`, also when it may not. `items` are the items that give access. While `known`
   * is false, `Retry-After` says when to ask again. Without a business 401. Throws `argument_invalid` when an option is
   * wrong.
   *
   * @example app.get('/api/entitlement', marketplace.entitlementRoute({ businessUid: (req) => req.user?.business_uid }))
   */
  entitlementRoute(options: EntitlementRouteOptions): EntitlementRoute

  /**
   * Shows stored subscriptions, adds some without an event, and has them read again. Its methods reject with
   * `argument_invalid`, `store_unavailable` or `closed`.
   *
   * @example const subscriptions = await marketplace.subscriptions.list({ businessUid: 'business-1' })
   */
  subscriptions: {
    /**
     * Lists stored subscriptions in the order of their uids (by bytes).
     *
     * @example
     * const lost = await marketplace.subscriptions.list({ reason: 'missing', limit: 50 })
     * const nextPage = await marketplace.subscriptions.list({ reason: 'missing', after: lost.at(-1)?.subscription_uid })
     */
    list(filter?: SubscriptionsFilter): Promise<SubscriptionStatus[]>
    /**
     * One stored subscription with its state, reason and record; undefined if none has this uid.
     *
     * @example const subscription = await marketplace.subscriptions.get('subscription-1')
     */
    get(subscriptionUid: string | number): Promise<SubscriptionStatus | undefined>
    /**
     * What the platform shows of a subscription now, with a token for this business: its `record`, or in `failure` why it
     * shows none. Nothing is stored, so look before you `track` what a person typed.
     *
     * @example
     * const { record } = await marketplace.subscriptions.look({ subscriptionUid, businessUid })
     * if (record) await marketplace.subscriptions.track({ subscriptionUid, businessUid })
     */
    look(subscription: TrackedSubscription): Promise<LookedUp>
    /**
     * Adds a subscription without an event, for a lost `create`. Resolves when it is on disk; the read follows. With
     * `announce: false`, the change that the first successful read finds does not reach `onEntitlementChange` and
     * `onPurchaseChange`; changes of later reads do. An event before that read, or a `track` without this option, cancels it.
     *
     * @example await marketplace.subscriptions.track({ subscriptionUid, businessUid }, { announce: false })
     */
    track(subscription: TrackedSubscription, options?: { announce?: boolean }): Promise<void>
    /**
     * `track` for many subscriptions. Each line gets its result from the platform's answer. Batches share a commit, at most
     * 250 lines wait for their reads at a time, and reads that events request go first. Run it again with the same lines
     * after an abort, a crash or an error: it skips the lines that are read. A worker on this database does the reads: this
     * process, or with `worker: false` the running app. It also rejects with the error of the iterable or of `onProgress`.
     * The reads requested until then are on disk.
     *
     * @example
     * const { read, notRead } = await marketplace.subscriptions.import(customers, { announce: false })
     * await marketplace.subscriptions.import(notRead, { announce: false }) // later: tries these lines again
     */
    import(
      lines: Iterable<TrackedSubscription | ImportLine> | AsyncIterable<TrackedSubscription | ImportLine>,
      options?: ImportOptions,
    ): Promise<ImportSummary>
    /**
     * Makes a read of every known subscription due, for a database that was restored from a backup. The reads are spread
     * evenly over a quarter of a second for each, but within `withinMs`: 1 second to 24 hours, default 10 minutes. The
     * worker of any process on the database reads. Resolves when that is written.
     *
     * @example const { subscriptions } = await marketplace.subscriptions.refreshAll({ withinMs: 600_000 })
     */
    refreshAll(options?: { withinMs?: number }): Promise<{
      /** How many subscriptions are read. */
      subscriptions: number
    }>
  }
  /**
   * Shows, refreshes, exports and erases all that is stored of a business. Its methods reject with `argument_invalid`,
   * `store_unavailable` or `closed`.
   *
   * @example const { entitled } = await marketplace.businesses.refresh('business-1')
   */
  businesses: {
    /**
     * Lists the businesses with a stored subscription, each once, in the order of the database. Those whose uids begin with
     * a text come directly after it, on PostgreSQL as far as its collation allows.
     *
     * @example
     * const page = await marketplace.businesses.list({ limit: 50 })
     * const next = await marketplace.businesses.list({ after: page.at(-1), limit: 50 })
     */
    list(page?: BusinessesPage): Promise<string[]>
    /**
     * Reads all known subscriptions of the business again, or searches for them if none was read, waits (at most 21 s +
     * `freshness.waitMs`), and answers like `explain`. It waits for those that were read before, and only if none was, for others.
     *
     * @example const { entitled, explanation } = await marketplace.businesses.refresh('business-1')
     */
    refresh(businessUid: string | number): Promise<Decision>
    /**
     * The history of a business, newest first: deliveries, changes found by reads, the outcomes of both, and actions of
     * people. To page, pass the `id` of the last item as `before`: no item is missing or appears twice.
     *
     * @example
     * const page = await marketplace.businesses.history('business-1', { limit: 20 })
     * const older = await marketplace.businesses.history('business-1', { limit: 20, before: page.at(-1)?.id })
     */
    history(businessUid: string | number, options?: HistoryOptions): Promise<HistoryItem[]>
    /**
     * All stored data of a business: its subscriptions, and the journal entries that name it or one of them.
     *
     * @example await writeFile('business-1.json', JSON.stringify(await marketplace.businesses.export('business-1')))
     */
    export(businessUid: string | number): Promise<BusinessData>
    /**
     * The same as JSON text in pieces of about 64 KiB, for a business of which much is stored: neither the memory nor the
     * event loop ever has the whole. The entries come in the order in which they are read: those that name the business,
     * newest first, then those that name only its subscriptions. Without the last piece the text is not valid JSON.
     *
     * @example
     * await pipeline(marketplace.businesses.exportText('business-1'), createWriteStream('business-1.json'))
     */
    exportText(businessUid: string | number): AsyncGenerator<string, void>
    /**
     * Deletes all data that `businesses.export` returns, in small batches, except for the actions of people, which stay as
     * the audit for `retention.actionsMs`. It records an action `erase` with the time, `actor`, who did it, and `reason`. The
     * audit has a hash in place of the business; `businesses.history` and `journal.list` find it by the uid. Reads and
     * handlers under way do not restore deleted data. A later delivery is stored as a new one. If it rejects, call it again.
     *
     * @example
     * const by = { actor: 'ada@example.com', reason: 'request 12' }
     * const { erasedAt, rows, auditUid } = await marketplace.businesses.erase('business-1', by)
     */
    erase(businessUid: string | number, options?: { actor?: string; reason?: string }): Promise<EraseSummary>
  }
  /**
   * Shows and replays what has arrived and happened. Its methods reject with `argument_invalid`, `store_unavailable` or
   * `closed`.
   *
   * @example const dead = await marketplace.journal.list({ status: 'dead' })
   */
  journal: JournalMethods

  /**
   * Gets a token of the app for a business, to register with. Rejects `token_refused`, `app_credentials_refused`, or
   * another `platform_…` code if the call fails.
   *
   * @example const token = await marketplace.fetchAppToken('business-1')
   */
  fetchAppToken(businessUid: string | number): Promise<Token<'app'>>

  /**
   * Copies the SQLite database into the new file `path` while the app runs. The copy can be used as a store. Rejects
   * `backup_failed`, also for PostgreSQL (use `pg_dump`), and `store_unavailable`.
   *
   * @example await marketplace.backup(`/backups/${new Date().toISOString().slice(0, 10)}.db`)
   */
  backup(path: string): Promise<void>
  /**
   * Reports what the platform really does: of each event the fields, repeats within a minute and times until reads, from
   * the newest 10,000 entries and subscriptions; and headers, user agents, lifetimes of tokens and shapes of refusals, as
   * all processes on the database have seen them. Others store theirs every ten minutes, and when they close. It has no
   * value of a delivery, a record or a reply. Rejects `store_unavailable` and `closed`.
   *
   * @example await writeFile('platform.json', JSON.stringify(await marketplace.platformReport(), null, 2))
   */
  platformReport(): Promise<PlatformReport>
  /**
   * For tests: resolves when no delivery is being accepted here, and no read and no entry with a handler is due within a
   * second or under way. It does not wait for later retries, verifications and reconciles. Rejects `not_settled` after
   * `timeoutMs` (default 30 s).
   *
   * @example
   * platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
   * await platform.settled() // delivered
   * await marketplace.settled() // read and handled
   */
  settled(options?: { timeoutMs?: number }): Promise<void>
  /**
   * For a readiness probe: whether this process can accept a delivery and answer `isEntitled` now. Never rejects, and answers
   * within a second.
   *
   * @example
   * app.get('/readyz', async (_req, res) => {
   *   const { ready } = await marketplace.readiness()
   *   res.sendStatus(ready ? 200 : 503)
   * })
   */
  readiness(): Promise<Readiness>
  /**
   * The health of the app: `status`, `problems` with a next step each, and `counts` of the whole database. Never rejects, and
   * answers within about 10 s.
   *
   * @example const { status, problems } = await marketplace.health()
   */
  health(): Promise<Health>
  /**
   * Calls `listener` when the status or the set of problem codes has changed, with the health before. Its first call comes
   * when the health is first not `ok`. While there is a listener, the health is checked every 10 s, and at each call of
   * `health()`. A listener that throws does no harm. `close()` ends the calls, and is not itself reported.
   *
   * @example
   * marketplace.onHealthChange(({ status, problems }) => notify(status, problems.map(({ code, next }) => `${code}: ${next}`)))
   */
  onHealthChange(listener: HealthListener): Unsubscribe
  /**
   * Begins reading and handling. Called by itself right after construction; rejects when the store cannot be opened.
   *
   * @example await marketplace.start() // the app does not listen before its store is open
   */
  start(): Promise<void>
  /**
   * Lets work finish for `closeTimeoutMs`, then closes the store. Deliveries are accepted until then, and get 503 afterwards.
   * Safe to call twice. Close the server first and wait for it: requests under way need the gate.
   *
   * @example process.once('SIGTERM', () => server.close(() => marketplace.close()))
   */
  close(): Promise<void>
}
