import { SECOND } from '../../../base/clock.js'
import { ENTRY_KINDS, ENTRY_STATUSES } from '../../port/journal.js'
import type { Engine } from '../engine.js'
import type { HandlersTable, JournalTable, LanesTable, SearchesTable, SubscriptionsTable } from '../schema.js'
import { type Sql, sql } from '../sql.js'

/**
 * How a column is copied. `date`: a time in the store's time of dates, which becomes that of the target. `lease`: the same
 * in the time of leases. `due`: a due time; of a leased row the end of its lease, which has come. Times of other clocks are
 * numbers like any other.
 */
type Kind = 'text' | 'number' | 'date' | 'lease' | 'due'

const SUBSCRIPTIONS: Record<keyof SubscriptionsTable, Kind> = {
  subscription_uid: 'text',
  business_uid: 'text',
  candidate_business_uid: 'text',
  purchasable_uid: 'text',
  record: 'text',
  unread: 'number',
  state: 'text',
  gone: 'text',
  read_at: 'date',
  generation: 'number',
  settled_generation: 'number',
  requested_at: 'date',
  owed_since: 'date',
  refresh_at: 'due',
  not_before: 'date',
  urgency: 'number',
  cause: 'number',
  verifying: 'number',
  lease_token: 'text',
  finished_by: 'text',
  suspect: 'number',
  lapses: 'number',
  failure: 'text',
  // Its times are relative to `created_at`.
  progress: 'text',
  // A date of the platform, and one of the wall clock of the process that received it.
  install_at: 'number',
  install_arrived_at: 'number',
  uninstalled_at: 'date',
  failing_since: 'date',
  served_since: 'date',
  update_at: 'date',
  end_at: 'date',
  quiet_until_read: 'number',
  entitles: 'number',
  created_at: 'date',
}

const SEARCHES: Record<keyof SearchesTable, Kind> = {
  business_uid: 'text',
  asked: 'number',
  by_install: 'number',
  search_at: 'due',
  searched_at: 'date',
  wanted_at: 'date',
  generation: 'number',
  settled_generation: 'number',
  doubted_at: 'date',
  failures: 'number',
  failure: 'text',
  lease_token: 'text',
}

/** The target numbers the entries itself, in the same order. */
const JOURNAL: Record<Exclude<keyof JournalTable, 'seq'>, Kind> = {
  id: 'text',
  kind: 'text',
  name: 'text',
  topic: 'text',
  key: 'text',
  business_uid: 'text',
  subscription_uid: 'text',
  status: 'text',
  attempts: 'number',
  error: 'text',
  received_at: 'date',
  due_at: 'date',
  settled_at: 'date',
  tried_under: 'text',
  issues: 'text',
  cause: 'text',
  secret: 'text',
  stack: 'text',
  unread: 'number',
  payload: 'text',
}

const LANES: Record<keyof LanesTable, Kind> = {
  key: 'text',
  topic: 'text',
  due_at: 'due',
  lease_token: 'text',
  lapses: 'number',
  suspect: 'number',
  unread: 'number',
}

const HANDLERS: Record<keyof HandlersTable, Kind> = {
  topic: 'text',
  seen_at: 'lease',
  rescued_at: 'lease',
  rescue_from: 'lease',
}

/** A table to copy, by a unique key. `page`: the keys of the next rows in their order, after a place. */
export interface CopiedTable {
  name: string
  key: string
  columns: Record<string, Kind>
  start: string | number
  page(from: Engine, after: string | number): Sql<{ key: string; place: string | number; bytes: number }>
}

/** The tables in the order of the copy, apart from `platform_facts` and `store_owner`, which end the copy. */
export const COPIED_TABLES: readonly CopiedTable[] = [
  byKey('subscriptions', 'subscription_uid', SUBSCRIPTIONS, sql`coalesce(octet_length(record), 0)`),
  { name: 'journal', key: 'id', columns: JOURNAL, start: 0, page: pageOfJournal },
  byKey('lanes', 'key', LANES),
  byKey('handlers', 'topic', HANDLERS),
  byKey('searches', 'business_uid', SEARCHES),
]

function byKey(name: string, key: string, columns: Record<string, Kind>, bytes = sql`0`): CopiedTable {
  const column = sql.ref(key)
  const page: CopiedTable['page'] = (_, after) => sql`
    select ${column} as key, ${column} as place, ${bytes} as bytes from ${sql.ref(name)}
    where ${column} > ${after} order by ${column} limit ${BATCH}`
  return { name, key, columns, start: '', page }
}

/** Merged from one range of an index for each status and kind, because no index has the order of all. */
function pageOfJournal(from: Engine, after: string | number): ReturnType<CopiedTable['page']> {
  const ranges = statusesAndKinds().map(
    (condition, i) => sql`select * from (
      select status, kind, seq from journal ${from.byIndex('journal_status')}
      where ${condition} and seq > ${after} order by seq limit ${BATCH}
    ) as ${sql.ref(`range_${i}`)}`,
  )
  return sql`
    select journal.id as key, journal.seq as place, octet_length(journal.payload) as bytes from (
      select * from (${sql.join(ranges, ' union all ')}) as ranges order by seq limit ${BATCH}
    ) as oldest join journal
      on journal.status = oldest.status and journal.kind = oldest.kind and journal.seq = oldest.seq
    order by journal.seq`
}

const statusesAndKinds = () =>
  ENTRY_STATUSES.flatMap((status) => ENTRY_KINDS.map((kind) => ofStatus(status, kind)))
/** A condition that the index `journal_status` answers. */
export const ofStatus = (status: string, kind: string) =>
  sql`status = ${sql.lit(status)} and kind = ${sql.lit(kind)}`

/** The rows of one statement. On PostgreSQL a statement may take 5 s, and memory has one batch. */
export const BATCH = 500

/** A row of any of the tables. */
export type Row = Record<string, string | number | null>

/** What the clock of a store shows, in its two times. */
export interface Times {
  now: number
  lease_now: number
}

export const timesOf = (engine: Pick<Engine, 'now' | 'leaseNow'>) =>
  sql<Times>`select ${engine.now()} as now, ${engine.leaseNow()} as lease_now`

/**
 * Returns a row with its times as the target would have written them, whose clock showed `ours` when the source's
 * showed `theirs`.
 */
export function inOtherTimes(theirs: Times, ours: Times): (table: CopiedTable, row: Row) => Row {
  // Less than a second is the time that the two queries take, and dates stay as they are.
  const ahead = (ms: number) => (Math.abs(ms) > SECOND ? ms : 0)
  const [dates, leases] = [ahead(ours.now - theirs.now), ahead(ours.lease_now - theirs.lease_now)]

  function timeOf(value: Row[string], kind: Kind, isLeased: boolean) {
    if (value === null || typeof value === 'string') return value
    if (kind === 'due') return isLeased ? ours.lease_now : value + dates
    return kind === 'date' ? value + dates : kind === 'lease' ? value + leases : value
  }

  return ({ columns }, row) => {
    const isLeased = (row.lease_token ?? null) !== null
    return Object.fromEntries(
      Object.entries(columns).map(([name, kind]) => [name, timeOf(row[name] ?? null, kind, isLeased)]),
    )
  }
}
