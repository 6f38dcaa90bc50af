create table marketplace_schema (version integer not null);

insert into marketplace_schema (version) values (1);

create table subscriptions (
  subscription_uid text collate "C" primary key,
  business_uid text not null,
  purchasable_uid text,
  record text,
  state text,
  gone text,
  read_at bigint,
  wanted bigint not null,
  done bigint not null,
  wanted_at bigint,
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
);

create index subscriptions_business on subscriptions (business_uid, lane, created_at desc);

create index subscriptions_due on subscriptions (lane, refresh_at) where refresh_at is not null;

create table journal (
  seq bigint generated always as identity,
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
);

create index journal_due on journal (due_at) where status = 'pending';

create index journal_key on journal (key, seq) where status = 'pending';

create unique index journal_leased on journal (key) where status = 'pending' and lease_token is not null;

create index journal_ended on journal (status, kind, received_at) where status <> 'pending';

create index journal_business on journal (business_uid, seq);

insert into subscriptions (subscription_uid, business_uid, purchasable_uid, record, state, gone, read_at, wanted, done, wanted_at, refresh_at, not_before, lane, lease_token, lapses, failure, progress, install_at, uninstalled_at, created_at) values ('bakery-1', 'bakery', 'item', '{"uid":"bakery-1","business_uid":"bakery","purchasable_uid":"item","purchase_state":"purchased","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null}', 'purchased', null, 1795468165574, 1, 1, 1795468165574, 1795554565574, null, 'known', null, 0, null, null, null, null, 1795468165574);

insert into subscriptions (subscription_uid, business_uid, purchasable_uid, record, state, gone, read_at, wanted, done, wanted_at, refresh_at, not_before, lane, lease_token, lapses, failure, progress, install_at, uninstalled_at, created_at) values ('salon-1', 'salon', 'item', '{"uid":"salon-1","business_uid":"salon","purchasable_uid":"item","purchase_state":"suspended","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null}', 'suspended', null, 1795468165574, 1, 1, 1795468165574, 1795554565574, null, 'known', null, 0, null, null, null, null, 1795468165574);

insert into subscriptions (subscription_uid, business_uid, purchasable_uid, record, state, gone, read_at, wanted, done, wanted_at, refresh_at, not_before, lane, lease_token, lapses, failure, progress, install_at, uninstalled_at, created_at) values ('gym-1', 'gym', 'item', null, null, null, null, 1, 0, 1795468165574, 1795468165574, null, 'new', null, 0, null, null, null, null, 1795468165574);

insert into journal (seq, id, kind, name, key, business_uid, subscription_uid, payload, issues, status, due_at, attempts, lapses, lease_token, error, received_at) overriding system value values (1, '01a20a3e-01d1-7a6a-932b-2aa5f61a52e1', 'event', 'purchasable_subscription/create', 'subscription:bakery-1', 'bakery', 'bakery-1', '{"entity_name":"purchasable_subscription","event_type":"created","data":{"business_id":"bakery","purchasable_uid":"item","subscription_uid":"bakery-1"}}', null, 'done', 1795468165574, 0, 0, null, null, 1795468165574);

insert into journal (seq, id, kind, name, key, business_uid, subscription_uid, payload, issues, status, due_at, attempts, lapses, lease_token, error, received_at) overriding system value values (2, '01a20a3e-01d1-7a6a-932b-2aa5f61a52e2', 'change', '', 'subscription:bakery-1', 'bakery', 'bakery-1', '{"id":"01a20a3e-01d1-7a6a-932b-2aa5f61a52e2","business_uid":"bakery","subscription_uid":"bakery-1","from":null,"to":"purchased","gone":null,"entitled":true,"record":{"uid":"bakery-1","business_uid":"bakery","purchasable_uid":"item","purchase_state":"purchased","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null},"observedAt":"2026-11-24T00:00:00.000Z"}', null, 'done', 1795468165574, 1, 0, null, null, 1795468165574);

insert into journal (seq, id, kind, name, key, business_uid, subscription_uid, payload, issues, status, due_at, attempts, lapses, lease_token, error, received_at) overriding system value values (3, '01a20a3e-01d1-7a6a-932b-2aa5f61a52e3', 'event', 'purchasable_subscription/create', 'subscription:salon-1', 'salon', 'salon-1', '{"entity_name":"purchasable_subscription","event_type":"created","data":{"business_id":"salon","purchasable_uid":"item","subscription_uid":"salon-1"}}', null, 'done', 1795468165574, 0, 0, null, null, 1795468165574);

insert into journal (seq, id, kind, name, key, business_uid, subscription_uid, payload, issues, status, due_at, attempts, lapses, lease_token, error, received_at) overriding system value values (4, '01a20a3e-01d1-7a6a-932b-2aa5f61a52e4', 'change', '', 'subscription:salon-1', 'salon', 'salon-1', '{"id":"01a20a3e-01d1-7a6a-932b-2aa5f61a52e4","business_uid":"salon","subscription_uid":"salon-1","from":null,"to":"suspended","gone":null,"entitled":false,"record":{"uid":"salon-1","business_uid":"salon","purchasable_uid":"item","purchase_state":"suspended","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null},"observedAt":"2026-11-24T00:00:00.000Z"}', null, 'pending', 1795468165574, 1, 0, null, 'Error: the handler fails', 1795468165574);

insert into journal (seq, id, kind, name, key, business_uid, subscription_uid, payload, issues, status, due_at, attempts, lapses, lease_token, error, received_at) overriding system value values (5, '01a20a3e-01d1-7a6a-932b-2aa5f61a52e5', 'event', 'purchasable_subscription/create', 'subscription:gym-1', 'gym', 'gym-1', '{"entity_name":"purchasable_subscription","event_type":"created","data":{"business_id":"gym","purchasable_uid":"item","subscription_uid":"gym-1"}}', null, 'done', 1795468165574, 0, 0, null, null, 1795468165574);
