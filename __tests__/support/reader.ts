import { HOUR } from '../../lib/clock.js'
import type { ReadResult } from '../../lib/platform/read-result.js'
import type { SubscriptionRecord } from '../../lib/record.js'
import type { ReadClaim } from '../../lib/store/store.js'
import { concludeRead } from '../../lib/work/conclude-read.js'
import type { ConcludeEnvironment, Conclusion, Move } from '../../lib/work/conclusion.js'

export function record(purchase_state: string, updated: number): SubscriptionRecord {
  const updated_at = `2026-01-01T00:00:0${updated}.000Z`
  return { uid: 's', business_uid: 'b', purchasable_uid: 'p', purchase_state, updated_at }
}

export function found_(state: string, updated: number): ReadResult {
  return { kind: 'found', record: record(state, updated) }
}

export const REFUSED = { kind: 'refused', code: 'platform_refused' } as const

/** Plays the store for one subscription: it claims the read, and writes each conclusion back. */
export function createReader() {
  const start = Date.parse('2026-01-02T00:00:00Z')
  let now = start
  const claim: ReadClaim = {
    id: 's',
    leaseToken: 't',
    urgency: 1,
    generation: 1,
    settledGeneration: 0,
    candidateBusinessUid: null,
    lapses: 0,
    uninstalledAt: null,
    createdAt: start,
    claimedAt: start,
    progress: null,
    subscription: {
      subscriptionUid: 's',
      businessUid: 'b',
      purchasableUid: null,
      record: null,
      state: null,
      gone: null,
      readAt: null,
      requestedAt: start,
      pending: true,
      verifying: false,
      failure: null,
      refreshAt: start,
      quiet: false,
    },
  }
  return {
    claim,
    start,
    reads(result: ReadResult, more: Partial<ConcludeEnvironment> = {}): Conclusion & { moved?: Move } {
      const stateOf = (of: SubscriptionRecord) =>
        of.purchase_state === 'cancelled' ? 'canceled' : of.purchase_state
      const env = {
        now,
        random: () => 0.5,
        reconcileEveryMs: 24 * HOUR,
        waitMs: 0,
        stateOf,
        hasServedSince: () => true,
        manyVanished: () => false,
        ...more,
      }
      const conclusion = concludeRead(claim, result, env)
      const { found, settled, progress, clearUninstalled } = conclusion
      if (found) {
        Object.assign(claim.subscription, found, { readAt: now })
      }
      if (settled) claim.settledGeneration = claim.generation
      if (clearUninstalled) claim.uninstalledAt = null
      claim.progress = progress
      claim.subscription.verifying = conclusion.verifying ?? false
      claim.subscription.failure = conclusion.failure
      const [moved] = conclusion.moves
      return { ...conclusion, ...(moved ? { moved } : {}) }
    },
    event() {
      claim.generation++
    },
    uninstall() {
      claim.generation++
      claim.uninstalledAt = now
    },
    pass(ms: number) {
      now += ms
    },
    elapsed: () => now - start,
    state: () => claim.subscription.state,
    readAt: () => claim.subscription.readAt,
  }
}
