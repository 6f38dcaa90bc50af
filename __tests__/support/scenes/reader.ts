import { HOUR, systemClock } from '../../../lib/base/clock.js'
import type { SubscriptionRecord } from '../../../lib/base/record.js'
import { createOwnRule, type EntitledWhen } from '../../../lib/entitlement/own-rule.js'
import type { ReadResult } from '../../../lib/platform/read-result.js'
import type { ReadClaim, Subscription } from '../../../lib/store/port/store.js'
import { concludeRead } from '../../../lib/work/reading/conclude-read.js'
import { evidenceOfEnd } from '../../../lib/work/reading/end-evidence.js'
import {
  type ConcludeEnvironment,
  type Conclusion,
  type Move,
  readFacts,
} from '../../../lib/work/reading/facts.js'

export function record(purchase_state: string, updated: number): SubscriptionRecord {
  const updated_at = `2026-01-01T00:00:0${updated}.000Z`
  return { uid: 's', business_uid: 'b', purchasable_uid: 'p', purchase_state, updated_at }
}

export function found_(state: string, updated: number): ReadResult {
  return { kind: 'found', record: record(state, updated) }
}

const START = Date.parse('2026-01-01T00:00:30Z')

/** A subscription that an event has named and no read has shown. */
export function subscriptionOf(more: Partial<Subscription> = {}): Subscription {
  return {
    subscriptionUid: 's',
    businessUid: 'b',
    purchasableUid: null,
    record: null,
    state: null,
    gone: null,
    readAt: null,
    triedAt: null,
    requestedAt: START,
    owedSince: START,
    generation: 1,
    settledGeneration: 0,
    pending: true,
    verifying: false,
    failure: null,
    refreshAt: START,
    quiet: false,
    entitles: false,
    ...more,
  }
}

/** The option `entitledWhen` as the rules of a decision have it. */
export const ruled = (entitledWhen: EntitledWhen) =>
  createOwnRule({ entitledWhen, clock: systemClock }).answer

export const REFUSED = { kind: 'refused', code: 'platform_refused' } as const

const ANSWERS = ['platform_refused', 'platform_record_mismatch', 'token_refused', 'platform_record_missing']

/** A reader whose first read has shown this state. */
export function createKnown(state = 'purchased', updated = 1) {
  const reader = createReader()
  reader.reads(found_(state, updated))
  return reader
}

/** Plays the store for one subscription: it claims the read, and writes each conclusion back. */
export function createReader() {
  const start = START
  let now = start
  const claim: ReadClaim = {
    id: 's',
    leaseToken: 't',
    urgency: 1,
    cause: 'event',
    generation: 1,
    settledGeneration: 0,
    candidateBusinessUid: null,
    lapses: 0,
    uninstalledAt: null,
    failingSince: null,
    updateAt: null,
    businessUpdateAt: null,
    endAt: null,
    createdAt: start,
    claimedAt: start,
    leaseTimeBehindMs: 0,
    progress: null,
    subscription: subscriptionOf(),
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
        maxStaleMs: 72 * HOUR,
        ...more,
      } satisfies ConcludeEnvironment as ConcludeEnvironment
      // Whoever states no belief is believed: the other businesses are served.
      const evidence = evidenceOfEnd(readFacts(claim, result, env))
      const isAsked = evidence !== undefined || claim.subscription.record === null
      const belief = isAsked ? (env.belief ?? 'believed') : undefined
      const conclusion = concludeRead(claim, result, { ...env, belief })
      const { found, settled, failure, progress, clearUninstalled, clearUpdate, clearEnd } = conclusion
      if (settled && failure === null) claim.failingSince = null
      else if (ANSWERS.includes(failure ?? '') && claim.subscription.record) claim.failingSince ??= now
      if (clearUpdate) claim.updateAt = null
      if (clearEnd) claim.endAt = null
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
    update() {
      claim.generation++
      claim.updateAt ??= now
    },
    showsEnd() {
      claim.generation++
      claim.endAt = now
      claim.updateAt ??= now
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
