import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../base/clock.js'
import { classOf, messageOf, ownCode } from '../base/errors.js'
import { createListeners } from '../base/listeners.js'
import type { RuleFailure } from '../entitlement/own-rule.js'
import { stateForMetrics } from '../entitlement/purchase-state.js'
import { REASONS, type Reason } from '../entitlement/reasons.js'
import { identifiersIn } from '../events/fixture.js'
import type { SearchResult } from '../platform/find-subscriptions.js'
import { auditUid, createUidRemoval } from '../store/journal/audit.js'
import type { DeadEntry, Entry, NewAction, NewEvent, ReadClaim } from '../store/port/store.js'
import type { SpanName } from '../telemetry/instruments.js'
import type { Received } from '../telemetry/received.js'
import type { Telemetry } from '../telemetry/telemetry.js'
import type { FailedCall, Handled } from '../work/handling/call-handlers.js'
import type { NamedItem } from '../work/receiving/requested-reads.js'
import type { DeliveryReplies } from './health/delivery-replies.js'
import type { WebhooksCheck } from './health/webhooks-check.js'
import { type HandlerFailure, publicDeath, publicFailure } from './journal/public-entry.js'
import type { SeenNotes } from './platform-report/seen-facts.js'

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
  /** Counts how deliveries were sent. */
  facts: SeenNotes
  clock: Clock
}) {
  const { telemetry, check, replies, facts, clock } = options
  const { count, record, log, failure, said } = telemetry
  const failures = createListeners<HandlerFailure>((error) => failure('listeners', error))

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
    /** `given` returns what `verifyDelivery` was given, which its error may quote. */
    delivery(
      outcome: string,
      error: { cause?: unknown } | undefined,
      isDelivery: boolean,
      given: (() => Received) | undefined,
    ) {
      // Anybody with the delivery secret can cause this one, so it must not take instances out of rotation, nor look like a
      // store that does not write.
      const { cause } = error ?? {}
      const isTurnedAway = ownCode(cause) === 'delivery_turned_away'
      count('deliveries', { outcome: isTurnedAway ? 'delivery_turned_away' : outcome })
      if (!isTurnedAway) replies.note(outcome, isDelivery)
      if (cause) failure('receiving', cause, given)
      if (outcome === 'secret_wrong') check.noteWrongSecret()
    },

    accepting: <T>(call: () => Promise<T>): Promise<T> =>
      observed('accept', { outcomeOf: () => 'accepted' }, call),

    /** To be called within the span of the delivery. */
    onAccepted(
      { id, name, businessUid, subscriptionUid, payload }: NewEvent,
      item: NamedItem | undefined,
      headers: IncomingHttpHeaders,
    ) {
      telemetry.rememberDelivery([id, subscriptionUid])
      // Few deliveries are examined, so only these are parsed once more.
      facts.noteDelivery(name, headers, () => {
        const uids = [businessUid, subscriptionUid].filter((uid) => uid !== null)
        return [...uids, ...identifiersIn(JSON.parse(payload))]
      })
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
        log('reading', code, () => ({ message: `${code}: the read of a subscription failed` }), 'warn')
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

    handled({ id, kind }: Entry, result: Handled) {
      count('handled', { kind, outcome: result.kind })
      if (result.kind === 'done') return
      const { error, thrown } = result
      const level = result.kind === 'dead' ? 'error' : 'warn'
      const lineOf = () => {
        // Without a thrown value, the error is a sentence of this package.
        const { message, stack } = thrown ? said(thrown.error, thrown.given(), error) : { message: error }
        return { message: `${kind} ${id}: ${message}`, stack }
      }
      log('handling', result.kind, lineOf, level)
    },

    handlerFailed(
      failed: FailedCall,
      { handler, errorClass, given }: { handler: string; errorClass: string; given(): Received },
    ) {
      const lineOf = () => {
        const { message, stack } = said(failed.error, given(), messageOf(failed.error))
        return { message: `A handler of ${handler.replace(/#.*/, '')} failed: ${message}`, stack }
      }
      telemetry.warn('handler_failed', lineOf, `${handler} ${errorClass}`)
      failures.call(publicFailure(failed))
    },

    /** The option `entitledWhen` gave no answer. */
    ruleFailed({ kind, failure, thrown, record }: RuleFailure) {
      const lineOf = () => {
        if (kind !== 'threw') return { message: `entitledWhen ${failure}` }
        const { message, stack } = said(thrown, [JSON.stringify(record)])
        return { message: `entitledWhen threw ${message}`, stack }
      }
      telemetry.warn('entitled_when_failed', lineOf, kind)
    },

    /** A search for subscriptions. The option may quote a reply of the platform, which no log gets. */
    searched(result: SearchResult) {
      const isEmpty = result.kind === 'found' && result.subscriptionUids.length === 0
      count('searches', { outcome: isEmpty ? 'none' : result.kind })
      if (result.kind === 'found' || result.kind === 'refused') return
      const { code, why, cause }: { code: string; why?: string; cause?: unknown } = result
      const lineOf = () => {
        if (cause === undefined) return { message: why ? `findSubscriptions ${why}` : code }
        const { message, stack } = said(cause, undefined)
        return { message: `findSubscriptions threw ${message}`, stack }
      }
      log('searching', code, lineOf, 'warn')
      if (why !== undefined) telemetry.warn('find_subscriptions_failed', lineOf, cause ? classOf(cause) : why)
    },

    /** An entry became dead without a failed try. */
    died: (entry: DeadEntry) => failures.call(publicDeath(entry)),

    onHandlerError: failures.add,

    /** A person did something. No erasure reaches a log, so the line names the business by its hash, also in the reason. */
    action({ id, name, businessUid, payload }: NewAction) {
      const { actor, reason, entry_id } = JSON.parse(payload) as Record<string, string | null>
      const why = reason && businessUid !== null ? createUidRemoval(businessUid)(reason) : reason
      const about = { id, action: name, actor, reason: why, entry_id }
      const fields: Record<string, string> = { area: 'audit', code: 'action' }
      for (const [field, value] of Object.entries(about)) if (value) fields[field] = value
      if (businessUid !== null) fields.business_uid = auditUid(businessUid)
      telemetry.report('info', fields, 'A person did something that the journal records')
    },

    otherwiseFailed(error: unknown, given: () => Received) {
      telemetry.warn('otherwise_failed', () => said(error, given()), classOf(error))
    },

    /** The request that the function gets may have a session, so it is not known what the function was given. */
    purchaseUrlFailed(failure: string, kind: string, thrown?: { error: unknown }) {
      const lineOf = () => {
        if (!thrown) return { message: `purchaseUrl ${failure}` }
        const { message, stack } = said(thrown.error, undefined)
        return { message: `purchaseUrl ${failure} ${message}`, stack }
      }
      telemetry.warn('purchase_url_failed', lineOf, kind)
    },

    /** The explanation of a decision with a reason of the table has texts of the platform, so a log gets the meaning. */
    denied({ reason, explanation }: { reason: string; explanation: string }) {
      const meaning = Object.hasOwn(REASONS, reason) ? REASONS[reason as Reason].meaning : explanation
      log('gate', reason, () => ({ message: `${reason}: ${meaning}` }))
    },

    /** For one request of the gate: returns a function to call with the outcome; undefined if no SDK takes metrics. */
    gate() {
      if (!telemetry.isMeasuring()) return undefined
      const beganAt = clock.monotonic()
      return (outcome: string) => record('gate.duration', clock.monotonic() - beganAt, { outcome })
    },

    openFailed(error: unknown) {
      failure('opening', error)
      telemetry.warn('store_not_open', messageOf(error), ownCode(error))
    },
  }
}
