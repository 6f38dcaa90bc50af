import { sql } from 'kysely'
import type { Migration } from './schema.js'

/** The schema, step by step; a step that has shipped is never edited. */
export const MIGRATIONS: readonly Migration[] = [
  (engine) => [
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
      verifying integer not null,
      lease_token text,
      lapses integer not null,
      failure text,
      progress text,
      install_at bigint,
      uninstalled_at bigint,
      created_at bigint not null
    ) ${engine.busyTable}`,
    sql`create index subscriptions_business on subscriptions (business_uid, unread, created_at desc)`,
    // A claim walks this index from the start of a class and stops soon: rows given up or not yet due cost nothing.
    sql`create index subscriptions_due on subscriptions (urgency, refresh_at) where refresh_at is not null`,
    // For counts and health: what waits for the platform's answer, the oldest first.
    sql`create index subscriptions_owed on subscriptions (owed_since) where owed_since is not null and refresh_at is not null`,
    // For counts and health: whether the platform refuses what it has shown before.
    sql`create index subscriptions_active on subscriptions (failure)
      where unread = 0 and gone is null and state <> 'canceled'`,
    sql`create index subscriptions_given_up on subscriptions (unread, requested_at) where refresh_at is null`,
    sql`create index subscriptions_other_items on subscriptions (purchasable_uid) where unread = 2`,
    // What pruning looks for.
    sql`create index subscriptions_made_up on subscriptions (requested_at)
      where unread > 0 and (failure is not null or refresh_at is null)`,
    // What a process that died has left behind.
    sql`create index subscriptions_leased on subscriptions (lease_token) where lease_token is not null`,
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
