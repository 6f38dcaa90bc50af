import { type Decision, decide } from './entitlement/decide.js'
import { createEntitlements } from './entitlement/entitlements.js'
import { canonicalState, grants } from './entitlement/purchase-state.js'
import { MarketplaceError } from './errors.js'
import { createClassifier } from './events/classify.js'
import type { EventDefinitions } from './events/define-event.js'
import {
  type AnyEvent,
  createRegistry,
  type EventName,
  type MarketplaceEvent,
  type Registry,
  type TokensOf,
} from './events/registry.js'
import { createSecretCheck, secretFaults, targetUrl } from './express/delivery-secret.js'
import { createReceiver } from './express/receiver.js'
import { createRequireEntitlement, type RequireEntitlementOptions } from './express/require-entitlement.js'
import { createLifecycle, type Health } from './lifecycle.js'
import { type MarketplaceOptions, readOptions } from './options.js'
import { createPlatformClient } from './platform/client.js'
import type { RegisterResult, Token } from './platform/webhooks.js'
import { identifierOf } from './record.js'
import { storeFor } from './store/open-store.js'
import type { EntryFilter, JournalEntry, StoredRecord } from './store/store.js'
import { createTelemetry } from './telemetry.js'
import { createDispatcher, type DeadEntry } from './work/dispatcher.js'
import { type AnyHandler, createHandlers, type Handler } from './work/handlers.js'
import { createIntake } from './work/intake.js'
import { createPayloads, type UnrecognisedDelivery } from './work/payloads.js'
import { createRefreshNow } from './work/refresh-now.js'
import { createRefresher, type PurchaseChange } from './work/refresher.js'
import { createWorker } from './work/worker.js'

type Unsubscribe = () => void

/** A request handler of Express 4 and 5, by shape. */
export type Middleware = ReturnType<typeof createReceiver>

export interface Marketplace<Custom extends EventDefinitions = Record<never, never>> {
  /** Mount it with `app.use(path, marketplace.router)`: it takes deliveries at `POST <path>/<delivery secret>`. */
  router: Middleware

  /** Calls `handler` for each event of this name, at least once, in order per subscription. */
  on<Name extends EventName<Registry<Custom>>>(
    event: Name,
    handler: Handler<MarketplaceEvent<Name, Registry<Custom>>, Marketplace<Custom>>,
  ): Unsubscribe
  onAny(handler: Handler<AnyEvent<Registry<Custom>>, Marketplace<Custom>>): Unsubscribe
  /** For deliveries that are no known event; they are kept all the same. */
  onUnrecognised(handler: Handler<UnrecognisedDelivery, Marketplace<Custom>>): Unsubscribe
  /** For every observed change of `purchase_state`. Changes wait in the journal until there is such a handler. */
  onPurchaseChange(handler: Handler<PurchaseChange, Marketplace<Custom>>): Unsubscribe
  /** Told, in this process and once, when an entry has run out of tries; `journal.replay(id)` revives it. */
  onDead(listener: (entry: DeadEntry) => void): Unsubscribe

  /** Whether the business may use the app now. Never rejects; what is not known for certain is false. */
  isEntitled(businessUid: string): Promise<boolean>
  /** The same answer with its reason, evidence and age. Never rejects. */
  explain(businessUid: string): Promise<Decision>
  /** Middleware that lets only entitled businesses through: 402 when denied, 503 when it cannot be known yet. */
  requireEntitlement(
    options: RequireEntitlementOptions,
  ): ReturnType<ReturnType<typeof createRequireEntitlement>>

  /**
   * Learns of a subscription without an event: an import, or a `created` that never came.
   * Rejects `argument_invalid` or `store_unavailable`; resolves when it is on disk, the read follows.
   */
  track(subscription: { subscription_uid: string; business_uid: string }): Promise<void>
  /**
   * Reads everything known of the business again, waits for it (at most twice the platform's time limit) and answers
   * as `explain`. Rejects `argument_invalid` or `store_unavailable`.
   */
  refresh(businessUid: string): Promise<Decision>

  /** The address to register with the platform: `mountUrl` and the first delivery secret. Treat it as a secret. */
  targetUrl(mountUrl: string): string
  /**
   * Registers a target for an event. A token of a kind the event does not accept is a type error, and rejects
   * `token_kind_not_accepted`. Registering again is a success too.
   */
  registerWebhook<Name extends EventName<Registry<Custom>>>(registration: {
    event: Name
    targetUrl: string
    token: Token<TokensOf<Name, Registry<Custom>>>
  }): Promise<RegisterResult>

  journal: {
    /** Newest first. */
    list(filter?: EntryFilter): Promise<JournalEntry[]>
    /** Hands an entry to its handlers once more, whatever became of it. False when there is none of that id. */
    replay(id: string): Promise<boolean>
  }
  /** For a health check: never rejects. */
  health(): Promise<Health>
  /** Begins reading and handling. Called by itself right after construction; rejects when the store cannot be opened. */
  start(): Promise<void>
  /** Stops receiving, lets work finish for `closeGraceMs`, closes the store. Safe to call twice. */
  close(): Promise<void>
}

/**
 * Wires everything for one app. Nothing is shared between two of them.
 * Throws `ConfigError` with all faults of the options at once.
 */
