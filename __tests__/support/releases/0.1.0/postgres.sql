create table marketplace_schema (version integer not null);

create table subscriptions (
      subscription_uid text collate "C" primary key,
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
      quiet_until_read integer not null default 0,
      created_at bigint not null
    ) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create index subscriptions_business on subscriptions (business_uid, unread, created_at desc);

create index subscriptions_of on subscriptions (business_uid, subscription_uid);

create index subscriptions_candidate on subscriptions (candidate_business_uid, subscription_uid)
      where candidate_business_uid is not null;

create index subscriptions_due on subscriptions (urgency, refresh_at) where refresh_at is not null;

create index subscriptions_owed on subscriptions (owed_since) where owed_since is not null and refresh_at is not null;

create index subscriptions_active on subscriptions (failure)
      where unread = 0 and gone is null and state <> 'canceled';

create index subscriptions_given_up on subscriptions (unread, requested_at) where refresh_at is null;

create index subscriptions_other_items on subscriptions (purchasable_uid) where unread = 2;

create index subscriptions_made_up on subscriptions (requested_at)
      where unread > 0 and (failure is not null or refresh_at is null);

create index subscriptions_leased on subscriptions (lease_token) where lease_token is not null;

create table store_owner (
      id integer primary key,
      fingerprint text,
      settled integer not null,
      probed_at bigint
    ) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create table journal (
      seq bigint generated always as identity,
      id text not null unique,
      kind text not null,
      name text not null,
      topic text collate "C" not null,
      key text collate "C" not null,
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

create index journal_settled on journal (status, kind, settled_at)
      where settled_at is not null and status in ('done', 'dead', 'waiting');

create index journal_business on journal (business_uid, received_at, seq) where business_uid is not null;

create index journal_subscription on journal (subscription_uid, received_at, seq)
      where subscription_uid is not null;

create index journal_outcome on journal (business_uid, settled_at, seq)
      where business_uid is not null and settled_at is not null;

create index journal_change on journal (business_uid, received_at, seq) where kind = 'change';

create index journal_erased on journal (business_uid, received_at) where kind = 'action' and name = 'erase';

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

create table tallies (
      kind text collate "C" not null,
      name text collate "C" not null,
      secret text collate "C" not null,
      count bigint not null,
      first_at bigint not null,
      last_at bigint not null,
      primary key (kind, name, secret)
    );

create table instances (
      id text collate "C" primary key,
      version text not null,
      has_worker integer not null,
      started_at bigint not null,
      seen_at bigint not null
    );

insert into handlers values ('change', 0, 0);

delete from handlers;

insert into handlers (topic, seen_at, ready) values ('worker', '1795468212525', 0);

insert into handlers (topic, seen_at, ready) values ('change', '1795468212525', 1);

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) overriding system value values ('1', '01a20a3e-b917-76df-a9fe-288e3f6be90e', 'event', 'application/installed', 'event:application/installed', 'business:bakery', 'bakery', null, '{"entity_name":"application","event_type":"installed","data":{"business_id":"bakery","app_code_name":"app","event_time":"2026-11-01T10:00:00Z"}}', null, 'unhandled', 0, null, '1795468212535', null, null);

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) overriding system value values ('2', '01a20a3e-b93d-70b1-9f4b-8525dab6401e', 'event', 'purchasable_subscription/create', 'event:purchasable_subscription/create', 'subscription:bakery-1', 'bakery', 'bakery-1', '{"entity_name":"purchasable_subscription","event_type":"created","data":{"business_id":"bakery","purchasable_uid":"item","subscription_uid":"bakery-1"}}', null, 'unhandled', 0, null, '1795468212546', null, null);

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) overriding system value values ('3', '01a20a3e-b946-7601-86ea-559549b5be85', 'event', 'purchasable_subscription/create', 'event:purchasable_subscription/create', 'subscription:salon-1', 'salon', 'salon-1', '{"entity_name":"purchasable_subscription","event_type":"created","data":{"business_id":"salon","purchasable_uid":"item","subscription_uid":"salon-1"}}', null, 'unhandled', 0, null, '1795468212554', null, null);

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) overriding system value values ('4', '01a20a3e-b94c-7d8b-b552-7b7e72b43d1e', 'change', '', 'change', 'subscription:bakery-1', 'bakery', 'bakery-1', '{"id":"01a20a3e-b94c-7d8b-b552-7b7e72b43d1e","business_uid":"bakery","subscription_uid":"bakery-1","from":null,"to":"purchased","gone":null,"entitled":true,"record":{"uid":"bakery-1","business_uid":"bakery","purchasable_uid":"item","purchase_state":"purchased","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null},"observedAt":"2026-11-23T21:10:12.565Z"}', null, 'done', 1, null, '1795468212567', null, '1795468212586');

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) overriding system value values ('5', '01a20a3e-b958-729c-8c80-147bea70e953', 'change', '', 'change', 'subscription:salon-1', 'salon', 'salon-1', '{"id":"01a20a3e-b958-729c-8c80-147bea70e953","business_uid":"salon","subscription_uid":"salon-1","from":null,"to":"suspended","gone":null,"entitled":false,"record":{"uid":"salon-1","business_uid":"salon","purchasable_uid":"item","purchase_state":"suspended","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null},"observedAt":"2026-11-23T21:10:12.576Z"}', null, 'pending', 1, 'Error: the handler fails', '1795468212578', '1795468217586', '1795468212586');

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) overriding system value values ('6', '01a20a3e-b98e-7292-b383-5f4a71f9fd78', 'event', 'purchasable_subscription/create', 'event:purchasable_subscription/create', 'subscription:gym-1', 'gym', 'gym-1', '{"entity_name":"purchasable_subscription","event_type":"created","data":{"business_id":"gym","purchasable_uid":"item","subscription_uid":"gym-1"}}', null, 'unhandled', 0, null, '1795468212637', null, null);

