import type { DeadEntry, Pruned } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, sql } from '../sql/sql.js'

/**
 * Runs batches of pruning whose answers may get lost: an entry that one of them has ended as dead is in the result of a later
 * one, because its only report is the result.
 */
export function createToldDead(engine: Pick<Engine, 'isOneOf'>) {
  let untold: readonly DeadEntry[] = []

  async function stillDead(trx: Connection, entries: readonly DeadEntry[]): Promise<DeadEntry[]> {
    if (entries.length === 0) return []
    const rows = await sql<{ id: string }>`
      select id from journal where status = 'dead' and ${engine.isOneOf(
        'id',
        entries.map(({ id }) => id),
      )}`.execute(trx)
    const ids = new Set(rows.map(({ id }) => id))
    return entries.filter(({ id }) => ids.delete(id))
  }

  return async function prune(
    write: Engine['write'],
    batch: (trx: Connection) => Promise<Pruned>,
  ): Promise<Pruned> {
    let ended = untold
    try {
      const pruned = await write(async (trx) => {
        const before = await stillDead(trx, ended)
        const { rows, dead } = await batch(trx)
        ended = [...ended, ...dead]
        return { rows, dead: [...before, ...dead] }
      })
      untold = []
      return pruned
    } catch (error) {
      untold = ended
      throw error
    }
  }
}
