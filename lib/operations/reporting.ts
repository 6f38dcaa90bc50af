import type { Clock } from '../clock.js'
import { MarketplaceError, messageOf } from '../errors.js'
import type { NewEvent } from '../store/store.js'
import type { Telemetry } from '../telemetry/telemetry.js'
import type { NamedItem } from '../work/requested-reads.js'
import type { DeliveryReplies } from './delivery-replies.js'
import { createDurations } from './durations.js'
import { createHandlerReports } from './handler-reports.js'
import type { Idle } from './idle.js'
import { createReadReports } from './read-reports.js'
import type { WebhooksCheck } from './webhooks-check.js'

/** Turns what the parts report into metrics, spans, log lines and warnings for the app's operator. */
export function createReporting(options: {
  telemetry: Telemetry
  /** Counts requests with a wrong secret. */
  check: Pick<WebhooksCheck, 'noteWrongSecret'>
  /** Judges what the senders of deliveries got. */
  replies: Pick<DeliveryReplies, 'note'>
  idle: Pick<Idle, 'accepting' | 'progress'>
  clock: Clock
}) {
  const { telemetry, check, replies, idle, clock } = options
  const { count, record, log, failure } = telemetry
  const timed = createDurations(telemetry, clock)

  return {
    delivery(outcome: string, error: { cause?: unknown } | undefined, isDelivery: boolean) {
      count('deliveries', { outcome })
      replies.note(outcome, isDelivery)
      if (error?.cause) failure('receiving', error.cause)
      if (outcome === 'secret_wrong') check.noteWrongSecret()
    },

    accepting<T>(call: () => Promise<T>): Promise<T> {
      return idle.accepting(() =>
        telemetry.span('accept', {}, () =>
          timed('accept.duration', call, (result) => ({ outcome: result ? 'accepted' : 'failed' })),
        ),
      )
    },

    /** To be called within the span of the delivery. */
    onAccepted({ id, subscriptionUid }: NewEvent, item: NamedItem | undefined) {
      telemetry.rememberDelivery([id, subscriptionUid])
      if (item) count('notices', { item })
    },

    ...createReadReports({ telemetry, idle, clock, timed }),
    ...createHandlerReports({ telemetry, idle, timed }),

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
