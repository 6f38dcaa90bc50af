import type { Marketplace } from './api.js'
import { guardedClock, SECOND } from './clock.js'
import { isEntitledBy } from './entitlement/decide.js'
import { createEntitlements } from './entitlement/entitlements.js'
import { canonicalState, grants } from './entitlement/purchase-state.js'
import { createClassifier } from './events/classify.js'
import type { EventDefinitions } from './events/define-event.js'
import { createRegistry, type EventName, requireEvent } from './events/registry.js'
import { createSecretCheck, targetUrl } from './express/delivery-secret.js'
import { createDoors } from './express/doors.js'
import { createRequireEntitlement } from './express/require-entitlement.js'
import { createWhichSecret } from './express/which-secret.js'
import { mergeProblems } from './health.js'
import { createLifecycle } from './lifecycle.js'
import { createBackup } from './operations/backup.js'
import { createDeployment } from './operations/deployment.js'
import { createHealthLog } from './operations/health-log.js'
import { createIdle } from './operations/idle.js'
import { createImport } from './operations/import-subscriptions.js'
import { createOutcomeListeners } from './operations/outcome-listeners.js'
import { createReadiness } from './operations/readiness.js'
import { createRecords } from './operations/records.js'
import { createReporting } from './operations/reporting.js'
import { createTrack } from './operations/track.js'
import { createWebhooksCheck } from './operations/webhooks-check.js'
import { type MarketplaceOptions, readOptions } from './options.js'
import { createPlatformClient } from './platform/client.js'
import { appToken } from './platform/token.js'
import { requireIdentifier, storable } from './record.js'
import { ownerOf } from './store/store-owner.js'
import { storeFor } from './store-option.js'
import { untracedTimers } from './telemetry/spans.js'
import { createTelemetry } from './telemetry/telemetry.js'
import { type AnyHandler, createHandlers } from './work/handlers.js'
import { createIntake } from './work/intake.js'
import { lookAtItems } from './work/look-at-items.js'
import { createPayloads } from './work/payloads.js'
import { knownRefused } from './work/read-outcomes.js'
import { createRefreshAndWait } from './work/refresh-and-wait.js'
import { createWorker } from './work/worker.js'

