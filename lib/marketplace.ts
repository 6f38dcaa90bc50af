import type { Marketplace, Unsubscribe } from './api.js'
import { guardedClock, SECOND } from './clock.js'
import { decide } from './entitlement/decide.js'
import { createEntitlements } from './entitlement/entitlements.js'
import { canonicalState, grants, stateForMetrics } from './entitlement/purchase-state.js'
import { MarketplaceError, messageOf } from './errors.js'
import { createClassifier } from './events/classify.js'
import type { EventDefinitions } from './events/define-event.js'
import { createRegistry, type EventName } from './events/registry.js'
import { createSecretCheck, targetUrl } from './express/delivery-secret.js'
import { createDoors } from './express/doors.js'
import { createRequireEntitlement } from './express/require-entitlement.js'
import { mergeProblems } from './health.js'
import { createLifecycle } from './lifecycle.js'
import { createBackup } from './operations/backup.js'
import { createImport } from './operations/import-subscriptions.js'
import { createRecords } from './operations/records.js'
import { createTrack } from './operations/track.js'
import { type MarketplaceOptions, readOptions } from './options.js'
import { createPlatformClient } from './platform/client.js'
import { appToken } from './platform/webhooks.js'
import { requireIdentifier, storable } from './record.js'
import type { DeadEntry } from './store/store.js'
import { storeFor } from './store/store-option.js'
import { ownerOf } from './store/store-owner.js'
import { createTelemetry } from './telemetry.js'
import type { HandlerFailure } from './work/call-handlers.js'
import { type AnyHandler, createHandlers } from './work/handlers.js'
import { createIntake } from './work/intake.js'
import { createListeners } from './work/listeners.js'
import { createPayloads } from './work/payloads.js'
import { knownRefused } from './work/read-outcomes.js'
import { createRefreshAndWait } from './work/refresh-and-wait.js'
import { createWorker } from './work/worker.js'

/**
 * Wires everything for one app. Nothing is shared between two of them.
 * Throws `ConfigError` with all faults of the options at once.
 */
