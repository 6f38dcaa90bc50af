create table marketplace_schema (version integer not null);

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
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create index subscriptions_business on subscriptions (business_uid, lane, created_at desc);

create index subscriptions_due on subscriptions (lane, refresh_at) where refresh_at is not null;

create table journal (
  seq bigint generated always as identity,
  id text not null unique,
  kind text not null,
  name text not null,
  topic text collate "C" not null,
  key text not null,
  business_uid text,
  subscription_uid text,
  payload text not null,
  issues text,
  status text not null,
  attempts integer not null,
  error text,
  received_at bigint not null,
  due_at bigint,
  settled_at bigint
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create index journal_lane on journal (key, seq) where status = 'pending';

create index journal_retrying on journal (seq) where status = 'pending' and attempts > 0;

create index journal_waiting on journal (topic, seq) where status = 'waiting';

create index journal_status on journal (status, kind, seq);

create index journal_settled on journal (status, kind, settled_at) where settled_at is not null;

create index journal_business on journal (business_uid, seq) where business_uid is not null;

create index journal_subscription on journal (subscription_uid, seq) where subscription_uid is not null;

create table lanes (
  key text collate "C" primary key,
  topic text collate "C" not null,
  due_at bigint not null,
  lease_token text,
  lapses integer not null
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create index lanes_due on lanes (topic, due_at);

create index lanes_leased on lanes (lease_token) where lease_token is not null;

create table handlers (topic text collate "C" primary key, seen_at bigint not null, ready integer not null);

insert into marketplace_schema (version) values (1);

insert into subscriptions (subscription_uid, business_uid, purchasable_uid, record, state, gone, read_at, wanted, done, requested_at, refresh_at, not_before, lane, lease_token, lapses, failure, progress, install_at, uninstalled_at, created_at) values ('bakery-1', 'bakery', 'item', '{"uid":"bakery-1","business_uid":"bakery","purchasable_uid":"item","purchase_state":"purchased","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null}', 'purchased', null, 1795517515546, 1, 1, 1795517515504, 1795602969803, 1795517515796, 'known', null, 0, null, '{"generation":1,"owed":0,"verified":0,"outages":0,"refusals":0,"refusedSince":null,"missing":0,"missingSince":null,"dissent":null}', null, null, 1795517515504);

insert into subscriptions (subscription_uid, business_uid, purchasable_uid, record, state, gone, read_at, wanted, done, requested_at, refresh_at, not_before, lane, lease_token, lapses, failure, progress, install_at, uninstalled_at, created_at) values ('salon-1', 'salon', 'item', '{"uid":"salon-1","business_uid":"salon","purchasable_uid":"item","purchase_state":"suspended","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null}', 'suspended', null, 1795517515579, 1, 1, 1795517515561, 1795607821482, 1795517515829, 'known', null, 0, null, '{"generation":1,"owed":0,"verified":0,"outages":0,"refusals":0,"refusedSince":null,"missing":0,"missingSince":null,"dissent":null}', null, null, 1795517515561);

insert into subscriptions (subscription_uid, business_uid, purchasable_uid, record, state, gone, read_at, wanted, done, requested_at, refresh_at, not_before, lane, lease_token, lapses, failure, progress, install_at, uninstalled_at, created_at) values ('gym-1', 'gym', 'item', null, null, null, null, 1, 0, 1795517515722, 1795517515722, null, 'new', null, 0, null, null, null, null, 1795517515722);

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) overriding system value values (1, '01a20d2f-06b4-7134-b768-9c5500852437', 'event', 'application/installed', 'event:application/installed', 'business:bakery', 'bakery', null, '{"entity_name":"application","event_type":"installed","data":{"business_id":"bakery","app_code_name":"app","event_time":"2026-11-01T10:00:00Z"}}', null, 'unhandled', 0, null, 1795517515447, null, null);

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) overriding system value values (2, '01a20d2f-06e8-7147-8099-013022369825', 'event', 'purchasable_subscription/create', 'event:purchasable_subscription/create', 'subscription:bakery-1', 'bakery', 'bakery-1', '{"entity_name":"purchasable_subscription","event_type":"created","data":{"business_id":"bakery","purchasable_uid":"item","subscription_uid":"bakery-1"}}', null, 'unhandled', 0, null, 1795517515505, null, null);

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) overriding system value values (3, '01a20d2f-0719-7dbd-bf42-e060d8e705c2', 'change', '', 'change', 'subscription:bakery-1', 'bakery', 'bakery-1', '{"id":"01a20d2f-0719-7dbd-bf42-e060d8e705c2","business_uid":"bakery","subscription_uid":"bakery-1","from":null,"to":"purchased","entitled":true,"record":{"uid":"bakery-1","business_uid":"bakery","purchasable_uid":"item","purchase_state":"purchased","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null},"observedAt":"2026-11-24T10:51:55.547Z"}', null, 'done', 1, null, 1795517515559, null, 1795517515582);

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) overriding system value values (4, '01a20d2f-0729-7893-b795-1b5a5b1358ab', 'event', 'purchasable_subscription/create', 'event:purchasable_subscription/create', 'subscription:salon-1', 'salon', 'salon-1', '{"entity_name":"purchasable_subscription","event_type":"created","data":{"business_id":"salon","purchasable_uid":"item","subscription_uid":"salon-1"}}', null, 'unhandled', 0, null, 1795517515561, null, null);

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) overriding system value values (5, '01a20d2f-073b-7151-8110-601c0aeda87d', 'change', '', 'change', 'subscription:salon-1', 'salon', 'salon-1', '{"id":"01a20d2f-073b-7151-8110-601c0aeda87d","business_uid":"salon","subscription_uid":"salon-1","from":null,"to":"suspended","entitled":false,"record":{"uid":"salon-1","business_uid":"salon","purchasable_uid":"item","purchase_state":"suspended","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null},"observedAt":"2026-11-24T10:51:55.580Z"}', null, 'pending', 1, 'Error: the handler fails', 1795517515580, 1795517520610, null);

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) overriding system value values (6, '01a20d2f-07ca-722b-aaa4-1dfa1f95e643', 'event', 'purchasable_subscription/create', 'event:purchasable_subscription/create', 'subscription:gym-1', 'gym', 'gym-1', '{"entity_name":"purchasable_subscription","event_type":"created","data":{"business_id":"gym","purchasable_uid":"item","subscription_uid":"gym-1"}}', null, 'unhandled', 0, null, 1795517515722, null, null);

insert into lanes (key, topic, due_at, lease_token, lapses) values ('subscription:salon-1', 'change', 1795517520610, null, 0);

insert into handlers (topic, seen_at, ready) values ('change', 1795517515394, 1);

select setval(pg_get_serial_sequence('journal', 'seq'), max(seq)) from journal;
