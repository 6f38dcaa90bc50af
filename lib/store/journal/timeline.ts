import { ENTRY_KINDS } from '../port/journal.js'
import type { Timeline, TimelineItem, TimelinePlace } from '../port/store.js'
import type { ClockOffset } from '../sql/clock-offset.js'
import type { Engine } from '../sql/engine.js'
import type { JournalTable } from '../sql/schema.js'
import { type Sql, sql } from '../sql/sql.js'
import { auditUid } from './audit.js'

/**
 * The entries of a business, the audit of its erasures and the outcomes, newest first, merged from a range of an index
 * each. An entitlement has an entry only until it has an outcome: later that shows no more than the change beside it. A page
 * begins exactly where the page before ended. No page misses an outcome that is written later: it will be newer than every page
 * before.
 */
export function createTimeline(engine: Engine, read: Engine['read'], offsetOf: ClockOffset) {
  return async function timelineOf(
    businessUid: string,
    { before, limit }: Timeline,
  ): Promise<TimelineItem[]> {
    const { at, seq, rank } = await placeOf(before)
    const ranges = entriesOf(businessUid).map(
      (condition, i) => sql`
          select * from (
            select received_at as at, 0 as rank, ${COLUMNS} from journal
            where ${condition} and (received_at, seq) < (${at}, ${seq + rank})
            order by received_at desc, seq desc limit ${limit}
          ) as ${sql.ref(`range_${i}`)}`,
    )
    const rows = await read((db) =>
      sql<Row>`
        select items.*, ${engine.now()} as now from (
          ${sql.join(ranges, ' union all ')}
          union all
          select * from (
            select settled_at as at, 1 as rank, ${COLUMNS} from journal
            where business_uid = ${businessUid} and settled_at is not null and kind <> 'action'
              and (settled_at, seq) < (${at}, ${seq})
            order by settled_at desc, seq desc limit ${limit}
          ) as outcomes
        ) as items order by at desc, seq desc, rank desc limit ${limit}`.execute(db),
    )
    const offset = offsetOf(rows[0]?.now)
    return rows.map((row) => asItem(row, offset))
  }

  async function placeOf(before: Timeline['before']): Promise<TimelinePlace> {
    if (before === undefined) return { at: Number.MAX_SAFE_INTEGER, seq: 0, rank: 0 }
    if (typeof before === 'object') return before
    const { now } = await read((db) => sql<{ now: number }>`select ${engine.now()} as now`.one(db))
    return { at: before - offsetOf(now), seq: 0, rank: 0 }
  }
}

/** The ranges of the index `journal_business`, and of the audit. */
function entriesOf(businessUid: string): Sql[] {
  return [
    ...ENTRY_KINDS.map((kind) => {
      const isShown = kind === 'entitlement' ? sql`and status = 'pending' and settled_at is null` : sql``
      return sql`business_uid = ${businessUid} and kind = ${sql.lit(kind)} ${isShown}`
    }),
    sql`business_uid = ${auditUid(businessUid)} and kind = 'action'`,
  ]
}

/** Every change is pending, also if no process has a handler for changes. Other entries are pending only if one has. */
const WAITS = sql`case when status = 'pending' and settled_at is null
  and (kind <> 'change' or exists (select 1 from handlers where topic = 'change')) then 1 else 0 end`

const COLUMNS = sql`seq, id, kind, name, subscription_uid, status, attempts, error, due_at, ${WAITS} as waits,
  case when kind in ('change', 'action') then payload end as payload`

type Row = Pick<
  JournalTable,
  'seq' | 'id' | 'kind' | 'name' | 'subscription_uid' | 'status' | 'attempts' | 'error' | 'due_at'
> & { at: number; rank: 0 | 1; waits: 0 | 1; payload: string | null; now: number }

function asItem(row: Row, offset: number): TimelineItem {
  const isTriedAgain = row.status === 'pending' && row.attempts > 0
  return {
    place: { at: row.at, seq: row.seq, rank: row.rank },
    at: row.at + offset,
    of: row.rank === 0 ? 'entry' : 'outcome',
    entryId: row.id,
    kind: row.kind,
    name: row.name,
    subscriptionUid: row.subscription_uid,
    status: row.status,
    attempts: row.attempts,
    error: row.error,
    dueAt: isTriedAgain && row.due_at !== null ? row.due_at + offset : null,
    isWaiting: row.waits === 1,
    payload: row.payload,
  }
}
