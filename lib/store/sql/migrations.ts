import { IS_ASIDE } from '../journal/is-handled.js'
import { isPending } from '../lanes/heads.js'
import { IS_DENIED, SERVED } from '../subscriptions/other-businesses.js'
import type { Dialect } from './dialect.js'
import type { Engine, MayMigrate, Migration } from './engine.js'
import { copyFirstTables, setAsideFirstTables } from './first-tables.js'
import { type Connection, type Sql, sql } from './sql.js'

/**
 * The schema, version by version: a database has the version of the last step that it has seen. A step that a release
 * contains is never edited. `__tests__/faults/storage/schema.test.ts` opens a database of each release.
 */
export const MIGRATIONS: readonly Migration[] = [
  // Version 1 had several forms, none of which is made any more. A new database has none of its tables, and tables of
  // these names in it belong to the app.
  async () => {},
  async (engine, trx, stored) => {
    const first = stored === 0 ? undefined : await setAsideFirstTables(engine, trx)
    for (const statement of tables(engine)) await statement.execute(trx)
    if (first) await copyFirstTables(engine, trx, first)
  },
]

/** The tables of version 2. */
function tables(engine: Dialect): Sql[] {
  return [
    sql`create table subscriptions (
      subscription_uid ${engine.sortedText} primary key,
      business_uid text not null,
      candidate_business_uid text,
      purchasable_uid text,
      record text,
      unread integer not null,
      state text,
      gone text,
      read_at bigint,
      generation bigint not null,
      settled_generation bigint not null,
      requested_at bigint,
      owed_since bigint,
      refresh_at bigint,
      not_before bigint,
      urgency integer not null,
      cause integer not null default 3,
      verifying integer not null,
      lease_token text,
      finished_by text,
      suspect integer not null default 0,
      lapses integer not null,
      failure text,
      progress text,
      install_at bigint,
      install_arrived_at bigint,
      uninstalled_at bigint,
      failing_since bigint,
      served_since bigint,
      update_at bigint,
      end_at bigint,
      quiet_until_read integer not null default 0,
      entitles integer not null default 0,
      created_at bigint not null
    ) ${engine.busyTable}`,
    sql`create index subscriptions_business on subscriptions (business_uid, unread, created_at desc)`,
    // For lists and erasures: page by page, sorted by uid.
    sql`create index subscriptions_of on subscriptions (business_uid, subscription_uid)`,
    sql`create index subscriptions_candidate on subscriptions (candidate_business_uid, subscription_uid)
      where candidate_business_uid is not null`,
    // A claim reads this index from the start of a class and stops soon: rows given up or not yet due cost nothing.
    sql`create index subscriptions_due on subscriptions (urgency, refresh_at) where refresh_at is not null`,
    // For health: the number of requests without an answer and the age of the oldest, which subscriptions_due does not have
    // in order. See docs/decisions/counts-read-an-index.md.
    sql`create index subscriptions_owed on subscriptions (owed_since) where owed_since is not null and refresh_at is not null`,
    // For health, and before a subscription ends: those that the platform shows, and those that it no longer does.
    sql`create index subscriptions_served on subscriptions (read_at) where ${SERVED}`,
    sql`create index subscriptions_failing on subscriptions (gone, failing_since) where failing_since is not null`,
    // For pruning, which searches the oldest that were never read (unread=? AND requested_at<?), and for two counts. Only a
    // row that is given up is written to it.
    sql`create index subscriptions_given_up on subscriptions (unread, requested_at) where refresh_at is null`,
    // Subscriptions that were never read successfully, and failed or were given up. Pruning searches the oldest
    // (requested_at<?); before an end and for health the newest are compared. Anybody with the delivery secret adds rows.
    sql`create index subscriptions_made_up on subscriptions (requested_at)
      where unread > 0 and (failure is not null or refresh_at is null)`,
    // Of those, the ones that may be deleted: beside very many that wait for their first answer a search would read them all.
    sql`create index subscriptions_denied on subscriptions (requested_at) where ${IS_DENIED}`,
    // For the leases of a process that died.
    sql`create index subscriptions_leased on subscriptions (refresh_at) where lease_token is not null`,
    sql`create index subscriptions_suspect on subscriptions (lapses, refresh_at) where suspect = 1`,
    sql`create table searches (
      business_uid ${engine.sortedText} primary key,
      asked integer not null,
      by_install integer not null,
      search_at bigint not null,
      searched_at bigint,
      wanted_at bigint not null,
      generation bigint not null,
      settled_generation bigint not null,
      doubted_at bigint,
      failures integer not null,
      failure text,
      lease_token text
    ) ${engine.busyTable}`,
    sql`create index searches_due on searches (by_install, search_at)`,
    // For leases that ran out, and those of a process that died.
    sql`create index searches_leased on searches (search_at) where lease_token is not null`,
    // For health, and to bound the searches that questions make.
    sql`create index searches_asked on searches (asked)`,
    // For pruning, which searches those that nobody has wanted for long.
    sql`create index searches_wanted on searches (wanted_at)`,
    // For health.
    sql`create index searches_failing on searches (asked) where failures > 0`,
    sql`create table store_owner (
      id integer primary key,
      fingerprint text,
      has_read integer not null
    ) ${engine.busyTable}`,
    // On PostgreSQL no index begins with seq alone: with outdated statistics the planner would search it from the first
    // entry on for the head of a lane. The payload is last: SQLite reads all pages of a long row up to the column it needs.
    sql`create table journal (
      seq ${engine.rowNumber},
      id text not null unique,
      kind text not null,
      name text not null,
      topic ${engine.sortedText} not null,
      key ${engine.sortedText} not null,
      business_uid text,
      subscription_uid text,
      status text not null,
      attempts integer not null,
      error text,
      received_at bigint not null,
      due_at bigint,
      settled_at bigint,
      tried_under text,
      issues text,
      cause text,
      secret text,
      unread integer not null default 0,
      stack text,
      payload text not null
    ) ${engine.busyTable}`,
    sql`create index journal_lane on journal (key, seq) where ${isPending(engine)}`,
    sql`create index journal_retrying on journal (seq) where status = 'pending' and attempts > 0`,
    sql`create index journal_aside on journal (topic, seq) where ${IS_ASIDE}`,
    // With the class of an entry, which the allowance of what anybody can make up searches for.
    sql`create index journal_status on journal (status, kind, seq, unread)`,
    // For pruning. With outdated statistics the planner believes that it is small, so a query for other statuses must not
    // match its condition.
    sql`create index journal_settled on journal (status, kind, settled_at)
      where settled_at is not null and status in ('done', 'dead', 'unhandled')`,
    // By kind, because anybody with the delivery secret can add events of a business, but no changes, entitlements or actions. So
    // also the audit of a business that was erased is a range of its own.
    sql`create index journal_business on journal (business_uid, kind, received_at, seq) where business_uid is not null`,
    sql`create index journal_subscription on journal (subscription_uid, received_at, seq)
      where subscription_uid is not null`,
    // For the timeline of a business: the outcomes of its entries, by time.
    sql`create index journal_outcome on journal (business_uid, settled_at, seq)
      where business_uid is not null and settled_at is not null`,
    // For health: whether events announce the changes.
    sql`create index journal_cause on journal (cause, received_at, seq) where cause is not null`,
    sql`create table lanes (
      key ${engine.sortedText} primary key,
      topic ${engine.sortedText} not null,
      due_at bigint not null,
      lease_token text,
      lapses integer not null,
      suspect integer not null default 0,
      unread integer not null default 0
    ) ${engine.busyTable}`,
    // A claim reads the due lanes of a class of a topic: entries behind their heads, and lanes due later, cost nothing.
    sql`create index lanes_due on lanes (topic, unread, due_at)`,
    sql`create index lanes_leased on lanes (due_at) where lease_token is not null`,
    sql`create index lanes_suspect on lanes (lapses, due_at) where suspect = 1`,
    sql`create table handlers (
      topic ${engine.sortedText} primary key,
      seen_at bigint not null,
      rescued_at bigint,
      rescue_from bigint
    )`,
    sql`create table platform_facts (
      id integer primary key,
      facts text not null
    )`,
  ]
}

/** The number of migrations that the database has seen. The table `marketplace_schema` exists. */
export async function schemaVersion(db: Connection): Promise<number> {
  const rows = await sql<{ version: number }>`select version from marketplace_schema`.execute(db)
  return rows[0]?.version ?? 0
}

/** Whether the database has the tables of this package, of any version. */
export async function hasTables({ read, columns }: Pick<Engine, 'read' | 'columns'>): Promise<boolean> {
  const tables = new Set((await read((db) => columns.execute(db))).map(({ table }) => table))
  return ['marketplace_schema', 'subscriptions', 'journal'].every((table) => tables.has(table))
}

/** Runs the missing migrations in one transaction, while no other process migrates. */
export async function runMigrations(
  engine: Engine,
  trx: Connection,
  migrations: readonly Migration[],
  mayMigrate?: MayMigrate,
) {
  const version = await schemaVersion(trx)
  if (version >= migrations.length) return
  if (version > 0) await mayMigrate?.(trx)
  for (const migration of migrations.slice(version)) await migration(engine, trx, version)
  await sql`delete from marketplace_schema`.execute(trx)
  await sql`insert into marketplace_schema values (${migrations.length})`.execute(trx)
}
