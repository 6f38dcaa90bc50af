import type { Clock } from '../../base/clock.js'
import { stateForMetrics } from '../../entitlement/purchase-state.js'
import { messageOf } from '../../base/errors.js'
import type { ReadClaim } from '../../store/port/store.js'
import type { Telemetry } from '../../telemetry/telemetry.js'
import type { Durations } from './durations.js'
import type { Idle } from '../settled.js'

/** What the reader reports, as metrics, spans, log lines and warnings. */
export function createReadReports(options: {
  telemetry: Telemetry
  idle: Pick<Idle, 'progress'>
  clock: Clock
  timed: Durations
}) {
  const { telemetry, idle, clock, timed } = options
  const { count, record, log } = telemetry

  return {
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
  }
}
