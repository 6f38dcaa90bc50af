import { finishLanes } from './lanes/finishes.js'
import type { Lanes } from './lanes/lanes.js'
import { createSuspectLanes } from './lanes/suspects.js'
import type { LifeCycle, Transactions } from './life-cycle.js'
import type { LaneClaim, Store, SuspectKind } from './port/store.js'
import type { Engine } from './sql/engine.js'
import { sql } from './sql/sql.js'
import type { StoreTime } from './sql/store-time.js'
import { createSuspectReads } from './subscriptions/suspects.js'

/** The calls of the port for suspects: work whose lease ran out, which is done alone. */
export function createSuspectCalls(options: {
  engine: Engine
  transactions: Transactions
  whileOpen: LifeCycle['whileOpen']
  lanes: Lanes
  offsetOf: StoreTime
}): Pick<Store, 'dueSuspect' | 'claimSuspectLane' | 'claimSuspectRead'> {
  const { engine, transactions, whileOpen, lanes, offsetOf } = options
  const { read, write } = transactions
  const suspectLanes = createSuspectLanes(engine, lanes, offsetOf)
  const suspectReads = createSuspectReads(engine, offsetOf)
  const claimOnDisk = createClaimsOnDisk({ engine, transactions, whileOpen, lanes })

  return {
    dueSuspect: ({ kinds, ...lanesOf }) =>
      read(async (db) => {
        const queries = {
          lane: () => suspectLanes.fewestLapses(lanesOf),
          read: () => suspectReads.fewestLapses(),
        }
        const each = kinds.map(
          (kind) =>
            sql`select ${sql.lit(kind)} as kind, lapses from (${queries[kind]()}) as ${sql.ref(kind)}`,
        )
        const rows = await sql<{ kind: SuspectKind; lapses: number | null }>`
          select kind, lapses from (${sql.join(each, ' union all ')}) as suspects
          where lapses is not null order by lapses, kind limit 1`.execute(db)
        return rows[0]?.kind ?? null
      }),

    async claimSuspectLane(options) {
      const [claim] = await claimOnDisk(async () => {
        const claimed = await write((trx) => suspectLanes.claim(trx, options))
        return claimed ? [claimed] : []
      })
      return claim
    },

    claimSuspectRead: ({ leaseMs }) => write((trx) => suspectReads.claim(trx, leaseMs)),
  }
}

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
