import type { Marketplace, Unsubscribe } from './api.js'
import { decide } from './entitlement/decide.js'
import { createEntitlements } from './entitlement/entitlements.js'
import { canonicalState, grants } from './entitlement/purchase-state.js'
import { MarketplaceError } from './errors.js'
import { createClassifier } from './events/classify.js'
import type { EventDefinitions } from './events/define-event.js'
import { createRegistry, type EventName } from './events/registry.js'
import { createSecretCheck, secretFaults, targetUrl } from './express/delivery-secret.js'
import { createReceiver } from './express/receiver.js'
import { createRequireEntitlement } from './express/require-entitlement.js'
import { createLifecycle } from './lifecycle.js'
import { type MarketplaceOptions, readOptions } from './options.js'
import { createPlatformClient } from './platform/client.js'
import { identifierOf } from './record.js'
import { storeFor } from './store/open-store.js'
import { createTelemetry } from './telemetry.js'
import { createDispatcher, type DeadEntry } from './work/dispatcher.js'
import { type AnyHandler, createHandlers } from './work/handlers.js'
import { createIntake } from './work/intake.js'
import { createPayloads } from './work/payloads.js'
import { createRefreshNow } from './work/refresh-now.js'
import { createRefresher } from './work/refresher.js'
import { createWorker } from './work/worker.js'

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

  const entitledWhen = given.entitledWhen ?? ((record) => grants(record.purchase_state))
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
        for (const listener of deadListeners) {
          try {
            listener(entry)
          } catch (error) {
            telemetry.failure('onDead', error)
          }
        }
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
