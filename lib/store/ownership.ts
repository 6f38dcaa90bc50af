import { type Clock, SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import type { Script } from './dialect.js'
import type { Engine } from './engine.js'
import { prepareQuestion } from './script.js'
import { type Connection, sql } from './sql.js'
import type { StoreOwner } from './store-owner.js'

/**
 * Keeps two apps off one store: each would read the other's subscriptions with the wrong token.
 *
 * | The store's row | What opening does |
 * |---|---|
 * | none, or this app's | takes it |
 * | another app's, whose reads have failed and none succeeded | takes it: a wrong configuration was put right |
 * | another app's | refuses, unless the owner adopts it |
 *
 * Until the first subscription is read another app may still take the store, so every transaction that writes checks
 * the row first and holds it: many may at once, but none beside one that takes the store. After that only `adopt` can
 * take it, which is looked for once a second.
 */
export function createOwnership(
  engine: Pick<Engine, 'write' | 'forUpdate' | 'forKeyShare' | 'now' | 'compile'>,
  clock: Clock,
) {
  let owner: StoreOwner | undefined
  let isSettled = false
  let isLost = false
  let checkedAt = 0

  function looked(lock: unknown) {
    return sql<{ fingerprint: string | null; settled: number }>`
      select fingerprint, settled from store_owner where id = 1 ${lock}`
  }

  const ask = prepareQuestion(engine, looked(sql``))
  const askAndHold = prepareQuestion(engine, looked(engine.forKeyShare))

  /** Whether the owner's configuration has let no read succeed, of those it tried. */
  async function isDisproved(trx: Connection, hasRead: boolean): Promise<boolean> {
    if (hasRead) return false
    const rows = await sql`
      select 1 as one from subscriptions where unread > 0 and failure is not null limit 1`.execute(trx)
    return rows.length > 0
  }

  return {
    /** Rejects `store_of_another_app`. */
    async claim(given: StoreOwner) {
      const { fingerprint, adopt } = given
      await engine.write(async (trx) => {
        await sql`insert into store_owner (id, settled) values (1, 0) on conflict (id) do nothing`.execute(
          trx,
        )
        const [row] = await looked(engine.forUpdate).execute(trx)
        isSettled = row?.settled === 1
        if (row?.fingerprint === fingerprint) return
        const isOthers = row?.fingerprint && !(await isDisproved(trx, isSettled))
        if (isOthers && !adopt) throw refused(given)
        await sql`update store_owner set fingerprint = ${fingerprint} where id = 1`.execute(trx)
      })
      owner = given
      isLost = false
      checkedAt = clock.monotonic()
    },

    /** For the start of every transaction; `writes` where it changes anything. Rejects once another app has taken the store. */
    *check(writes: boolean): Script {
      if (!owner) return
      const mustLock = writes && !isSettled
      const now = clock.monotonic()
      if (!mustLock && now - checkedAt < SECOND) {
        if (isLost) throw refused(owner)
        return
      }
      const [row] = yield* mustLock ? askAndHold() : ask()
      checkedAt = now
      isLost = row?.fingerprint !== owner.fingerprint
      if (isLost) throw refused(owner)
      isSettled = row?.settled === 1
    },

    /** Writes the row and changes nothing that matters: whether a write succeeds is all that a probe asks. */
    async touch(trx: Connection) {
      await sql`insert into store_owner (id, settled, probed_at) values (1, 0, ${engine.now()})
        on conflict (id) do update set probed_at = excluded.probed_at`.execute(trx)
    },

    /** In the transaction that keeps a record read with this app's token. */
    async settle(trx: Connection) {
      if (owner && !isSettled) await sql`update store_owner set settled = 1 where id = 1`.execute(trx)
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
