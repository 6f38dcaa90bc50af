import { createClaimsOnDisk } from './claims-on-disk.js'
import type { Engine } from './engine.js'
import type { Lanes } from './lanes.js'
import type { LifeCycle } from './life-cycle.js'
import { sql } from './sql.js'
import type { Store, SuspectKind } from './store.js'
import type { StoreTime } from './store-time.js'
import { createSuspectLanes } from './suspect-lanes.js'
import { createSuspectReads } from './suspect-reads.js'
import type { Transactions } from './transactions.js'

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
