import type { Engine } from './engine.js'
import type { Instance, StoreObservation } from './observed.js'
import { sql } from './sql.js'
import type { StoreTime } from './store-time.js'

export type Instances = Pick<StoreObservation, 'reportInstance' | 'forgetInstance' | 'instances'>

/** The table `instances`: a few rows, so that no query of it needs an index. */
export function createInstances(
  engine: Engine,
  { read, write }: Pick<Engine, 'read' | 'write'>,
  offsetOf: StoreTime,
): Instances {
  const { now } = engine

  return {
    reportInstance: ({ id, version, hasWorker, startedAgoMs, forgetMs }) =>
      write(async (trx) => {
        await sql`
          insert into instances (id, version, has_worker, started_at, seen_at)
          values (${id}, ${version}, ${hasWorker ? 1 : 0}, ${now()} - ${Math.trunc(startedAgoMs)}, ${now()})
          on conflict (id) do update set seen_at = excluded.seen_at`.execute(trx)
        // Skips the rows that other instances are writing: instances that were frozen together would wait for each
        // other.
        await sql`
          delete from instances where id in (
            select id from instances
            where id <> ${id} and seen_at < ${now()} - ${Math.trunc(forgetMs)} ${engine.skipLocked}
          )`.execute(trx)
      }),

    forgetInstance: (id) =>
      write(async (trx) => {
        await sql`delete from instances where id = ${id}`.execute(trx)
      }),

    instances: ({ withinMs }) =>
      read(async (db) => {
        const rows = await sql<InstanceRow>`
          select instances.*, ${now()} as now from instances
          where seen_at >= ${now()} - ${Math.trunc(withinMs)}
          order by started_at, id`.execute(db)
        const offset = offsetOf(rows[0]?.now)
        return rows.map(
          ({ id, version, has_worker: hasWorker, started_at: startedAt, seen_at: seenAt }): Instance => ({
            id,
            version,
            hasWorker: Number(hasWorker) === 1,
            startedAt: Number(startedAt) + offset,
            seenAt: Number(seenAt) + offset,
          }),
        )
      }),
  }
}

interface InstanceRow {
  id: string
  version: string
  has_worker: number
  started_at: number
  seen_at: number
  now: number
}
