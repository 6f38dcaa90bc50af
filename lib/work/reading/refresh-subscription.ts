import type { Clock } from '../../base/clock.js'
import type { SubscriptionRecord } from '../../base/record.js'
import type { ReadResult } from '../../platform/read-result.js'
import type { ReadClaim, Store } from '../../store/port/store.js'
import { writeWhileLeased } from '../leases/lease.js'
import { type AccessOf, entitlementsOf, withAccess } from './access.js'
import { createEndCheck, hasFailed, readOthersAgain } from './believe-end.js'
import { concludeRead } from './conclude-read.js'
import { isNotShown } from './end-evidence.js'
import { businessIn, type Conclusion, readFacts, untouched } from './facts.js'
import type { createReadOutcomes } from './outcomes.js'
import { changeOf } from './purchase-change.js'

export interface ReadingOptions {
  store: Pick<Store, 'finishRead' | 'otherBusinesses' | 'readOthers'>
  read(request: { subscriptionUid: string; businessUid: string; signal: AbortSignal }): Promise<ReadResult>
  stateOf(record: SubscriptionRecord): string | null
  accessOf: AccessOf
  reconcileEveryMs: number
  /** See `ConcludeEnvironment`. */
  maxStaleMs: number
  /** How long callers wait for the first read of a new subscription. */
  waitMs: number
  clock: Clock
  random?: () => number
  /** Called after every read that was written. */
  onRead?(claim: ReadClaim, result: ReadResult, conclusion: Conclusion): void
}

/** One leased read from start to finish: reads the subscription, concludes, and writes the conclusion. */
export function createRefreshSubscription(
  options: ReadingOptions & { outcomes: Pick<ReturnType<typeof createReadOutcomes>, 'note'> },
) {
  const { store, read, stateOf, accessOf, reconcileEveryMs, maxStaleMs, waitMs, outcomes } = options
  const { clock, random = Math.random, onRead = () => {} } = options
  const checkEnd = createEndCheck(store)

  /** Reads with the business of the row. If that shows no record, reads with the candidate business too. */
  async function readFor(claim: ReadClaim, signal: AbortSignal) {
    const { subscriptionUid, businessUid } = claim.subscription
    const beganAt = clock.monotonic()
    const result = await read({ subscriptionUid, businessUid, signal })
    if (signal.aborted) return { result }
    const note = (business: string, result: ReadResult) =>
      outcomes.note(business, result, claim.subscription.record === null && result.kind !== 'found', beganAt)
    note(businessUid, result)
    if (!isNotShown(result)) return { result }
    const candidate = businessIn(result, claim.subscription) ?? claim.candidateBusinessUid
    if (candidate === null || candidate === businessUid) return { result }
    // Only a record that names this very business counts: the client discards any other.
    const ofCandidate = await read({ subscriptionUid, businessUid: candidate, signal })
    if (signal.aborted) return { result }
    note(candidate, ofCandidate)
    if (ofCandidate.kind === 'found') return { result: ofCandidate }
    return candidate === claim.candidateBusinessUid ? { result, ofCandidate } : { result }
  }

  /** Makes the subscription due again at once. Without the lease this changes nothing. */
  async function giveBack(claim: ReadClaim) {
    await store.finishRead(claim, untouched(claim))
  }

  return {
    giveBack,

    /** Calls `onWriting` once the conclusion is being written. Undefined: no conclusion was written. */
    async refresh(
      claim: ReadClaim,
      signal: AbortSignal,
      onWriting: () => void,
    ): Promise<Conclusion | undefined> {
      const { result, ofCandidate } = await readFor(claim, signal)
      if (signal.aborted) {
        await giveBack(claim)
        return undefined
      }
      const env = { now: clock.now(), random, reconcileEveryMs, maxStaleMs, waitMs, stateOf, ofCandidate }
      const facts = readFacts(claim, result, env)
      const belief = await checkEnd(facts)
      const conclusion = withAccess(claim, concludeRead(claim, result, { ...env, belief }), {
        accessOf,
        now: clock.now(),
      })
      const { moves, ...finish } = conclusion
      const written = {
        ...finish,
        changes: moves.map((move) => changeOf(claim, move, finish, clock)),
        entitlements: entitlementsOf(claim, finish, clock),
      }
      const isHeld = writeWhileLeased(() => store.finishRead(claim, written), signal, clock)
      onWriting()
      if (!(await isHeld)) return undefined
      onRead(claim, result, conclusion)
      if (result.kind === 'found' && hasFailed(facts)) await readOthersAgain(store, claim)
      return conclusion
    },
  }
}
