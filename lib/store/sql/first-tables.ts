import { MarketplaceError } from '../../base/errors.js'
import { nextTurn } from '../../base/waiting.js'
import { NO_HANDLER } from '../journal/prune.js'
import { CAUSES, changesKey, EVERY_EVENT, URGENCY } from '../port/store.js'
import type { Dialect } from './dialect.js'
import { type Connection, type Sql, sql } from './sql.js'

/** What every form of version 1 had: each table that is present has these columns. */
const TABLES = {
  subscriptions: [
    'subscription_uid',
    'business_uid',
    'purchasable_uid',
    'record',
    'state',
    'gone',
    'read_at',
  ],
  journal: ['seq', 'id', 'kind', 'name', 'key', 'subscription_uid', 'payload', 'status', 'attempts', 'error'],
  lanes: ['key', 'topic', 'due_at', 'lapses'],
  handlers: ['topic', 'seen_at'],
  tallies: ['kind', 'name', 'secret', 'count', 'first_at', 'last_at'],
  instances: ['id', 'version', 'has_worker', 'seen_at'],
  store_owner: ['id', 'fingerprint'],
} as const
type Table = keyof typeof TABLES

/** The tables of a database of version 1, by name: the columns of each. */
type FirstTables = ReadonlyMap<Table, ReadonlySet<string>>

/**
 * Gives the tables of version 1 other names, without their indexes. Rejects `store_unavailable` when a table is not of
 * this package, and then changes nothing.
 */
export async function setAsideFirstTables(engine: Dialect, trx: Connection): Promise<FirstTables> {
  const columns = await engine.columns.execute(trx)
  const indexes = await engine.indexes.execute(trx)
  const columnsOf = (table: string) =>
    new Set(columns.filter((each) => each.table === table).map(({ name }) => name))
  const first = new Map<Table, ReadonlySet<string>>()
  for (const [table, needed] of Object.entries(TABLES) as [Table, readonly string[]][]) {
    const ofTable = columnsOf(table)
    const isOptional = table !== 'subscriptions' && table !== 'journal'
    if (ofTable.size === 0 && isOptional) continue
    for (const column of needed) if (!ofTable.has(column)) throw foreign(table, column)
    first.set(table, ofTable)
  }
  for (const table of first.keys()) {
    for (const index of indexes.filter((each) => each.table === table))
      await sql`drop index ${sql.ref(index.name)}`.execute(trx)
    await sql`alter table ${sql.ref(table)} rename to ${aside(table)}`.execute(trx)
  }
  await completeTime(trx, columnsOf('marketplace_time'))
  return first
}

function foreign(table: Table, column: string): MarketplaceError {
  return new MarketplaceError(
    'store_unavailable',
    `Cannot open the store: its table ${table} has no column ${column}, so it is not a table of this package, or of a ` +
      'version that no release can read. The database was not changed. Give the app a file, a database or a schema of ' +
      'its own, and import the subscriptions that were sold',
  )
}

/**
 * Copies what version 1 knew into the tables of version 2, and deletes the rest. Every subscription is due, because this
 * is quicker to trust than the work that was under way.
 */
