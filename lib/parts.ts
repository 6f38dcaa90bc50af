import { guardedClock } from './base/clock.js'
import { type SubscriptionRecord, storable } from './base/record.js'
import { accessOf, answerOf, isOfOtherApp } from './entitlement/decide.js'
import { createEntitlementChanges } from './entitlement/entitlement-change.js'
import { createEntitlements } from './entitlement/entitlements.js'
import { createOwnRule } from './entitlement/own-rule.js'
import { canonicalState, grants, PURCHASE_STATES } from './entitlement/purchase-state.js'
import { REASONS } from './entitlement/reasons.js'
import { createClassifier } from './events/classify.js'
import type { EventDefinitions } from './events/define-event.js'
import { createRegistry } from './events/registry.js'
import { createLifecycle } from './lifecycle.js'
import { createDeliveryReplies } from './operations/health/delivery-replies.js'
import { createGauges } from './operations/health/gauges.js'
import { createHealthChanges } from './operations/health/health-changes.js'
import { createHealthCheck } from './operations/health/health-check.js'
import { createOverdueWork } from './operations/health/overdue-work.js'
import { problemsOfCounts } from './operations/health/problems-of-counts.js'
import { createWebhooksCheck, fingerprintsOf } from './operations/health/webhooks-check.js'
import { subscriptionPages } from './operations/journal/pages.js'
import { createPlatformReport } from './operations/platform-report/platform-report.js'
import { createSeenFacts } from './operations/platform-report/seen-facts.js'
import { createStoredFacts } from './operations/platform-report/stored-facts.js'
import { createReporting } from './operations/reporting.js'
import { createSettling } from './operations/settled.js'
import { createImport } from './operations/subscriptions/import.js'
import type { MarketplaceOptions, ResolvedOptions } from './options.js'
import { createPlatformClient } from './platform/client.js'
import { createFindSubscriptions } from './platform/find-subscriptions.js'
import { ownerOf } from './store/ownership.js'
import { storeFor } from './store-option.js'
import { outsideTraces } from './telemetry/spans.js'
import { createTelemetry } from './telemetry/telemetry.js'
import { createHandlers } from './work/handling/handlers.js'
import { createPayloads } from './work/handling/payloads.js'
import { createOtherItems } from './work/reading/other-items.js'
import { createIntake } from './work/receiving/intake.js'
import { createWorker } from './work/worker.js'

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
  const telemetry = createTelemetry({
    ...options,
    secrets: [...options.deliverySecrets, app.clientSecret],
    words: [
      ...Object.keys(PURCHASE_STATES),
      ...Object.keys(REASONS),
      ...Object.values(registry).flatMap(({ entity_name, event_type }) => [entity_name, event_type]),
    ],
  })
  const onTimerError = (error: unknown) => telemetry.failure('timers', error)
  const clock = guardedClock(options.clock, onTimerError, outsideTraces)
  const store = storeFor(options.store, clock, telemetry.warn)
  const secrets = [...options.deliverySecrets, app.clientSecret, app.clientId]
  const facts = createSeenFacts({ store, secrets, clock })
  const platform = createPlatformClient({
    ...options.platform,
    timeoutMs: internals.callTimeoutMs,
    concurrency: options.reads.concurrency,
    clientId: app.clientId,
    clientSecret: app.clientSecret,
    fetch: given.platform.fetch,
    clock,
    // The command line has no worker: it calls for a person only, and stores nothing beside what it was told.
    notes: options.worker ? facts : undefined,
  })
  const { findSubscriptions } = given.platform
  const searches = findSubscriptions ? store : undefined
  // A process without a worker, such as the command line, may lack the option: a stored search shows that the others have it.
  const storedSearches =
    searches ??
    (options.worker ? undefined : { searchOf: (businessUid: string) => store.searchOf(businessUid) })

  const { entitledWhen = (record: SubscriptionRecord) => grants(record.purchase_state) } = given
  const ownRule = createOwnRule({
    entitledWhen,
    onFailure: (failed) => reporting.ruleFailed(failed),
    clock,
  })
  // A record in an event is evidence of an end, and nobody's access: a failure of the rule there is no news.
  const { access } = createOwnRule({ entitledWhen, clock })
  const rules = { purchasableUids, entitledWhen: ownRule.answer, maxStaleMs: freshness.maxStaleMs }
  const entitlements = createEntitlements({
    store,
    rules,
    waitMs: freshness.waitMs,
    searches: storedSearches,
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
  const settling = createSettling({
    store,
    topics: options.worker ? handlers.topics : undefined,
    searches: searches !== undefined,
    areTopicsKnown: () => worker?.areTopicsKnown() ?? true,
    isWorking: () => worker?.isWorking() ?? false,
    clock,
  })
  const replies = createDeliveryReplies(clock)
  const overdueWork = createOverdueWork({ hasWorker: options.worker, clock })
  const reporting = createReporting({ telemetry, check, replies, facts, clock })
  const { onAccepted } = reporting
  const otherItems = createOtherItems({
    purchasableUids,
    pages: () => subscriptionPages(store, {}, 100),
    onError: (error) => telemetry.failure('reading', error),
    clock,
  })
  const intake = createIntake({
    classify,
    store,
    purchasableUids,
    codeNames,
    isAccess: access,
    searches: searches !== undefined,
    secrets: fingerprints,
    clock,
    onAccepted,
  })
  const worker = options.worker
    ? createWorker({
        store,
        leaseMs: internals.leaseMs,
        pollMs: internals.pollMs,
        clock,
        retention,
        reading: {
          read: (request) => reporting.reading(request, () => platform.readSubscription(request)),
          isWaitingForToken: platform.isWaitingForToken,
          stateOf: (record) =>
            isOfOtherApp(record.purchasable_uid, rules)
              ? null
              : canonicalState(storable(record.purchase_state)),
          accessOf: (record, now) => accessOf(record, rules, now),
          concurrency: options.reads.concurrency,
          // A failed reconcile has the other half of the time for its retries, before the answer becomes stale.
          reconcileEveryMs: Math.min(freshness.reconcileEveryMs, freshness.maxStaleMs / 2),
          maxStaleMs: freshness.maxStaleMs,
          waitMs: freshness.waitMs,
          onRead(claim, result, conclusion) {
            reporting.read(claim, result, conclusion)
            if (result.kind === 'found')
              otherItems.noteRead(
                result.record.purchasable_uid,
                claim.subscription.record === null && claim.cause === 'event',
              )
          },
        },
        searching: findSubscriptions && {
          find: createFindSubscriptions({
            findSubscriptions,
            tokenFor: platform.tokenFor,
            dropAppToken: platform.dropAppToken,
            fetch: given.platform.fetch,
            timeoutMs: internals.callTimeoutMs,
            clock,
          }),
          onSearch: reporting.searched,
        },
        handling: {
          handlers,
          payloadOf: createPayloads({
            classify,
            store,
            answerOf: (subscriptions) => answerOf(subscriptions, rules, clock.now()),
            entitlementChangeOf: createEntitlementChanges({ store, rules, now: clock.now }),
          }),
          marketplace,
          ...options.handlers,
          around: reporting.handling,
          onHandled: reporting.handled,
          onDead: reporting.died,
          onHandlerError: reporting.handlerFailed,
        },
        onError: telemetry.failure,
      })
    : undefined
  const imports = createImport({ store, clock })

  const lifecycle = createLifecycle({
    store,
    owner: ownerOf({ ...app, ...options.platform, purchasableUids, adopt: options.adoptStore }),
    worker,
    onOpen() {
      overdueWork.opened()
      void otherItems.look()
    },
    async onClose() {
      healthChanges.close()
      telemetry.close()
      imports.close()
      entitlements.close()
      platform.close()
      await facts.close()
    },
    closeTimeoutMs: options.closeTimeoutMs,
    clock,
    onOpenFailed: reporting.openFailed,
  })
  const { during, isClosed, whyNotOpen } = lifecycle
  const { health, readiness } = createHealthCheck({
    store: {
      async counts() {
        const counts = await store.counts(freshness.maxStaleMs)
        // Without the option, those of an app that had it are left, which nobody makes.
        if (storedSearches) return counts
        return { ...counts, askedSearches: 0, failedSearches: 0, unsearched: 0, oldestSearchMs: null }
      },
      subscriptionsOf: (businessUid) => store.subscriptionsOf(businessUid),
      cleanUp: () => store.cleanUp(),
      async turnedAway() {
        const stored = await store.turnedAway()
        const refused = (stored?.refused ?? 0) + intake.turnedAway()
        return stored || refused > 0 ? { counted: [], deleted: 0, ...stored, refused } : null
      },
      async problem() {
        const problem = await store.problem(internals.acceptTimeoutMs)
        replies.storeProblem(problem)
        return problem
      },
    },
    isClosed,
    whyNotOpen,
    clock,
    problemsOfDeliveries: replies.problems,
    problemsOfParts: (counts) => [
      ...replies.problems(),
      ...(worker?.problems() ?? []),
      ...overdueWork.problems(counts),
      ...ownRule.problems(),
      ...intake.problems(),
      ...otherItems.problems(),
      ...(counts ? problemsOfCounts(counts, worker?.refusal()) : []),
    ],
  })
  const healthChanges = createHealthChanges({ check: () => during(health()), telemetry, clock })
  telemetry.gauges(
    createGauges({ store, health: healthChanges.health, areReadsHeldUp: worker?.areReadsHeldUp, clock }),
  )

  if (purchasableUids.length === 0) telemetry.warn('purchasable_uid_missing')
  if (options.adoptStore) telemetry.warn('store_adopted')

  return {
    registry,
    store,
    clock,
    searches,
    rules,
    retention,
    platform,
    entitlements,
    handlers,
    reporting,
    intake,
    imports,
    check,
    platformReport: createPlatformReport({
      storedFacts: createStoredFacts({ store, registry, secrets, clock }),
      seenFacts: facts.facts,
      clock,
    }),
    settling,
    lifecycle,
    healthChanges,
    readiness: () => during(readiness()),
  }
}