export function createMarketplace<const Custom extends EventDefinitions = Record<never, never>>(
  given: MarketplaceOptions<Custom>,
): Marketplace<Custom> {
  const options = readOptions(given, secretFaults)
  const { app, platform: platformOptions, freshness, clock } = options
  const { purchasableUid: purchasableUids, codeName: codeNames } = app
  const registry = createRegistry(given.events)
  const classify = createClassifier(registry)
  const telemetry = createTelemetry({ clock })
  const store = storeFor(options.store, clock)
  const platform = createPlatformClient({
    ...platformOptions,
    clientId: app.clientId,
    clientSecret: app.clientSecret,
    fetch: given.platform.fetch,
    clock,
  })

  const entitledWhen = (options.entitledWhen ?? ((record) => grants(record.purchase_state))) as (
    r: StoredRecord,
  ) => boolean
  const rules = { purchasableUids, entitledWhen, maxStaleMs: freshness.maxStaleMs }
  const entitlements = createEntitlements({ store, rules, waitMs: freshness.waitMs, clock })

  const handlers = createHandlers()
  const deadListeners = new Set<(entry: DeadEntry) => void>()
  const onError = (area: string) => (error: unknown) => telemetry.failure(area, error)
  const workerOptions = options.worker || undefined
  const leaseMs = workerOptions?.leaseMs ?? 60_000
  const loop = { leaseMs, renewEveryMs: leaseMs / 6, pollMs: workerOptions?.pollMs ?? 1_000, clock }

  const refresher =
    workerOptions &&
    createRefresher({
      ...loop,
      store,
      read: platform.readSubscription,
      stateOf: (record) => canonicalState(record.purchase_state),
      entitledBy: (subscriptions, now) => decide('', subscriptions, rules, now).entitled,
      concurrency: platformOptions.concurrency,
      reconcileEveryMs: freshness.reconcileEveryMs,
      onRead(_claim, result, { moved }) {
        telemetry.count('reads', { outcome: result.kind })
        if (moved) telemetry.count('changes', { to: moved.to ?? 'gone' })
      },
      onError: onError('reading'),
    })
  const dispatcher =
    workerOptions &&
    createDispatcher({
      ...loop,
      store,
      handlers,
      payloadOf: createPayloads(classify),
      marketplace: () => marketplace,
      concurrency: workerOptions.concurrency,
      timeoutMs: workerOptions.handlerTimeoutMs,
      retryDelaysMs: workerOptions.handlerRetryDelaysMs,
      onHandled: (entry, outcome) => telemetry.count('handled', { kind: entry.kind, outcome }),
      onDead(entry) {
        telemetry.log('handlers', 'dead', `entry ${entry.id} ran out of tries`)
        for (const listener of deadListeners) listener(entry)
      },
      onError: onError('handling'),
    })
  const worker =
    refresher &&
    dispatcher &&
    createWorker({
      store,
      refresher,
      dispatcher,
      keep: options.retention,
      clock,
      onError: onError('retention'),
    })

  const intake = createIntake({ classify, store, purchasableUids, codeNames, clock })
  const lifecycle = createLifecycle({
    store,
    worker,
    readsPaused: () => refresher?.paused() ?? null,
    onClose: entitlements.close,
    closeGraceMs: options.closeGraceMs,
    clock,
    onOpenFailed: onError('opening'),
  })

  if (purchasableUids.length === 0) {
    telemetry.warn(
      'purchasable_uid_missing',
      "app.purchasableUid is not set: every subscription that a notice or track() names counts as the app's own",
    )
  }

  /** What waited for a handler need not wait for the next look. */
  function registered(unsubscribe: Unsubscribe): Unsubscribe {
    dispatcher?.wake()
    return unsubscribe
  }

  const marketplace: Marketplace<Custom> = {
    router: createReceiver({
      isSecret: createSecretCheck(options.deliverySecrets),
      accept: intake,
      verifyDelivery: given.verifyDelivery,
      ...options.receiver,
      clock,
      count(outcome, error) {
        telemetry.count('deliveries', { outcome })
        if (error?.cause) telemetry.failure('receiving', error.cause)
      },
    }),

    on(event, handler) {
      if (!Object.hasOwn(registry, event))
        throw new MarketplaceError('event_unknown', `Cannot listen to ${event}: no such event`)
      return registered(handlers.on(event, handler))
    },
    onAny: (handler) => registered(handlers.onAny(handler as AnyHandler)),
    onUnrecognised: (handler) => registered(handlers.onUnrecognised(handler)),
    onPurchaseChange: (handler) => registered(handlers.onChange(handler)),
    onDead(listener) {
      deadListeners.add(listener)
      return () => void deadListeners.delete(listener)
    },

    isEntitled: entitlements.isEntitled,
    explain: entitlements.explain,
    requireEntitlement: createRequireEntitlement(entitlements),

    async track({ subscription_uid, business_uid }) {
      const subscriptionUid = requireUid(subscription_uid, 'subscription_uid')
      const businessUid = requireUid(business_uid, 'business_uid')
      await store.want({ what: 'subscription', subscriptionUid, businessUid, purchasableUid: null })
    },

    refresh: createRefreshNow({
      store,
      explain: entitlements.explain,
      checked: (uid) => requireUid(uid, 'business_uid'),
      timeoutMs: 2 * platformOptions.timeoutMs,
      clock,
    }),

    targetUrl: (mountUrl) => targetUrl(mountUrl, options.deliverySecrets[0] as string),
    registerWebhook: (registration) =>
      platform.registerWebhook({
        ...registration,
        accepts: (event: string) =>
          Object.hasOwn(registry, event) ? registry[event as EventName].tokens : undefined,
      }),

    journal: {
      list: (filter = {}) => store.listEntries(filter),
      replay: (id) => store.replayEntry(id),
    },
    health: lifecycle.health,
    start: lifecycle.start,
    close: lifecycle.close,
  }
  return marketplace
}

function requireUid(value: unknown, name: string): string {
  const uid = identifierOf(value)
  if (uid === null)
    throw new MarketplaceError('argument_invalid', `Cannot use ${name}: it is not an identifier`)
  return uid
}
