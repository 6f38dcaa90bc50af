import type { HandledTopics } from '../journal/handled-topics.js'
import { renewLease } from '../leases/leases.js'
import type { Suspects } from '../leases/suspects.js'
import type { LifeCycle, Transactions } from '../life-cycle.js'
import type { Hint, LaneClaim, Store } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import type { StoreTime } from '../sql/store-time.js'
import { createLaneClaims, handedOut } from './claims.js'
import { createLaneFinishes } from './finishes.js'
import { headsOf } from './heads.js'
import type { Lanes } from './lanes.js'

/** The calls of the port for handlers: they lease lanes, write the results of their entries, and name the topics. */
export function createLaneCalls(options: {
  engine: Engine
  transactions: Transactions
  isClosed: LifeCycle['isClosed']
  lanes: Lanes
  topics: HandledTopics
  suspects: Suspects
  offsetOf: StoreTime
  announce(hint: Hint): void
}): Pick<Store, 'claimLanes' | 'claimSuspectLane' | 'renewLane' | 'finishLanes' | 'handleTopics'> {
  const { engine, transactions, isClosed, lanes, topics, suspects, offsetOf, announce } = options
  const { write, whileOpen } = transactions
  const laneClaims = createLaneClaims(engine, lanes, offsetOf)
  const finishLanes = createLaneFinishes(engine, lanes)
  const finish: Store['finishLanes'] = (finishes) => write((trx) => finishLanes(trx, finishes))
  /** Claims whose sync failed. */
  let unbegun: readonly LaneClaim[] = []

  async function returnUnbegun() {
    if (unbegun.length === 0) return
    await finish(unbegun.map((claim) => ({ ...claim, results: [], keepLease: false })))
    unbegun = []
  }

  /**
   * Makes claims, one call at a time, and resolves when they are on disk: a handler must not see what a power cut could
   * still undo. A claim whose sync failed is returned, at once or before the next claim. Otherwise its lease would run out,
   * and count as an end of the process, although no handler was called.
   */
  const claimOnDisk = (claim: () => Promise<LaneClaim[]>) => whileOpen(() => claimNow(claim))

  async function claimNow(claim: () => Promise<LaneClaim[]>): Promise<LaneClaim[]> {
    await returnUnbegun()
    const mark = engine.mark()
    const claims = await claim()
    if (claims.length === 0) return []
    try {
      await engine.durable(mark)
      return claims
    } catch (error) {
      unbegun = claims
      await returnUnbegun().catch(() => {})
      throw error
    }
  }

  return {
    claimLanes: (options) => claimOnDisk(() => laneClaims.claim(transactions, options)),

    async claimSuspectLane({ leaseMs, ...among }) {
      const [claim] = await claimOnDisk(() =>
        write(async (trx) => {
          const begun = await suspects.begin(trx, 'lane', leaseMs, suspects.lanesOf(among))
          if (!begun) return []
          const { id, lapses } = begun
          const rows = (await headsOf(engine, trx, [id], 1)).get(id) ?? []
          const topics = new Set(among.topics)
          const entries = handedOut(rows, { topics, lapses, offset: offsetOf(rows[0]?.now) })
          if (entries.length > 0) return [{ ...begun, entries }]
          // Its head has ended, or has another topic.
          await lanes.advance(trx, [id], rows.length === 0 ? 'all' : 'untried')
          return []
        }),
      )
      return claim
    },

    renewLane: (lane, leaseMs) => write((trx) => renewLease(engine, trx, 'lane', lane, leaseMs)),
    finishLanes: finish,

    async handleTopics(options) {
      const moved = await whileOpen(() => topics.handle(options, transactions, isClosed))
      if (moved) announce({ kind: 'journal' })
    },
  }
}
