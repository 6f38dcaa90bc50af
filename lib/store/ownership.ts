import { createHash } from 'node:crypto'
import { type Clock, SECOND } from '../base/clock.js'
import { MarketplaceError } from '../base/errors.js'
import type { StoreOwner } from './port/store.js'
import type { Engine } from './sql/engine.js'
import type { StoreOwnerTable } from './sql/schema.js'
import { type Connection, type Sql, sql } from './sql/sql.js'

/** Stands in the place of the owner while a copy into the store has not ended, in front of the id of the copy. */
export const UNFINISHED_COPY = 'unfinished copy '

/** Stands in front of the owner of a store that was copied into another one, until an app opens it again. */
const COPIED = 'copied '

/** What stands in the place of the owner while a store is copied and after it, so that it belongs to no process that is open. */
export const ofCopied = (fingerprint: string) => COPIED + appOf(fingerprint)

/** The app to which a store belongs, also if the store was copied. */
export function appOf<Owner extends string | null | undefined>(fingerprint: Owner) {
  return fingerprint?.startsWith(COPIED) ? fingerprint.slice(COPIED.length) : fingerprint
}

/**
 * Keeps a second app off a store: it would read the subscriptions of the first with the wrong token.
 *
 * | The store belongs to | Opening by this app |
 * |---|---|
 * | no app, or this one | takes it |
 * | another app, whose reads have all failed, and no app before it has read | takes it: a wrong configuration was corrected |
 * | another app | rejects, unless the owner adopts the store |
 * | nobody, because a copy into it has not ended | rejects |
 * | this app, and was copied into another store | takes it; a process that was open during the copy has lost it |
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
  /** Makes the error once the store does not belong to this process any more. */
  let lost: (() => MarketplaceError) | undefined
  let checkedAt = 0
  /** The check under way, for all calls that wait for one. */
  let checking: Promise<void> | undefined

  function ownerRow(lock: Sql) {
    return sql<Pick<StoreOwnerTable, 'fingerprint' | 'has_read'>>`
      select fingerprint, has_read from store_owner where id = 1 ${lock}`
  }

  async function look(given: StoreOwner) {
    const { fingerprint } = given
    const beganAt = clock.monotonic()
    const [row] = await engine.read((db) => ownerRow(sql``).execute(db))
    checkedAt = beganAt
    const isOurs = row?.fingerprint === fingerprint
    lost = isOurs ? undefined : appOf(row?.fingerprint) === fingerprint ? copied : () => refused(given)
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
      if (row?.fingerprint && appOf(row.fingerprint) !== given.fingerprint && row.has_read === 1)
        throw refused(given)
    },

    /** Rejects `store_of_another_app`, and `store_unavailable` while a copy into the store has not ended. */
    async take(given: StoreOwner) {
      const { fingerprint, adopt } = given
      await engine.write(async (trx) => {
        await sql`insert into store_owner (id, has_read) values (1, 0) on conflict (id) do nothing`.execute(
          trx,
        )
        const [row] = await ownerRow(engine.forUpdate).execute(trx)
        hasRead = row?.has_read === 1
        if (row?.fingerprint === fingerprint) return
        if (row?.fingerprint?.startsWith(UNFINISHED_COPY)) throw unfinishedCopy()
        const isOfOther = row?.fingerprint && appOf(row.fingerprint) !== fingerprint
        const isTaken = isOfOther && !(await hasOnlyFailed(trx))
        if (isTaken && !adopt) throw refused(given)
        await sql`update store_owner set fingerprint = ${fingerprint} where id = 1`.execute(trx)
      })
      owner = given
      lost = undefined
      checkedAt = clock.monotonic()
    },

    /**
     * Rejects once another app has taken the store, or while it was copied and nobody has opened it since. It looks once a
     * second.
     */
    async check(): Promise<void> {
      if (!owner) return
      if (clock.monotonic() - checkedAt >= SECOND) {
        checking ??= look(owner).finally(() => {
          checking = undefined
        })
        await checking
      }
      if (lost) throw lost()
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

function unfinishedCopy(): MarketplaceError {
  return new MarketplaceError(
    'store_unavailable',
    'Cannot use the store: a copy into it has not ended, and it contains nothing yet. If the copy is not running any more, ' +
      'repeat the same `marketplace-webhooks copy`. To begin without the copied data, use another empty database',
  )
}

function copied(): MarketplaceError {
  return new MarketplaceError(
    'store_unavailable',
    'Cannot use the store: it was copied into another one, or a copy is under way. Stop this process, and start the app on the other ' +
      'store. To continue with this one, start the app on it again',
  )
}

export type Ownership = ReturnType<typeof createOwnership>

/** The app as a store records it: a hash without a secret. All paths at one origin are the same platform. */
export function ownerOf(app: {
  clientId: string
  baseUrl: string
  purchasableUids?: readonly string[]
  adopt: boolean
}): StoreOwner {
  const { clientId, purchasableUids = [], adopt } = app
  const { origin } = new URL(app.baseUrl)
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([clientId, origin]))
    .digest('hex')
  return { fingerprint, label: `app.clientId ${clientId} at ${origin}`, purchasableUids, adopt }
}
