import type { Clock } from '../base/clock.js'
import { MarketplaceError, messageOf } from '../base/errors.js'
import { createListeners } from '../base/listeners.js'
import { stateForMetrics } from '../entitlement/purchase-state.js'
import { auditUid, createUidRemoval } from '../store/journal/audit.js'
import type { DeadEntry, Entry, EntryEnd, NewAction, NewEvent, ReadClaim } from '../store/port/store.js'
import type { SpanName } from '../telemetry/instruments.js'
import type { Telemetry } from '../telemetry/telemetry.js'
import type { FailedCall } from '../work/handling/call-handlers.js'
import type { NamedItem } from '../work/receiving/requested-reads.js'
import type { DeliveryReplies } from './health/delivery-replies.js'
import type { WebhooksCheck } from './health/webhooks-check.js'
import { type HandlerFailure, publicDeath, publicFailure } from './journal/public-entry.js'

const HISTOGRAMS = { accept: 'accept.duration', read: 'read.duration', handle: 'handler.duration' } as const

/**
 * Turns what the parts report into metrics, spans, log lines and warnings for the app's operator, and into calls of the
 * app's listeners for failures of handlers.
 */
export function createReporting(options: {
  telemetry: Telemetry
  /** Counts requests with a wrong secret. */
  check: Pick<WebhooksCheck, 'noteWrongSecret'>
  /** Judges what the senders of deliveries got. */
  replies: Pick<DeliveryReplies, 'note'>
  clock: Clock
}) {
  const { telemetry, check, replies, clock } = options
  const { count, record, log, failure } = telemetry
  const failures = createListeners<HandlerFailure>((error) => failure('handling', error))

  /** Runs `call` in a span, and records its duration. Both have the outcome `outcomeOf` returns, or `failed`. */
  function observed<T>(
    name: SpanName,
    options: Parameters<typeof telemetry.span<T>>[1] & {
      outcomeOf(result: T): string
      /** Further labels of the duration. */
      labels?: Record<string, string>
    },
    call: () => Promise<T>,
  ): Promise<T> {
    return telemetry.span(name, options, () => {
      if (!telemetry.isMeasuring()) return call()
      const beganAt = clock.monotonic()
      const end = (outcome: string) =>
        record(HISTOGRAMS[name], clock.monotonic() - beganAt, { ...options.labels, outcome })
      const called = call()
      called.then(
        (result) => end(options.outcomeOf(result)),
        () => end('failed'),
      )
      return called
    })
  }

  return {
    delivery(outcome: string, error: { cause?: unknown } | undefined, isDelivery: boolean) {
      count('deliveries', { outcome })
      // Anybody with the delivery secret can cause this one, so it must not take instances out of rotation.
      const { cause } = error ?? {}
      const isTurnedAway = cause instanceof MarketplaceError && cause.code === 'delivery_turned_away'
      if (!isTurnedAway) replies.note(outcome, isDelivery)
      if (cause) failure('receiving', cause)
      if (outcome === 'secret_wrong') check.noteWrongSecret()
    },

    accepting: <T>(call: () => Promise<T>): Promise<T> =>
      observed('accept', { outcomeOf: () => 'accepted' }, call),

    /** To be called within the span of the delivery. */
    onAccepted({ id, subscriptionUid }: NewEvent, item: NamedItem | undefined) {
      telemetry.rememberDelivery([id, subscriptionUid])
      if (item) count('notices', { item })
    },

    reading: <T extends { kind: string }>(
      { subscriptionUid }: { subscriptionUid: string },
      call: () => Promise<T>,
    ): Promise<T> => observed('read', { linkedTo: [subscriptionUid], outcomeOf: ({ kind }) => kind }, call),

    read(
      { subscription: { requestedAt }, generation, settledGeneration }: ReadClaim,
      result: { kind: string; code?: string },
      conclusion: { moves: readonly { to: string | null }[]; settled: boolean },
    ) {
      count('reads', { outcome: result.kind })
      if (result.kind !== 'found') {
        const code = result.code ?? result.kind
        log('reading', code, `${code}: the read of a subscription failed`, 'warn')
      }
      for (const { to } of conclusion.moves) count('changes', { to: stateForMetrics(to) })
      const isAnswer = result.kind === 'found' && conclusion.settled && generation > settledGeneration
      if (isAnswer && requestedAt !== null) record('decision.delay', Math.max(0, clock.now() - requestedAt))
    },

    /** Wraps one call of one handler, which need not return a promise. */
    handling({ id, kind, name, subscriptionUid, attempt }: Entry, call: () => unknown): unknown {
      // Without an SDK, a synchronous handler costs no promise.
      if (!telemetry.isMeasuring() && !telemetry.isTracing()) return call()
      const span = { attributes: { kind, name, attempt }, linkedTo: [id, subscriptionUid] }
      return observed('handle', { ...span, labels: { kind }, outcomeOf: () => 'returned' }, async () => {
        await call()
      })
    },

    handled({ id, kind }: Entry, result: EntryEnd['result']) {
      count('handled', { kind, outcome: result.kind })
      if (result.kind !== 'done') {
        const level = result.kind === 'dead' ? 'error' : 'warn'
        log('handling', result.kind, `${kind} ${id}: ${result.error}`, level)
      }
    },

    handlerFailed(failed: FailedCall, { handler, errorClass }: { handler: string; errorClass: string }) {
      const why = `A handler of ${handler.replace(/#.*/, '')} failed: ${messageOf(failed.error)}`
      telemetry.warn('handler_failed', why, `${handler} ${errorClass}`)
      failures.call(publicFailure(failed))
    },

    /** An entry became dead without a failed try. */
    died: (entry: DeadEntry) => failures.call(publicDeath(entry)),

    onHandlerError: failures.add,

    /** A person did something. No erasure reaches a log, so the line never has the uid of the business. */
    action({ id, name, businessUid, payload }: NewAction) {
      const { actor, reason, entry_id } = JSON.parse(payload) as Record<string, string | null>
      const about = { id, action: name, actor, reason, entry_id }
      const withoutUids = businessUid === null ? (text: string) => text : createUidRemoval(businessUid)
      const fields: Record<string, string> = { area: 'audit', code: 'action' }
      for (const [field, value] of Object.entries(about)) if (value) fields[field] = withoutUids(value)
      if (businessUid !== null) fields.business_uid = auditUid(businessUid)
      telemetry.report('info', fields, 'A person did something that the journal records')
    },

    otherwiseFailed(error: unknown) {
      telemetry.warn('otherwise_failed', messageOf(error), messageOf(error))
    },

    denied({ reason, explanation }: { reason: string; explanation: string }) {
      log('gate', reason, `${reason}: ${explanation}`)
    },

    /** For one request of the gate: returns a function to call with the outcome; undefined if no SDK takes metrics. */
    gate() {
      if (!telemetry.isMeasuring()) return undefined
      const beganAt = clock.monotonic()
      return (outcome: string) => record('gate.duration', clock.monotonic() - beganAt, { outcome })
    },

    openFailed(error: unknown) {
      failure('opening', error)
      telemetry.warn('store_not_open', messageOf(error), error instanceof MarketplaceError ? error.code : '')
    },
  }
}
