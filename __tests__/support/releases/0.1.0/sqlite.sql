CREATE TABLE marketplace_schema (version integer not null);

CREATE TABLE marketplace_time (boot text not null, anchor integer not null, noted integer not null, wals integer not null);

CREATE TABLE subscriptions (
      subscription_uid text primary key,
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
    );

CREATE INDEX subscriptions_business on subscriptions (business_uid, unread, created_at desc);

CREATE INDEX subscriptions_of on subscriptions (business_uid, subscription_uid);

CREATE INDEX subscriptions_candidate on subscriptions (candidate_business_uid, subscription_uid)
      where candidate_business_uid is not null;

CREATE INDEX subscriptions_due on subscriptions (urgency, refresh_at) where refresh_at is not null;

CREATE INDEX subscriptions_owed on subscriptions (owed_since) where owed_since is not null and refresh_at is not null;

CREATE INDEX subscriptions_active on subscriptions (failure)
      where unread = 0 and gone is null and state <> 'canceled';

CREATE INDEX subscriptions_given_up on subscriptions (unread, requested_at) where refresh_at is null;

CREATE INDEX subscriptions_other_items on subscriptions (purchasable_uid) where unread = 2;

CREATE INDEX subscriptions_made_up on subscriptions (requested_at)
      where unread > 0 and (failure is not null or refresh_at is null);

CREATE INDEX subscriptions_leased on subscriptions (lease_token) where lease_token is not null;

CREATE TABLE store_owner (
      id integer primary key,
      fingerprint text,
      settled integer not null,
      probed_at bigint
    );

CREATE TABLE journal (
      seq integer primary key,
      id text not null unique,
      kind text not null,
      name text not null,
      topic text not null,
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
    );

CREATE INDEX journal_lane on journal (key, seq) where status = 'pending';

CREATE INDEX journal_retrying on journal (seq) where status = 'pending' and attempts > 0;

CREATE INDEX journal_waiting on journal (topic, seq) where status = 'waiting';

CREATE INDEX journal_status on journal (status, kind, seq);

CREATE INDEX journal_settled on journal (status, kind, settled_at)
      where settled_at is not null and status in ('done', 'dead', 'waiting');

CREATE INDEX journal_business on journal (business_uid, received_at, seq) where business_uid is not null;

CREATE INDEX journal_subscription on journal (subscription_uid, received_at, seq)
      where subscription_uid is not null;

CREATE INDEX journal_outcome on journal (business_uid, settled_at, seq)
      where business_uid is not null and settled_at is not null;

CREATE INDEX journal_change on journal (business_uid, received_at, seq) where kind = 'change';

CREATE INDEX journal_erased on journal (business_uid, received_at) where kind = 'action' and name = 'erase';

CREATE TABLE lanes (
      key text primary key,
      topic text not null,
      due_at bigint not null,
      lease_token text,
      lapses integer not null
    );

CREATE INDEX lanes_due on lanes (topic, due_at);

CREATE INDEX lanes_leased on lanes (lease_token) where lease_token is not null;

CREATE TABLE handlers (topic text primary key, seen_at bigint not null, ready integer not null);

CREATE TABLE tallies (
      kind text not null,
      name text not null,
      secret text not null,
      count bigint not null,
      first_at bigint not null,
      last_at bigint not null,
      primary key (kind, name, secret)
    );

CREATE TABLE instances (
      id text primary key,
      version text not null,
      has_worker integer not null,
      started_at bigint not null,
      seen_at bigint not null
    );

insert into marketplace_schema (version) values (1);

insert into marketplace_time (boot, anchor, noted, wals) values ('e75abb37-40db-4c2d-ab67-224998ebf2a3', 1795467027633, 1795468211772, 0);

insert into subscriptions (subscription_uid, business_uid, candidate_business_uid, purchasable_uid, record, unread, state, gone, read_at, generation, settled_generation, requested_at, owed_since, refresh_at, not_before, urgency, verifying, lease_token, lapses, failure, progress, install_at, uninstalled_at, quiet_until_read, created_at) values ('bakery-1', 'bakery', null, 'item', '{"uid":"bakery-1","business_uid":"bakery","purchasable_uid":"item","purchase_state":"purchased","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null}', 0, 'purchased', null, 1795468211743, 1, 1, 1795468211699, null, 1795540988673, 1795468211993, 4, 0, null, 0, null, '{"generation":1,"owed":0,"verified":0,"outages":0,"refusals":0,"refusedSince":null,"refusedAt":null,"missing":0,"missingSince":null,"goneSince":null,"dissent":null}', null, null, 0, 1795468211699);

