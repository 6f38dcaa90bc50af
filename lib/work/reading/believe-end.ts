import { MINUTE, SECOND } from '../../base/clock.js'
import type { OtherBusinesses, Store } from '../../store/port/store.js'
import { type Evidence, evidenceOfEnd, failingMs, isNotShown, mayEnd } from './end-evidence.js'
import type { Belief, ReadFacts } from './facts.js'

/** Fewer ends at once than this may be real, even if no other business exists. */
const MANY = 3
/**
 * How many other businesses have to be known for an end that no uninstall and no record announces: a few if the platform
 * shows all of them, else more. So an outage that concerns more than half is noticed before the first end.
 */
const FEWEST_READS = 5
const MOST_READS = 20

/**
 * Judges an end by the other businesses: one business alone has an end, and most businesses together have an outage,
 * whoever announced their ends.
 */
export function believe(
  evidence: Evidence,
  others: OtherBusinesses,
  isLong: boolean,
  isAnnounced = false,
): Belief {
  const { failing, served, isSteady, exist, lately } = others
  // An outage that ends for some before others: those that have just come back failed with this one. An announced end
  // waits for them only while many still fail.
  const waits = evidence !== 'never shown' && (!isAnnounced || failing >= MANY)
  const recovered = waits ? others.recovered : 0
  const together = failing + recovered
  const isMost = together >= MANY && together > served - recovered
  if (isMost || (lately.failing >= MANY && lately.failing > lately.served))
    return isLong && isSteady ? 'believed' : 'many'
  if (evidence !== 'never shown' && !isAnnounced && readsToMake(others) > 0) return 'unproven'
  if (served > 0) return 'believed'
  // Only a served business shows that one that was never read does not exist.
  return exist || evidence === 'never shown' ? 'unproven' : 'believed'
}

/** How many more of the other businesses have to be read. */
function readsToMake({ failing, served, untested }: OtherBusinesses): number {
  const others = failing - 1
  return Math.min(untested, (others > 0 ? MOST_READS : FEWEST_READS) - others - served)
}

/**
 * Asks the store how the other businesses fare, and has some of them read if that is not known yet. It does so
 *
 * - before an end,
 * - in the first minutes of failing reads, so that health shows an outage within minutes,
 * - before a subscription that was never read and is not shown counts as a definite no, and before it is given up. While
 *   no other business was served since its refusal, the platform may refuse everybody, also those who have just bought.
 *
 * Undefined: not asked, because it is too early, or nothing depends on it.
 */
export function createEndCheck(store: Pick<Store, 'otherBusinesses' | 'readOthers'>) {
  async function compare({ claim, env }: ReadFacts, evidence: Evidence | undefined, forMs: number) {
    const others = await store.otherBusinesses(claim, forMs)
    const belief = evidence && believe(evidence, others, forMs >= env.maxStaleMs, isAnnounced(claim))
    if (belief === undefined ? others.failing <= others.served : belief === 'believed') return belief
    const toMake = belief === 'unproven' ? readsToMake(others) : 0
    const [untestedForMs, limit] =
      toMake > 0
        ? [forMs, toMake]
        : [Math.min(forMs, MINUTE), Math.max(FEWEST_READS, others.failing - others.served)]
    await store.readOthers(claim, { which: 'served', untestedForMs, limit: Math.min(MOST_READS, limit) })
    return belief
  }

  /** The no of a subscription that was never read becomes definite, or it is given up. */
  async function compareUnread({ claim }: ReadFacts, refusedMs: number) {
    const others = await store.otherBusinesses(claim, refusedMs)
    // Nobody else can show whether the platform refuses everybody.
    if (!others.exist && others.failing === 1 && others.served === 0) return undefined
    const belief = believe('never shown', others, false)
    if (belief !== 'believed')
      await store.readOthers(claim, { which: 'served', untestedForMs: refusedMs, limit: MANY })
    return belief
  }

  return async function check(read: ReadFacts): Promise<Belief | undefined> {
    const { progress, env, before } = read
    const evidence = evidenceOfEnd(read)
    const since = (time: number | null) => Math.max(0, env.now - (time ?? env.now))
    try {
      if (evidence === 'never shown') return await compareUnread(read, since(progress.refusedAt))
      const refusedMs = since(progress.refusedSince)
      if (before.record === null)
        return before.verifying && isNotShown(read.result) && refusedMs >= LOOK_FROM_MS
          ? await compareUnread(read, refusedMs)
          : undefined
      const failing = failingMs(read)
      const isWatched = mayEnd(read) && failing >= LOOK_FROM_MS && failing <= LOOK_UNTIL_MS
      return evidence || isWatched ? await compare(read, evidence, failing) : undefined
    } catch {
      // Nobody loses access, or gets a definite no, because of an error of the database. The finish of this read reports a
      // lasting one.
      return evidence || before.record === null ? 'unproven' : undefined
    }
  }
}

/**
 * Whether the reads of a subscription failed before this one. Before its first record the platform may just lag behind
 * its event, so only a longer refusal counts.
 */
export function hasFailed({ claim, before, progress, env }: ReadFacts): boolean {
  if (before.record !== null) return claim.failingSince !== null
  return progress.refusedSince !== null && env.now - progress.refusedSince >= LOOK_FROM_MS
}

/**
 * The platform shows a subscription again whose reads had failed. Others that fail are read soon too, and each of those
 * has more read: so after an outage all are served again within minutes, and not each when its own retry is due. Those
 * that were never read follow behind the known ones.
 */
export async function readOthersAgain(store: Pick<Store, 'readOthers'>, claim: ReadFacts['claim']) {
  try {
    await store.readOthers(claim, { which: 'failing', pauseMs: MINUTE, limit: MOST_READS })
  } catch {
    // Their own retries are due later.
  }
}

/** An `update` announces no end: a renewal is one too. */
const isAnnounced = ({ uninstalledAt, endAt }: ReadFacts['claim']) => uninstalledAt !== null || endAt !== null

/**
 * When a known subscription fails without an end in sight, others are read to see whether it fails alone. A refusal of
 * one that was never read counts from then on.
 */
const LOOK_FROM_MS = MINUTE
const LOOK_UNTIL_MS = 10 * MINUTE

/** The pause after an end that was held back: the other businesses are read meanwhile. Undefined: that has not helped. */
export function pauseOfHeldBack(times: number): number | undefined {
  if (times <= 2) return 2 * SECOND
  return times <= 10 ? 20 * SECOND : undefined
}