export function createMarketplace<const Custom extends EventDefinitions = Record<never, never>>(
  given: MarketplaceOptions<Custom>,
): Marketplace<Custom> {
  const options = readOptions(given)
  const { app, platform: platformOptions, freshness } = options
  const { purchasableUid: purchasableUids, codeName: codeNames } = app
  const registry = createRegistry(given.events)
  const classify = createClassifier(registry)
  const telemetry = createTelemetry(options)
  const clock = guardedClock(options.clock, (error) => telemetry.failure('timers', error))
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
  const entitlements = createEntitlements({
    store,
    rules,
    waitMs: freshness.waitMs,
    clock,
    during: (looking) => lifecycle.during(looking),
  })

  const handlers = createHandlers()
  const deadListeners = createListeners<DeadEntry>((error) => telemetry.failure('handling', error))
  const errorListeners = createListeners<HandlerFailure>((error) => telemetry.failure('handling', error))
  const { worker: settings } = options
  const worker =
    settings &&
    createWorker({
      store,
      leaseMs: settings.leaseMs,
      pollMs: settings.pollMs,
      clock,
      keep: options.retention,
      reading: {
        read: platform.readSubscription,
        isWaitingForToken: platform.isWaitingForToken,
        stateOf: (record) => canonicalState(storable(record.purchase_state)),
        entitledBy: (subscriptions, now) => decide('', subscriptions, rules, now).entitled,
        concurrency: platformOptions.concurrency,
        reconcileEveryMs: Math.min(freshness.reconcileEveryMs, freshness.maxStaleMs / 2),
        purchasableUids,
        waitMs: freshness.waitMs,
        onRead(_claim, result, { moves }) {
          telemetry.count('reads', { outcome: result.kind })
          if (result.kind !== 'found') {
            const code = 'code' in result ? result.code : result.kind
            telemetry.log('reading', code, `${code}: a subscription could not be read`)
          }
          for (const { to } of moves) telemetry.count('changes', { to: stateForMetrics(to) })
        },
      },
      handling: {
        handlers,
        payloadOf: createPayloads(classify),
        marketplace: () => marketplace,
        concurrency: settings.concurrency,
        timeoutMs: settings.handlerTimeoutMs,
        retryDelaysMs: settings.handlerRetryDelaysMs,
        onHandled(entry, result) {
          telemetry.count('handled', { kind: entry.kind, outcome: result.kind })
          if (result.kind !== 'done')
            telemetry.log('handling', result.kind, `${entry.kind} ${entry.id}: ${result.error}`)
        },
        onDead: deadListeners.call,
        onHandlerError(failure, { handler, errorClass }) {
          const why = `A handler of ${handler.replace(/#.*/, '')} failed: ${messageOf(failure.error)}`
          telemetry.warn('handler_failed', why, `${handler} ${errorClass}`)
          errorListeners.call(failure)
        },
      },
      onError: telemetry.failure,
    })

  const intake = createIntake({
    classify,
    store,
    purchasableUids,
    codeNames,
    clock,
    onNotice: (item) => telemetry.count('notices', { item }),
  })
  const imports = createImport({ store, clock })
  const lifecycle = createLifecycle({
    store,
    owner: ownerOf({ ...app, ...platformOptions, adopt: options.adoptStore }),
    worker: worker || undefined,
    problems: (counts) =>
      mergeProblems([
        worker ? worker.problems(counts) : { failing: [], degraded: knownRefused(counts) },
        intake.problems(),
      ]),
    onClose() {
      imports.close()
      entitlements.close()
      platform.close()
    },
    closeGraceMs: options.closeGraceMs,
    clock,
    onOpenFailed(error) {
      telemetry.failure('opening', error)
      const className = error instanceof MarketplaceError ? error.code : ''
      telemetry.warn('store_not_open', messageOf(error), className)
    },
  })

  if (purchasableUids.length === 0) telemetry.warn('purchasable_uid_missing')
  if (options.adoptStore) telemetry.warn('store_adopted')

  function registered(unsubscribe: Unsubscribe): Unsubscribe {
    if (worker) worker.handlersChanged()
    return () => {
      unsubscribe()
      if (worker) worker.handlersChanged()
    }
  }

  /** The same call, which keeps the process alive until it settles. */
  function whileOpen<Arguments extends unknown[], T>(call: (...given: Arguments) => Promise<T>) {
    const checked = async (...given: Arguments): Promise<T> => {
      if (lifecycle.isClosed())
        throw new MarketplaceError('closed', 'Cannot use the marketplace: it was closed')
      return call(...given)
    }
    return (...given: Arguments): Promise<T> => lifecycle.during(checked(...given))
  }

  const { explain, ...records } = createRecords({
    ...{ store, rules, clock, explain: entitlements.explain, call: whileOpen },
    retention: options.retention,
  })

  const marketplace: Marketplace<Custom> = {
    ...createDoors({
      isSecret: createSecretCheck(options.deliverySecrets),
      accept: intake.accept,
      verifyDelivery: given.verifyDelivery,
      ...options.receiver,
      clock,
      count(outcome, error) {
        telemetry.count('deliveries', { outcome })
        if (error?.cause) telemetry.failure('receiving', error.cause)
      },
      onOtherwiseError: (error) => telemetry.warn('otherwise_failed', messageOf(error), messageOf(error)),
    }),

    on(event, handler) {
      if (!Object.hasOwn(registry, event)) {
        const known = Object.keys(registry).join(', ')
        throw new MarketplaceError(
          'event_unknown',
          `Cannot listen to ${event}: there is no such event, only ${known}`,
        )
      }
      return registered(handlers.on(event, handler))
    },
    onAny: (handler) => registered(handlers.onAny(handler as AnyHandler)),
    onUnrecognised: (handler) => registered(handlers.onUnrecognised(handler)),
    onPurchaseChange: (handler) => registered(handlers.onChange(handler)),
    onDead: deadListeners.add,
    onHandlerError: errorListeners.add,

    isEntitled: entitlements.isEntitled,
    peek: entitlements.peek,
    explain,
    requireEntitlement: createRequireEntitlement({
      ...entitlements,
      purchasableUids,
      onDenied: ({ reason, explanation }) => telemetry.log('gate', reason, `${reason}: ${explanation}`),
    }),

    track: whileOpen(createTrack({ store })),
    importSubscriptions: whileOpen(imports.importSubscriptions),

    refresh: whileOpen(
      createRefreshAndWait({
        store,
        explain: entitlements.explain,
        checked: (uid) => requireIdentifier(uid, 'business_uid'),
        // A token and a read, after the pause that may still be due.
        timeoutMs: 2 * platformOptions.timeoutMs + SECOND,
        clock,
      }),
    ),

    fetchAppToken: whileOpen(async (businessUid) =>
      appToken(await platform.fetchAppToken(requireIdentifier(businessUid, 'business_uid'))),
    ),
    targetUrl: (mountUrl) => targetUrl(mountUrl, options.deliverySecrets[0] as string),
    registerWebhook: whileOpen((registration) =>
      platform.registerWebhook({
        ...registration,
        accepts: (event: string) =>
          Object.hasOwn(registry, event) ? registry[event as EventName].tokens : undefined,
      }),
    ),

    ...records,
    backup: whileOpen(createBackup({ store })),
    health: lifecycle.health,
    start: lifecycle.start,
    close: lifecycle.close,
  }
  return marketplace
}