insert into lanes (key, topic, due_at, lease_token, lapses) values ('subscription:salon-1', 'change', '1795468217586', null, 0);

insert into marketplace_schema (version) values (1);

insert into store_owner (id, fingerprint, settled, probed_at) values (1, '28c98074833ae8e6eac0e5e27aca166aea341c2f61d406fcfc045307ea796ae4', 1, null);

insert into subscriptions (subscription_uid, business_uid, candidate_business_uid, purchasable_uid, record, unread, state, gone, read_at, generation, settled_generation, requested_at, owed_since, refresh_at, not_before, urgency, verifying, lease_token, lapses, failure, progress, install_at, uninstalled_at, quiet_until_read, created_at) values ('bakery-1', 'bakery', null, 'item', '{"uid":"bakery-1","business_uid":"bakery","purchasable_uid":"item","purchase_state":"purchased","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null}', 0, 'purchased', null, '1795468212563', '1', '1', '1795468212544', null, '1795561464435', '1795468212813', 4, 0, null, 0, null, '{"generation":1,"owed":0,"verified":0,"outages":0,"refusals":0,"refusedSince":null,"refusedAt":null,"missing":0,"missingSince":null,"goneSince":null,"dissent":null}', null, null, 0, '1795468212544');

insert into subscriptions (subscription_uid, business_uid, candidate_business_uid, purchasable_uid, record, unread, state, gone, read_at, generation, settled_generation, requested_at, owed_since, refresh_at, not_before, urgency, verifying, lease_token, lapses, failure, progress, install_at, uninstalled_at, quiet_until_read, created_at) values ('salon-1', 'salon', null, 'item', '{"uid":"salon-1","business_uid":"salon","purchasable_uid":"item","purchase_state":"suspended","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null}', 0, 'suspended', null, '1795468212573', '1', '1', '1795468212552', null, '1795564365089', '1795468212823', 4, 0, null, 0, null, '{"generation":1,"owed":0,"verified":0,"outages":0,"refusals":0,"refusedSince":null,"refusedAt":null,"missing":0,"missingSince":null,"goneSince":null,"dissent":null}', null, null, 0, '1795468212552');

insert into subscriptions (subscription_uid, business_uid, candidate_business_uid, purchasable_uid, record, unread, state, gone, read_at, generation, settled_generation, requested_at, owed_since, refresh_at, not_before, urgency, verifying, lease_token, lapses, failure, progress, install_at, uninstalled_at, quiet_until_read, created_at) values ('gym-1', 'gym', null, 'item', null, 1, null, null, null, '1', '0', '1795468212636', '1795468212636', '1795468212636', null, 1, 0, null, 0, null, null, null, null, 0, '1795468212636');

insert into tallies (kind, name, secret, count, first_at, last_at) values ('event', 'application/installed', '2f5c3d36', '1', '1795468212539', '1795468212539');

insert into tallies (kind, name, secret, count, first_at, last_at) values ('event', 'purchasable_subscription/create', '2f5c3d36', '3', '1795468212548', '1795468212640');
