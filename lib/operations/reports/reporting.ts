import type { Clock } from '../../base/clock.js'
import { MarketplaceError, messageOf } from '../../base/errors.js'
import type { NewEvent, DeadEntry } from '../../store/port/store.js'
import type { Telemetry } from '../../telemetry/telemetry.js'
import type { NamedItem } from '../../work/receiving/requested-reads.js'
import type { DeliveryReplies } from '../health/delivery-replies.js'
import { createDurations } from './durations.js'
import { createHandlerReports } from './handler-reports.js'
import type { Idle } from '../settled.js'
import { createReadReports } from './read-reports.js'
import type { WebhooksCheck } from '../health/webhooks-check.js'
import type { HandlerFailure as FailureInWorker } from '../../work/handling/call-handlers.js'
import { createListeners } from '../../work/handling/handlers.js'
import { type HandlerFailure, publicDeath, publicFailure } from '../journal/public-entry.js'

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

/** The app's listeners for failed tries, and for entries that became dead without one. */
export function createOutcomeListeners(onError: (error: unknown) => void) {
  const failures = createListeners<HandlerFailure>(onError)
  return {
    onHandlerError: failures.add,
    died: (entry: DeadEntry) => failures.call(publicDeath(entry)),
    failed: (failure: FailureInWorker) => failures.call(publicFailure(failure)),
  }
}
