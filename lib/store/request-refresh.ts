import type { Given, Script } from './dialect.js'
import type { Engine } from './engine.js'
import {
  BUSINESS_COLUMNS,
  KNOWN_COLUMNS,
  mergeRequests,
  NAMED_COLUMNS,
  type NamedRow,
  RECORD_COLUMNS,
  type Requested,
} from './merge-requests.js'
import { announced, businesses, known, named, uidsOfBusiness, usual } from './request-statements.js'
import { answered, prepare, prepareInsert } from './script.js'
import { sql } from './sql.js'

/** Refresh requests: each adds to the generation of a row, and makes it due as soon as its pause allows a read. */
export function createRefreshRequests(engine: Engine) {
  const requestNamed = prepareInsert(engine, NAMED_COLUMNS, named)
  const requestUsual = prepare(engine, NAMED_COLUMNS, usual)
  const requestKnown = prepare(engine, KNOWN_COLUMNS, known)
  const requestBusinesses = prepare(engine, BUSINESS_COLUMNS, businesses)
  const announceRecords = prepare(engine, RECORD_COLUMNS, announced)
  const lock = prepare(engine, { uid: 'text', business: 'text' }, (given) => locked(engine, given))

  return {
    /** Writes requests: a statement for each kind of request. */
    *request(requests: readonly Requested[]): Script {
      const { named, known, businesses, records } = mergeRequests(requests, Math.floor(engine.clock.now()))
      // The statements run one after the other, so two batches could each wait for rows that the other has changed.
      if (engine.holdNames && known.length + businesses.length + records.length > 0)
        yield lock([
          ...[...named, ...known].map(({ uid }) => ({ uid, business: null })),
          ...businesses.map(({ business }) => ({ uid: null, business })),
        ])
      const unusual = yield* allButUsual(named)
      if (unusual.length > 0) yield requestNamed(unusual)
      if (known.length > 0) yield requestKnown(known)
      if (businesses.length > 0) yield requestBusinesses(businesses)
      if (records.length > 0) yield announceRecords(records)
    },
  }

  /**
   * Writes the usual requests, which are nearly all: those that name a subscription as the store has it. Returns the
   * others. SQLite rewrites the entries of every index that has a column of the update, changed or not, so these get a
   * statement that names few columns.
   */
  function* allButUsual(rows: readonly NamedRow[]): Script<readonly NamedRow[]> {
    if (!engine.rewritesIndexes || rows.length === 0) return rows
    const updated = yield* answered<{ uid: string }>(requestUsual(rows))
    if (updated.length === 0) return rows
    const uids = new Set(updated.map(({ uid }) => uid))
    return rows.filter(({ uid }) => !uids.has(uid))
  }
}

/** Locks the rows of these subscriptions and businesses. Only for PostgreSQL. */
function locked(engine: Engine, { table }: Given) {
  return sql`
    with given as materialized (select * from ${table} as rows)
    select subscription_uid from subscriptions where subscription_uid in (
      select uid from given where uid is not null
      union
      select mine.subscription_uid from given
        cross join lateral (${uidsOfBusiness(sql.ref('given.business'))}) as mine
    ) order by subscription_uid ${engine.forUpdate}`
}

export type RefreshRequests = ReturnType<typeof createRefreshRequests>