export async function copyFirstTables(engine: Dialect, trx: Connection, first: FirstTables) {
  const { now } = engine
  const has = (table: Table, column: string) => first.get(table)?.has(column) === true
  const either = (table: Table, column: string, otherwise: Sql) =>
    has(table, column) ? sql.ref(column) : otherwise
  const ofSubscription = (column: string, otherwise: Sql = sql`null`) =>
    either('subscriptions', column, otherwise)

  // Earlier forms of version 1 named these columns otherwise. The time got its present name before the two counters.
  const times = has('subscriptions', 'generation') ? sql`generation - settled_generation` : sql`wanted - done`
  const requestedAt = ofSubscription('requested_at', sql`wanted_at`)
  await inBatches(
    trx,
    'subscriptions',
    'subscription_uid',
    (range) => sql`
    insert into subscriptions
      (subscription_uid, business_uid, candidate_business_uid, purchasable_uid, record, unread, state, gone, read_at,
        generation, settled_generation, requested_at, owed_since, refresh_at, urgency, verifying, lapses,
        install_at, uninstalled_at, quiet_until_read, cause, created_at)
    select subscription_uid, business_uid, ${ofSubscription('candidate_business_uid')}, purchasable_uid, record,
      case when record is not null then 0 else 1 end, state, gone, read_at,
      times, 0, requested, case when times > 0 then coalesce(requested, ${now()}) end,
      ${now()},
      case when record is null then ${sql.lit(URGENCY.eventOfUnread)}
        when times > 0 then ${sql.lit(URGENCY.event)} else ${sql.lit(URGENCY.reconcile)} end,
      0, 0, ${ofSubscription('install_at')}, uninstalled_at, ${ofSubscription('quiet_until_read', sql`0`)}, ${IMPORT}, created_at
    from (select rows.*, ${times} as times, ${requestedAt} as requested
      from ${aside('subscriptions')} as rows where ${range}) as known`,
  )

  // A process may have named them a moment ago, and what came before it is history all the same.
  if (first.has('handlers'))
    await sql`
      insert into handlers (topic, seen_at, rescued_at)
      select topic, seen_at, 0 from ${aside('handlers')} where seen_at > 0 and topic <> 'worker'`.execute(trx)

  const settledAt = either('journal', 'settled_at', sql`received_at`)
  const topic = sql`case kind when 'event' then 'event:' || name else kind end`
  // What nobody had handled in time was dead in version 1, also if no process ever had a handler for it.
  const isHistory = sql`status = 'dead' and error = ${sql.lit(NO_HANDLER)} and not exists (
    select 1 from handlers as named
    where named.topic = ${topic} or (kind = 'event' and named.topic = ${sql.lit(EVERY_EVENT)}))`
  // Changes of version 1 had the lane of their subscription, which those of version 2 do not wait for.
  const key = sql`case when kind = 'change' and business_uid is not null
    then ${sql.lit(changesKey(''))} || business_uid else key end`
  await sql`create index first_journal_seq on ${aside('journal')} (seq)`.execute(trx)
  await inBatches(
    trx,
    'journal',
    'seq',
    (range) => sql`
    insert into journal
      (id, kind, name, topic, key, business_uid, subscription_uid, status, attempts, error, received_at,
        settled_at, issues, payload)
    select id, kind, name, ${topic}, ${key}, business_uid, subscription_uid, result, attempts,
      case when result <> 'unhandled' then error end, received_at,
      case when result <> 'pending' and (result <> 'unhandled' or kind = 'change') then coalesce(${settledAt}, received_at) end,
      issues, payload
    from (select rows.*, case when status = 'waiting' then 'pending' when ${isHistory} then 'unhandled' else status end as result
      from ${aside('journal')} as rows where ${range}) as entries order by seq`,
  )
  await sql`
    insert into lanes (key, topic, due_at, lapses)
    select key, topic, ${now()}, 0 from journal
    where status = 'pending' and seq in (select min(seq) from journal where status = 'pending' group by key)`.execute(
    trx,
  )

  if (first.has('store_owner'))
    await sql`
      insert into store_owner (id, fingerprint, has_read)
      select id, fingerprint, ${either('store_owner', 'has_read', sql.ref('settled'))}
      from ${aside('store_owner')}`.execute(trx)
  for (const table of first.keys()) await sql`drop table ${aside(table)}`.execute(trx)
}

/** Copies a table of version 1 in the order of `key`, by statements that each take less time than one may. */
async function inBatches(
  trx: Connection,
  table: 'subscriptions' | 'journal',
  key: string,
  insert: (range: Sql) => Sql,
) {
  const column = sql.ref(key)
  let done = sql`1 = 1`
  for (;;) {
    const [row] = await sql<{ last: unknown }>`
      select max(${column}) as last from (
        select ${column} from ${aside(table)} where ${done} order by ${column} limit ${BATCH}
      ) as batch`.execute(trx)
    const last = row?.last ?? null
    if (last === null) return
    await insert(sql`${done} and ${column} <= ${last}`).execute(trx)
    done = sql`${column} > ${last}`
    await nextTurn()
  }
}

/** Rows of one statement. On PostgreSQL a statement may take 5 s. */
const BATCH = 1_000

/** The cause of the reads after the migration: what they find is no sign that events do not come. */
const IMPORT = sql.lit(CAUSES.indexOf('import'))

/** An early SQLite database counted no WALs. The table is made before the migrations. */
async function completeTime(trx: Connection, columns: ReadonlySet<string>) {
  if (columns.size === 0 || columns.has('wals')) return
  await sql`alter table marketplace_time add column wals integer not null default 0`.execute(trx)
}

const aside = (table: Table) => sql.ref(`first_${table}`)