insert into subscriptions (subscription_uid, business_uid, candidate_business_uid, purchasable_uid, record, unread, state, gone, read_at, generation, settled_generation, requested_at, owed_since, refresh_at, not_before, urgency, verifying, lease_token, lapses, failure, progress, install_at, uninstalled_at, quiet_until_read, created_at) values ('salon-1', 'salon', null, 'item', '{"uid":"salon-1","business_uid":"salon","purchasable_uid":"item","purchase_state":"suspended","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null}', 0, 'suspended', null, 1795468211743, 1, 1, 1795468211723, null, 1795569045648, 1795468211993, 4, 0, null, 0, null, '{"generation":1,"owed":0,"verified":0,"outages":0,"refusals":0,"refusedSince":null,"refusedAt":null,"missing":0,"missingSince":null,"goneSince":null,"dissent":null}', null, null, 0, 1795468211723);

insert into subscriptions (subscription_uid, business_uid, candidate_business_uid, purchasable_uid, record, unread, state, gone, read_at, generation, settled_generation, requested_at, owed_since, refresh_at, not_before, urgency, verifying, lease_token, lapses, failure, progress, install_at, uninstalled_at, quiet_until_read, created_at) values ('gym-1', 'gym', null, 'item', null, 1, null, null, null, 1, 0, 1795468211776, 1795468211776, 1795468211776, null, 1, 0, null, 0, null, null, null, null, 0, 1795468211776);

insert into store_owner (id, fingerprint, settled, probed_at) values (1, '28c98074833ae8e6eac0e5e27aca166aea341c2f61d406fcfc045307ea796ae4', 1, null);

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) values (1, '01a20a3e-b5e6-7ecc-b44c-007b590a86dd', 'event', 'application/installed', 'event:application/installed', 'business:bakery', 'bakery', null, '{"entity_name":"application","event_type":"installed","data":{"business_id":"bakery","app_code_name":"app","event_time":"2026-11-01T10:00:00Z"}}', null, 'unhandled', 0, null, 1795468211688, null, null);

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) values (2, '01a20a3e-b5f2-79ed-b58b-c42df4e6a180', 'event', 'purchasable_subscription/create', 'event:purchasable_subscription/create', 'subscription:bakery-1', 'bakery', 'bakery-1', '{"entity_name":"purchasable_subscription","event_type":"created","data":{"business_id":"bakery","purchasable_uid":"item","subscription_uid":"bakery-1"}}', null, 'unhandled', 0, null, 1795468211699, null, null);

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) values (3, '01a20a3e-b60b-716f-8eb2-135d3da8629e', 'event', 'purchasable_subscription/create', 'event:purchasable_subscription/create', 'subscription:salon-1', 'salon', 'salon-1', '{"entity_name":"purchasable_subscription","event_type":"created","data":{"business_id":"salon","purchasable_uid":"item","subscription_uid":"salon-1"}}', null, 'unhandled', 0, null, 1795468211723, null, null);

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) values (4, '01a20a3e-b61d-711e-af86-f9666aa33db3', 'change', '', 'change', 'subscription:bakery-1', 'bakery', 'bakery-1', '{"id":"01a20a3e-b61d-711e-af86-f9666aa33db3","business_uid":"bakery","subscription_uid":"bakery-1","from":null,"to":"purchased","gone":null,"entitled":true,"record":{"uid":"bakery-1","business_uid":"bakery","purchasable_uid":"item","purchase_state":"purchased","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null},"observedAt":"2026-11-23T21:10:11.743Z"}', null, 'done', 1, null, 1795468211744, null, 1795468211752);

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) values (5, '01a20a3e-b61d-73d6-a5b1-c29ac20dfcc5', 'change', '', 'change', 'subscription:salon-1', 'salon', 'salon-1', '{"id":"01a20a3e-b61d-73d6-a5b1-c29ac20dfcc5","business_uid":"salon","subscription_uid":"salon-1","from":null,"to":"suspended","gone":null,"entitled":false,"record":{"uid":"salon-1","business_uid":"salon","purchasable_uid":"item","purchase_state":"suspended","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null},"observedAt":"2026-11-23T21:10:11.743Z"}', null, 'pending', 1, 'Error: the handler fails', 1795468211744, 1795468216752, 1795468211752);

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, payload, issues, status, attempts, error, received_at, due_at, settled_at) values (6, '01a20a3e-b63f-7950-93db-bd1663bf9ff1', 'event', 'purchasable_subscription/create', 'event:purchasable_subscription/create', 'subscription:gym-1', 'gym', 'gym-1', '{"entity_name":"purchasable_subscription","event_type":"created","data":{"business_id":"gym","purchasable_uid":"item","subscription_uid":"gym-1"}}', null, 'unhandled', 0, null, 1795468211776, null, null);

insert into lanes (key, topic, due_at, lease_token, lapses) values ('subscription:salon-1', 'change', 1795468216752, null, 0);

insert into handlers (topic, seen_at, ready) values ('change', 1795468211675, 1);

insert into handlers (topic, seen_at, ready) values ('worker', 1795468211675, 0);

insert into tallies (kind, name, secret, count, first_at, last_at) values ('event', 'application/installed', '2f5c3d36', 1, 1795468211691, 1795468211691);

insert into tallies (kind, name, secret, count, first_at, last_at) values ('event', 'purchasable_subscription/create', '2f5c3d36', 3, 1795468211721, 1795468211779);
