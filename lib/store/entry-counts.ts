import type { Engine } from './engine.js'
import { ENTRY_KINDS, ENTRY_STATUSES } from './entries.js'
import { type Connection, type Sql, sql } from './sql.js'
import { COUNTED_UP_TO } from './store.js'

/** Counts of the table `journal`. No statement reads more rows than it counts. */
export function createEntryCounts(engine: Engine) {
  return {
    async counts(db: Connection) {
      const rows = await sql<Record<'pending' | 'retrying' | 'dead' | 'waiting' | 'unrecognised', number>>`
        select
          ${counted(sql`status = 'pending'`)} as pending,
          ${counted(sql`status = 'pending' and attempts > 0`, engine.byIndex('journal_retrying'))} as retrying,
          ${counted(sql`status = 'dead'`)} as dead,
          ${counted(sql`status = 'waiting'`)} as waiting,
          ${counted(sql`status in (${sql.join(ENTRY_STATUSES.map((each) => sql.lit(each)))}) and kind = 'unrecognised'`)}
            as unrecognised`.execute(db)
      const [row] = rows
      if (!row) throw new Error('the server returned no row')
      const { pending, retrying, dead, waiting, unrecognised } = row
      return {
        pending: Number(pending),
        retrying: Number(retrying),
        dead: Number(dead),
        waiting: Number(waiting),
        unrecognised: Number(unrecognised),
        oldestPendingMs: await oldestPendingMs(db),
      }
    },
  }

  async function oldestPendingMs(db: Connection): Promise<number | null> {
    const oldest = ENTRY_KINDS.map(
      (kind) => sql`select * from (
        select received_at from journal where status = 'pending' and kind = ${sql.lit(kind)} order by seq limit 1
      ) as ${sql.ref(kind)}`,
    )
    const rows = await sql<{ age: number | null }>`
      select ${engine.now()} - min(received_at) as age from (${sql.join(oldest, ' union all ')}) as oldest`.execute(
      db,
    )
    const age = rows[0]?.age
    return age === null || age === undefined ? null : Math.max(0, Number(age))
  }
}

function counted(condition: Sql, byIndex = sql``): Sql {
  return sql`(select count(*) from (select 1 from journal ${byIndex} where ${condition} limit ${COUNTED_UP_TO}) as counted)`
}
