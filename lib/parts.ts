import { guardedClock } from './clock.js'
import { createEntitlements } from './entitlement/entitlements.js'
import { createOwnRule } from './entitlement/own-rule.js'
import { grants } from './entitlement/purchase-state.js'
import { createClassifier } from './events/classify.js'
import type { EventDefinitions } from './events/define-event.js'
import { createRegistry } from './events/registry.js'
import { createLifecycle } from './lifecycle.js'
import { createDeliveryReplies } from './operations/delivery-replies.js'
import { createGauges } from './operations/gauges.js'
import { createHealthChanges } from './operations/health-changes.js'
import { createHealthCheck } from './operations/health-check.js'
import { createIdle } from './operations/idle.js'
import { createImport } from './operations/import-subscriptions.js'
import { createOutcomeListeners } from './operations/outcome-listeners.js'
import { createOverdueWork } from './operations/overdue-work.js'
import { createReporting } from './operations/reporting.js'
import { silenceProblems } from './operations/silence.js'
import { staleAnswers } from './operations/stale-answers.js'
import { createWebhooksCheck, fingerprintsOf } from './operations/webhooks-check.js'
import type { MarketplaceOptions, ResolvedOptions } from './options.js'
import { createPlatformClient } from './platform/client.js'
import { ownerOf } from './store/store-owner.js'
import { storeFor } from './store-option.js'
import { untracedTimers } from './telemetry/spans.js'
import { createTelemetry } from './telemetry/telemetry.js'
import { createHandlers } from './work/handlers.js'
import { createIntake } from './work/intake.js'
import { refusedBusinesses } from './work/refused-businesses.js'
import { workerFor } from './worker-option.js'

/**
 * The parts of one marketplace, connected with one another. Several call a part that is created after them: its name
 * stands in a function, which runs only later. `marketplace` returns what handlers get as `context.marketplace`.
 */
export function createParts<Custom extends EventDefinitions>(
  given: MarketplaceOptions<Custom>,
  options: ResolvedOptions,
  marketplace: () => unknown,
) {
  const { app, freshness, internals } = options
  const { purchasableUid: purchasableUids, codeName: codeNames } = app
  const registry = createRegistry(given.events)
  const classify = createClassifier(registry)
  const telemetry = createTelemetry(options)
  const clock = guardedClock(untracedTimers(options.clock), (error) => telemetry.failure('timers', error))
  const store = storeFor(options.store, clock, telemetry.warn)
  const platform = createPlatformClient({
    ...options.platform,
    timeoutMs: internals.callTimeoutMs,
    concurrency: options.reads.concurrency,
    clientId: app.clientId,
    clientSecret: app.clientSecret,
    fetch: given.platform.fetch,
    clock,
  })

  const { entitledWhen = (record) => grants(record.purchase_state) } = given
  const ownRule = createOwnRule({
    entitledWhen,
    onFailure: (why, kind) => telemetry.warn('entitled_when_failed', why, kind),
    clock,
  })
  // A record in an event is evidence of an end, and nobody's access: a failure of the rule there is no news.
  const { access } = createOwnRule({ entitledWhen, clock })
  const rules = { purchasableUids, entitledWhen: ownRule.answer, maxStaleMs: freshness.maxStaleMs }
  const entitlements = createEntitlements({
    store,
    rules,
    waitMs: freshness.waitMs,
    clock,
    during: (query) => lifecycle.during(query),
  })

  const retention = { ...options.retention, deadMs: internals.deadMs }
  const fingerprints = fingerprintsOf(options.deliverySecrets, app.clientSecret)
  const check = createWebhooksCheck({
    store,
    events: Object.keys(registry),
    fingerprints,
    retention,
    clock,
  })

  const handlers = createHandlers({ onTopicsChange: () => worker?.handlersChanged() })
  const idle = createIdle({
    store,
    topics: options.worker ? handlers.topics : undefined,
    areTopicsKnown: () => worker?.areTopicsKnown() ?? true,
    clock,
  })
  const replies = createDeliveryReplies(clock)
  const overdueWork = createOverdueWork({ hasWorker: options.worker, clock })
  const reporting = createReporting({ telemetry, check, replies, idle, clock })
  const listeners = createOutcomeListeners((error) => telemetry.failure('handling', error))
  const { onAccepted } = reporting
  const intake = createIntake({
    classify,
    store,
    purchasableUids,
    codeNames,
    isAccess: access,
    secrets: fingerprints,
    clock,
    onAccepted,
  })
  const worker = workerFor(options, {
    store,
    retention,
    clock,
    telemetry,
    platform,
    rules,
    classify,
    handlers,
    reporting,
    listeners,
    intake,
    marketplace,
  })
  const imports = createImport({ store, clock })

  const lifecycle = createLifecycle({
    store,
    owner: ownerOf({ ...app, ...options.platform, adopt: options.adoptStore }),
    worker,
    onOpen() {
      overdueWork.opened()
      intake.otherItems.lookAt(store).catch((error) => telemetry.failure('reading', error))
    },
    async onClose() {
      healthChanges.close()
      telemetry.close()
      imports.close()
      entitlements.close()
      platform.close()
    },
    closeTimeoutMs: options.closeTimeoutMs,
    clock,
    onOpenFailed: reporting.openFailed,
  })
  const { during, isClosed, whyNotOpen } = lifecycle
  const problemOfStore = async () => {
    const problem = await store.problem(internals.acceptTimeoutMs)
    replies.storeProblem(problem)
    return problem
  }
  const checkHealth = createHealthCheck({
    store: { counts: () => store.counts(freshness.maxStaleMs), problem: problemOfStore },
    isClosed,
    whyNotOpen,
    clock,
    problemsOfParts: (counts) => [
      ...replies.problems(),
      ...(worker?.problems() ?? []),
      ...(counts
        ? [
            ...refusedBusinesses(counts, worker?.refusal()),
            ...staleAnswers(counts),
            ...silenceProblems(counts),
          ]
        : []),
      ...overdueWork.problems(counts),
      ...ownRule.problems(),
      ...intake.problems(),
    ],
  })
  const healthChanges = createHealthChanges({ check: () => during(checkHealth()), telemetry, clock })
  telemetry.gauges(
    createGauges({ store, health: healthChanges.health, areReadsPaused: worker?.areReadsPaused, clock }),
  )

  if (purchasableUids.length === 0) telemetry.warn('purchasable_uid_missing')
  if (options.adoptStore) telemetry.warn('store_adopted')

  return {
    registry,
    store,
    clock,
    rules,
    retention,
    platform,
    entitlements,
    handlers,
    listeners,
    reporting,
    replies,
    problemOfStore,
    intake,
    imports,
    check,
    idle,
    lifecycle,
    healthChanges,
  }
}
