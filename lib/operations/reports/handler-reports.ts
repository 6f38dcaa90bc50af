import { messageOf } from '../../base/errors.js'
import type { Entry, EntryEnd } from '../../store/port/store.js'
import type { Telemetry } from '../../telemetry/telemetry.js'
import type { HandlerFailure } from '../../work/handling/call-handlers.js'
import type { Durations } from './durations.js'
import type { Idle } from '../settled.js'

/** What the dispatcher reports, as metrics, spans, log lines and warnings. */
export function createHandlerReports(options: {
  telemetry: Telemetry
  idle: Pick<Idle, 'progress'>
  timed: Durations
}) {
  const { telemetry, idle, timed } = options
  const { count, log } = telemetry

  return {
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
  }
}
