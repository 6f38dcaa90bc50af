import { MINUTE } from '../clock.js'
import type { Store } from '../store/store.js'
import { believe } from './believe-end.js'
import type { Belief } from './conclusion.js'
import type { ReadFacts } from './read-facts.js'

/** From then on the other businesses are compared: before the last verification, so that these are read meanwhile. */
const LOOK_FROM_MS = MINUTE
/** The subscriptions of others that are read then, if none was served since. As many show an outage in health. */
const READ = 3

/**
 * Asks the store how the other businesses fare, before a subscription that was never read and is not shown counts as a
 * definite no. While no other business was served since its first refusal, the platform may refuse everybody, also
 * those who have just bought. Undefined: not asked, because it is too early, or the no is definite already.
 */
export function createUnreadCheck(store: Pick<Store, 'otherBusinesses' | 'readOthers'>) {
  return async function check({
    claim,
    before,
    progress,
    result,
    env,
  }: ReadFacts): Promise<Belief | undefined> {
    const refusedMs = Math.max(0, env.now - (progress.refusedSince ?? env.now))
    const isAnswer = ['missing', 'refused', 'token_refused'].includes(result.kind)
    if (before.record !== null || !before.verifying || !isAnswer || refusedMs < LOOK_FROM_MS) return undefined
    try {
      const others = await store.otherBusinesses(claim, refusedMs)
      // Nobody else can show whether the platform refuses everybody.
      if (!others.exist && others.failing === 1) return undefined
      const belief = believe('never shown', others, false)
      if (belief !== 'believed')
        await store.readOthers(claim, { which: 'served', unreadForMs: refusedMs, limit: READ })
      return belief
    } catch {
      // Nobody gets a definite no because of an error of the database.
      return 'unproven'
    }
  }
}
