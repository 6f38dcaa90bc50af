import type { Leased, Told, ToldItems } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import type { ToldEntitlementsTable } from '../sql/schema.js'
import { type Connection, sql } from '../sql/sql.js'
import { prepare, run } from '../sql/writes.js'

/**
 * The table `told_entitlements`: the items with which the handlers of the entitlement of a business last succeeded, and whether
 * a call has begun since. Only the holder of its lane writes a row, and a replay.
 */
export function createToldEntitlements(
  engine: Pick<Engine, 'compile' | 'given' | 'queriesOf' | 'forUpdate'>,
) {
  const write = prepare(
    engine,
    { business: 'text', items: 'text' },
    ({ insert, of }) => sql`
      insert into told_entitlements (business_uid, items, uncertain)
      ${insert(sql`${of('business')}, ${of('items')}, 0`)}
      on conflict (business_uid) do update set items = excluded.items`,
  )
  const settle = prepare(
    engine,
    { business: 'text' },
    ({ table }) => sql`
      update told_entitlements set uncertain = 0 from ${table} as given where business_uid = given.business`,
  )
  const doubt = prepare(
    engine,
    { business: 'text' },
    ({ insert, of }) => sql`
      insert into told_entitlements (business_uid, items, uncertain) ${insert(sql`${of('business')}, '[]', 1`)}
      on conflict (business_uid) do update set uncertain = 1`,
  )

  return {
    /** See the port. */
    async of(db: Connection, businessUid: string): Promise<Told> {
      const [row] = await sql<Pick<ToldEntitlementsTable, 'items' | 'uncertain'>>`
        select items, uncertain from told_entitlements where business_uid = ${businessUid}`.execute(db)
      return { items: row ? (JSON.parse(row.items) as string[]) : [], isUncertain: row?.uncertain === 1 }
    },

    /** See the port. The lane stays locked, so that an erasure takes it back before or afterwards. */
    async beginCall(trx: Connection, { id, leaseToken }: Leased, business: string): Promise<boolean> {
      const held = await sql`
        select key from lanes where key = ${id} and lease_token = ${leaseToken} ${engine.forUpdate}`.execute(
        trx,
      )
      if (held.length > 0) await run(engine, trx, doubt([{ business }]))
      return held.length > 0
    },

    /** A person wants the handlers of the business called again. */
    async doubt(trx: Connection, business: string) {
      await run(engine, trx, doubt([{ business }]))
    },

    /** Writes what handlers know now, one for each business. */
    async write(trx: Connection, told: readonly ToldItems[]) {
      if (told.length === 0) return
      const rowOf = ({ businessUid, items }: ToldItems) => ({
        business: businessUid,
        items: JSON.stringify(items),
      })
      const byCall = told.filter(({ isByCall }) => isByCall)
      await run(engine, trx, write(told.map(rowOf)))
      if (byCall.length > 0)
        await run(engine, trx, settle(byCall.map(({ businessUid: business }) => ({ business }))))
    },

    /** Returns the number of deleted rows. */
    async erase(trx: Connection, businessUid: string): Promise<number> {
      const rows = await sql`
        delete from told_entitlements where business_uid = ${businessUid} returning business_uid`.execute(trx)
      return rows.length
    },
  }
}

export type ToldEntitlements = ReturnType<typeof createToldEntitlements>
