import type { Clock } from '../clock.js'
import { stateForMetrics } from '../entitlement/purchase-state.js'
import { MarketplaceError, messageOf } from '../errors.js'
import type { Entry, EntryEnd, NewEvent, ReadClaim } from '../store/store.js'
import type { Telemetry } from '../telemetry/telemetry.js'
import type { HandlerFailure } from '../work/call-handlers.js'
import type { NamedItem } from '../work/requested-reads.js'
import type { Idle } from './idle.js'
import type { WebhooksCheck } from './webhooks-check.js'

/** Turns what the parts report into metrics, spans, log lines and warnings for the app's operator. */
export function createReporting(options: {
  telemetry: Telemetry
  /** Counts deliveries. */
  check: Pick<WebhooksCheck, 'note'>
  idle: Pick<Idle, 'accepting' | 'progress'>
  clock: Clock
}) {
  const { telemetry, check, idle, clock } = options
  const { count, record, log, failure } = telemetry

  /** The result of `call`. Records its duration in a histogram if an SDK takes metrics. */
  function timed<T>(
    name: 'accept.duration' | 'read.duration' | 'handler.duration',
    call: () => Promise<T>,
    attributesOf: (result: T | undefined) => Record<string, string>,
  ): Promise<T> {
    if (!telemetry.isMeasuring()) return call()
    const beganAt = clock.monotonic()
    const end = (result?: T) => record(name, clock.monotonic() - beganAt, attributesOf(result))
    const called = call()
    called.then(end, () => end())
    return called
  }

  return {
    delivery(outcome: string, error?: { cause?: unknown }) {
      count('deliveries', { outcome })
      if (error?.cause) failure('receiving', error.cause)
      if (outcome === 'secret_wrong') check.note('secret_wrong')
    },

    accepting<T>(call: () => Promise<T>): Promise<T> {
      return idle.accepting(() =>
        telemetry.span('accept', {}, () =>
          timed('accept.duration', call, (result) => ({ outcome: result ? 'accepted' : 'failed' })),
        ),
      )
    },

    /** To be called within the span of the delivery. */
    onAccepted({ id, kind, name, subscriptionUid }: NewEvent, item: NamedItem | undefined, secret: number) {
      telemetry.rememberDelivery([id, subscriptionUid])
      if (item) count('notices', { item })
      check.note(kind, name, secret)
      if (item === 'other') check.note('other_item', name, secret)
    },

    reading<T extends { kind: string }>(
      { subscriptionUid }: { subscriptionUid: string },
      call: () => Promise<T>,
    ): Promise<T> {
      const outcomeOf = ({ kind }: T) => kind
      return telemetry.span('read', { linkedTo: [subscriptionUid], outcomeOf }, () =>
        timed('read.duration', call, (result) => ({ outcome: result ? outcomeOf(result) : 'failed' })),
      )
    },

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
      idle.progress()
      for (const { to } of conclusion.moves) count('changes', { to: stateForMetrics(to) })
      const isAnswer = result.kind === 'found' && conclusion.settled && generation > settledGeneration
      if (isAnswer && requestedAt !== null) record('decision.delay', Math.max(0, clock.now() - requestedAt))
    },

    otherwiseFailed(error: unknown) {
      telemetry.warn('otherwise_failed', messageOf(error), messageOf(error))
    },

    /** Wraps one call of one handler, which need not return a promise. */
    handling({ id, kind, name, subscriptionUid, attempt }: Entry, call: () => unknown): unknown {
      // Without an SDK, a synchronous handler costs no promise.
      if (!telemetry.isMeasuring() && !telemetry.isTracing()) return call()
      const attributes = { kind, name, attempt }
      let isDone = false
      return telemetry.span('handle', { attributes, linkedTo: [id, subscriptionUid] }, () =>
        timed(
          'handler.duration',
          async () => {
            await call()
            isDone = true
          },
          () => ({ kind, outcome: isDone ? 'returned' : 'failed' }),
        ),
      )
    },

    handled({ id, kind }: Entry, result: EntryEnd['result']) {
      count('handled', { kind, outcome: result.kind })
      idle.progress()
      if (result.kind !== 'done') {
        const level = result.kind === 'dead' ? 'error' : 'warn'
        log('handling', result.kind, `${kind} ${id}: ${result.error}`, level)
      }
    },

    handlerFailed(
      { error }: HandlerFailure,
      { handler, errorClass }: { handler: string; errorClass: string },
    ) {
      const why = `A handler of ${handler.replace(/#.*/, '')} failed: ${messageOf(error)}`
      telemetry.warn('handler_failed', why, `${handler} ${errorClass}`)
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
