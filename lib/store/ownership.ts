import { createHash } from 'node:crypto'
import { type Clock, SECOND } from '../base/clock.js'
import { MarketplaceError } from '../base/errors.js'
import type { StoreOwner } from './port/store.js'
import type { Engine } from './sql/engine.js'
import type { StoreOwnerTable } from './sql/schema.js'
import { type Connection, type Sql, sql } from './sql/sql.js'

/**
 * Keeps a second app off a store: it would read the subscriptions of the first with the wrong token.
 *
 * | The store belongs to | Opening by this app |
 * |---|---|
 * | no app, or this one | takes it |
 * | another app, whose reads have all failed | takes it: a wrong configuration was corrected |
 * | another app | rejects, unless the owner adopts the store |
 *
 * Every call of the store first checks once a second, outside of its transaction, that the store still belongs to this
 * app. So an app whose store was taken over may write for a second more, and end the
 * transaction that it has begun.
 */
export function createOwnership(
  engine: Pick<Engine, 'read' | 'write' | 'columns' | 'forUpdate'>,
  clock: Clock,
) {
  let owner: StoreOwner | undefined
  /** Whether a subscription has been read with this app's token. */
  let hasRead = false
  let isLost = false
  let checkedAt = 0
  /** The check under way, for all calls that wait for one. */
  let checking: Promise<void> | undefined

  function ownerRow(lock: Sql) {
    return sql<Pick<StoreOwnerTable, 'fingerprint' | 'has_read'>>`
      select fingerprint, has_read from store_owner where id = 1 ${lock}`
  }

  async function look({ fingerprint }: StoreOwner) {
    const beganAt = clock.monotonic()
    const [row] = await engine.read((db) => ownerRow(sql``).execute(db))
    checkedAt = beganAt
    isLost = row?.fingerprint !== fingerprint
    hasRead = row?.has_read === 1
  }

  /** Whether the owner has tried to read and never succeeded, so that its configuration is wrong. */
  async function hasOnlyFailed(trx: Connection): Promise<boolean> {
    if (hasRead) return false
    const rows = await sql`
      select 1 as one from subscriptions where unread > 0 and failure is not null limit 1`.execute(trx)
    return rows.length > 0
  }

  return {
    /**
     * Before a migration: rejects `store_of_another_app` when another app has read subscriptions into this database, which
     * may be of any version. All other cases are those of `take`, after it.
     */
    async requireNoOther(trx: Connection, given: StoreOwner | undefined) {
      if (!given || given.adopt) return
      const columns = await engine.columns.execute(trx)
      const has = (column: string) =>
        columns.some(({ table, name }) => table === 'store_owner' && name === column)
      // Early forms of the table had no such column, or another name for it.
      const read = ['has_read', 'settled'].find(has)
      if (!read || !has('fingerprint')) return
      const [row] = await sql<Pick<StoreOwnerTable, 'fingerprint' | 'has_read'>>`
        select fingerprint, ${sql.ref(read)} as has_read from store_owner where id = 1`.execute(trx)
      if (row?.fingerprint && row.fingerprint !== given.fingerprint && row.has_read === 1)
        throw refused(given)
    },

    /** Rejects `store_of_another_app`. */
    async take(given: StoreOwner) {
      const { fingerprint, adopt } = given
      await engine.write(async (trx) => {
        await sql`insert into store_owner (id, has_read) values (1, 0) on conflict (id) do nothing`.execute(
          trx,
        )
        const [row] = await ownerRow(engine.forUpdate).execute(trx)
        hasRead = row?.has_read === 1
        if (row?.fingerprint === fingerprint) return
        const isTaken = row?.fingerprint && !(await hasOnlyFailed(trx))
        if (isTaken && !adopt) throw refused(given)
        await sql`update store_owner set fingerprint = ${fingerprint} where id = 1`.execute(trx)
      })
      owner = given
      isLost = false
      checkedAt = clock.monotonic()
    },

    /** Rejects once another app has taken the store. It looks once a second. */
    async check(): Promise<void> {
      if (!owner) return
      if (clock.monotonic() - checkedAt >= SECOND) {
        checking ??= look(owner).finally(() => {
          checking = undefined
        })
        await checking
      }
      if (isLost) throw refused(owner)
    },

    /** From now on no other app may take the store. Part of the transaction that writes a record read with this app's token. */
    async recordRead(trx: Connection) {
      if (!owner || hasRead) return
      const rows = await sql`
        update store_owner set has_read = 1 where id = 1 and fingerprint = ${owner.fingerprint} returning id`.execute(
        trx,
      )
      if (rows.length === 0) throw refused(owner)
    },
  }
}

function refused({ label }: StoreOwner): MarketplaceError {
  return new MarketplaceError(
    'store_of_another_app',
    `Cannot use the store: it holds the subscriptions of another app, not those of ${label}. Give each app a file, a ` +
      'database or a schema of its own. If app.clientId or platform.baseUrl was changed on purpose, start once with ' +
      'the option adoptStore: true',
  )
}

export type Ownership = ReturnType<typeof createOwnership>

/** The app as a store records it: a hash without a secret. All paths at one origin are the same platform. */
export function ownerOf(app: { clientId: string; baseUrl: string; adopt: boolean }): StoreOwner {
  const { clientId, adopt } = app
  const { origin } = new URL(app.baseUrl)
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([clientId, origin]))
    .digest('hex')
  return { fingerprint, label: `app.clientId ${clientId} at ${origin}`, adopt }
}
