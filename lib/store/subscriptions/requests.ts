import type { Given, Write } from '../sql/dialect.js'
import type { Engine } from '../sql/engine.js'
import { sql } from '../sql/sql.js'
import { prepare } from '../sql/writes.js'
import {
  BUSINESS_COLUMNS,
  KNOWN_COLUMNS,
  mergeRequests,
  NAMED_COLUMNS,
  RECORD_COLUMNS,
  type Requested,
} from './merge-requests.js'
import { announced, businesses, known, named, uidsOfBusiness } from './request-statements.js'

/** Refresh requests: each adds to the generation of a row, and makes it due as soon as its pause allows a read. */
export function createRefreshRequests(engine: Engine) {
  const requestNamed = prepare(engine, NAMED_COLUMNS, named, { keepsPlan: true })
  const requestKnown = prepare(engine, KNOWN_COLUMNS, known)
  const requestBusinesses = prepare(engine, BUSINESS_COLUMNS, businesses)
  const announceRecords = prepare(engine, RECORD_COLUMNS, announced)
  const lock = prepare(engine, { uid: 'text', business: 'text' }, (given) => locked(engine, given))

  return {
    /** The writes of requests: one for each kind of request. */
    request(requests: readonly Requested[]): Write[] {
      const { named, known, businesses, records } = mergeRequests(requests, Math.floor(engine.clock.now()))
      const writes: Write[] = []
      // The statements run one after the other, so two batches could each wait for rows that the other has changed.
      if (engine.holdNames && known.length + businesses.length + records.length > 0)
        writes.push(
          lock([
            ...[...named, ...known].map(({ uid }) => ({ uid, business: null })),
            ...businesses.map(({ business }) => ({ uid: null, business })),
          ]),
        )
      if (named.length > 0) writes.push(requestNamed(named))
      if (known.length > 0) writes.push(requestKnown(known))
      if (businesses.length > 0) writes.push(requestBusinesses(businesses))
      if (records.length > 0) writes.push(announceRecords(records))
      return writes
    },
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