/**
 * Wires all parts for one app. Two marketplaces share nothing.
 * Throws `ConfigError` with all faults of the options at once.
 *
 * @example const marketplace = createMarketplace({ app, platform, deliverySecrets: secrets.split(',') })
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
  const clock = guardedClock(untracedTimers(options.clock), (error) => telemetry.failure('timers', error))
  const store = storeFor(options.store, clock, telemetry.warn)
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

  const check = createWebhooksCheck({
    store,
    events: Object.keys(registry),
    deliverySecrets: options.deliverySecrets,
    key: app.clientSecret,
    clock,
    onError: (error) => telemetry.failure('receiving', error),
  })

  const handlers = createHandlers({ onTopicsChange: () => worker?.handlersChanged() })
  const idle = createIdle({ store, topics: options.worker ? handlers.topics : undefined, clock })
  const reporting = createReporting({ telemetry, check, idle, clock })
  const listeners = createOutcomeListeners((error) => telemetry.failure('handling', error))
  const { worker: settings } = options
  const worker = settings
    ? createWorker({
        store,
        leaseMs: settings.leaseMs,
        pollMs: settings.pollMs,
        clock,
        retention: options.retention,
        reading: {
          read: (request) => reporting.reading(request, () => platform.readSubscription(request)),
          isWaitingForToken: platform.isWaitingForToken,
          stateOf: (record) => canonicalState(storable(record.purchase_state)),
          isEntitledBy: (subscriptions, now) => isEntitledBy(subscriptions, rules, now),
          concurrency: platformOptions.concurrency,
          reconcileEveryMs: Math.min(freshness.reconcileEveryMs, freshness.maxStaleMs / 2),
          purchasableUids,
          waitMs: freshness.waitMs,
          onRead(claim, result, conclusion) {
            reporting.read(claim, result, conclusion)
            if (result.kind === 'found') intake.noteKnownItems([result.record.purchasable_uid])
          },
        },
        handling: {
          handlers,
          payloadOf: createPayloads(classify),
          marketplace: () => marketplace,
          concurrency: settings.concurrency,
          timeoutMs: settings.handlerTimeoutMs,
          retryDelaysMs: settings.handlerRetryDelaysMs,
          around: reporting.handling,
          onHandled: reporting.handled,
          onDead: listeners.died,
          onHandlerError(failure, label) {
            reporting.handlerFailed(failure, label)
            listeners.failed(failure)
          },
        },
        onError: telemetry.failure,
      })
    : undefined

  const { onAccepted } = reporting
  const intake = createIntake({ classify, store, purchasableUids, codeNames, clock, onAccepted })
  const imports = createImport({ store, clock })
  const lifecycle = createLifecycle({
    store,
    owner: ownerOf({ ...app, ...platformOptions, adopt: options.adoptStore }),
    worker,
    problems: (counts) =>
      mergeProblems([
        worker ? worker.problems(counts) : { failing: [], degraded: knownRefused(counts) },
        intake.problems(),
      ]),
    onOpen() {
      deployment.start()
      lookAtItems(store, intake.noteKnownItems, (error) => telemetry.failure('reading', error))
    },
    async onClose() {
      healthLog.close()
      telemetry.close()
      imports.close()
      entitlements.close()
      platform.close()
      await Promise.all([check.close(), deployment.close()])
    },
    closeGraceMs: options.closeGraceMs,
    clock,
    onOpenFailed: reporting.openFailed,
  })

  const deployment = createDeployment({
    store,
    hasWorker: worker !== undefined,
    clock,
    onError: (error) => telemetry.failure('instances', error),
  })
  const healthLog = createHealthLog({ health: lifecycle.health, telemetry, clock })
  reporting.gauges(store, worker?.areReadsPaused)

  if (purchasableUids.length === 0) telemetry.warn('purchasable_uid_missing')
  if (options.adoptStore) telemetry.warn('store_adopted')

  const { whileOpen } = lifecycle
  const { explain, ...records } = createRecords({
    ...{ store, rules, clock, explain: entitlements.explain, call: whileOpen },
    retention: options.retention,
  })

  const marketplace: Marketplace<Custom> = {
    events: registry,
    ...createDoors({
      isSecret: createSecretCheck(options.deliverySecrets),
      whichSecret: createWhichSecret(options.deliverySecrets),
      accept: (...given) => reporting.accepting(() => intake.accept(...given)),
      verifyDelivery: given.verifyDelivery,
      ...options.receiver,
      clock,
      count: reporting.delivery,
      onOtherwiseError: reporting.otherwiseFailed,
    }),

    on(event, handler) {
      requireEvent(registry, event)
      return handlers.on(event, handler)
    },
    onAny: (handler) => handlers.onAny(handler as AnyHandler),
    onUnrecognised: handlers.onUnrecognised,
    onPurchaseChange: handlers.onChange,
    onDead: listeners.onDead,
    onHandlerError: listeners.onHandlerError,

    isEntitled: entitlements.isEntitled,
    peek: entitlements.peek,
    explain,
    requireEntitlement: createRequireEntitlement({
      ...entitlements,
      purchasableUids,
      measure: reporting.gate,
      onDenied: reporting.denied,
    }),

    track: whileOpen(createTrack({ store })),
    importSubscriptions: whileOpen(imports.importSubscriptions),

    refresh: whileOpen(
      createRefreshAndWait({
        store,
        explain: entitlements.explain,
        requireUid: (uid) => requireIdentifier(uid, 'business_uid'),
        // Time for a token and a read, after the pause between two reads.
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
    webhooks: { check: whileOpen(check.check) },
    idle: whileOpen(idle.idle),
    deployment: whileOpen(deployment.deployment),
    health: healthLog.health,
    readiness: createReadiness({ store, isClosed: lifecycle.isClosed, clock }),
    start: lifecycle.start,
    close: lifecycle.close,
  }
  return marketplace
}
