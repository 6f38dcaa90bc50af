import type { Engine } from './engine.js'
import { finishLanes } from './finish-lanes.js'
import type { Lanes } from './lanes.js'
import type { LifeCycle } from './life-cycle.js'
import type { LaneClaim } from './store.js'
import type { Transactions } from './transactions.js'

/**
 * A handler begins when its claim is on disk. A claim whose sync failed is returned, at once or before the next claim:
 * otherwise its lease would run out, and count as an end of the process, although no handler was called.
 */
export function createClaimsOnDisk(options: {
  engine: Engine
  transactions: Pick<Transactions, 'write'>
  whileOpen: LifeCycle['whileOpen']
  lanes: Pick<Lanes, 'advance'>
}) {
  const { engine, transactions, whileOpen, lanes } = options
  let unbegun: readonly LaneClaim[] = []

  async function returnAll() {
    if (unbegun.length === 0) return
    const finishes = unbegun.map((claim) => ({ ...claim, results: [], keepLease: false }))
    await transactions.write((trx) => finishLanes({ engine, lanes }, trx, finishes))
    unbegun = []
  }

  /** Makes claims, one call at a time, and resolves when they are on disk. */
  return async function claimOnDisk(claim: () => Promise<readonly LaneClaim[]>): Promise<LaneClaim[]> {
    await returnAll()
    const mark = engine.mark()
    const claims = await claim()
    if (claims.length === 0) return []
    try {
      await whileOpen(() => engine.durable(mark))
    } catch (error) {
      unbegun = claims
      await returnAll().catch(() => {})
      throw error
    }
    return [...claims]
  }
}
