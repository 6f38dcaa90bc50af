import { sql } from 'kysely'
import type { Migration } from './schema.js'

/** The schema, step by step; a step that has shipped is never edited. */
export const MIGRATIONS: readonly Migration[] = [
  (engine) => [
    sql`create table subscriptions (
      subscription_uid ${engine.sortedText} primary key,
      business_uid text not null,
      purchasable_uid text,
      record text,
      state text,
      gone text,
      read_at bigint,
      wanted bigint not null,
      done bigint not null,
      requested_at bigint,
      refresh_at bigint,
      not_before bigint,
      lane text not null,
      lease_token text,
      lapses integer not null,
      failure text,
      progress text,
      install_at bigint,
      uninstalled_at bigint,
      created_at bigint not null
    ) ${engine.busyTable}`,
    sql`create index subscriptions_business on subscriptions (business_uid, lane, created_at desc)`,
    // The claim walks this index from its start and stops at the first row: rows given up or not yet due cost nothing.
    sql`create index subscriptions_due on subscriptions (lane, refresh_at) where refresh_at is not null`,
    sql`create table store_owner (
      id integer primary key,
      fingerprint text,
      settled integer not null,
      probed_at bigint
    ) ${engine.busyTable}`,
    sql`create table journal (
      seq ${engine.rowNumber},
      id text not null unique,
      kind text not null,
      name text not null,
      key text not null,
      business_uid text,
      subscription_uid text,
      payload text not null,
      issues text,
      status text not null,
      due_at bigint not null,
      attempts integer not null,
      lapses integer not null,
      lease_token text,
      error text,
      received_at bigint not null
    ) ${engine.busyTable}`,
    // Due rows, and the oldest pending row of a key; both hold pending rows only, so they stay as small as the backlog.
    sql`create index journal_due on journal (due_at) where status = 'pending'`,
    sql`create index journal_key on journal (key, seq) where status = 'pending'`,
    // No two handlers at once for one key, whatever two instances claim in the same moment.
    sql`create unique index journal_leased on journal (key) where status = 'pending' and lease_token is not null`,
    // What pruning looks for; a row enters it when it ends, not when it is accepted.
    sql`create index journal_ended on journal (status, kind, received_at) where status <> 'pending'`,
    sql`create index journal_business on journal (business_uid, seq)`,
  ],
]
