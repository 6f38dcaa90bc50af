import type { Clock } from './clock.js'
import { answerOf, type DecisionRules } from './entitlement/decide.js'
import { canonicalState } from './entitlement/purchase-state.js'
import type { createClassifier } from './events/classify.js'
import type { createOutcomeListeners } from './operations/outcome-listeners.js'
import type { createReporting } from './operations/reporting.js'
import type { ResolvedOptions } from './options.js'
import type { createPlatformClient } from './platform/client.js'
import { storable } from './record.js'
import type { Retention, Store } from './store/store.js'
import type { Telemetry } from './telemetry/telemetry.js'
import type { Handlers } from './work/handlers.js'
import type { createIntake } from './work/intake.js'
import { createPayloads } from './work/payloads.js'
import { createPresentAnswer } from './work/present-answer.js'
import { createWorker } from './work/worker.js'

/** The worker of a marketplace; undefined when the option `worker` is `false`. */
export function workerFor(
  options: ResolvedOptions,
  parts: {
    store: Store
    retention: Retention
    clock: Clock
    telemetry: Telemetry
    platform: ReturnType<typeof createPlatformClient>
    rules: DecisionRules
    classify: ReturnType<typeof createClassifier>
    handlers: Handlers
    reporting: ReturnType<typeof createReporting>
    listeners: ReturnType<typeof createOutcomeListeners>
    intake: Pick<ReturnType<typeof createIntake>, 'otherItems'>
    marketplace(): unknown
  },
) {
  const { freshness, internals } = options
  if (!options.worker) return undefined
  const {
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
  } = parts
  return createWorker({
    store,
    leaseMs: internals.leaseMs,
    pollMs: internals.pollMs,
    clock,
    retention,
    reading: {
      read: (request) => reporting.reading(request, () => platform.readSubscription(request)),
      isWaitingForToken: platform.isWaitingForToken,
      stateOf: (record) => canonicalState(storable(record.purchase_state)),
      concurrency: options.reads.concurrency,
      // A failed reconcile has the other half of the time for its retries, before the answer becomes stale.
      reconcileEveryMs: Math.min(freshness.reconcileEveryMs, freshness.maxStaleMs / 2),
      maxStaleMs: freshness.maxStaleMs,
      waitMs: freshness.waitMs,
      onRead(claim, result, conclusion) {
        reporting.read(claim, result, conclusion)
        if (result.kind === 'found') intake.otherItems.noteKnown([result.record.purchasable_uid])
      },
    },
    handling: {
      handlers,
      payloadOf: createPayloads(
        classify,
        createPresentAnswer({ store, answerOf: (rows) => answerOf(rows, rules, clock.now()) }),
      ),
      marketplace: parts.marketplace,
      ...options.handlers,
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
}
