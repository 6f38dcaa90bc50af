CREATE TABLE marketplace_schema (version integer not null);

CREATE TABLE marketplace_time (boot text not null, anchor integer not null, noted integer not null, wals integer not null);

CREATE TABLE marketplace_dates (boot text not null, dates integer not null, wall integer not null, behind integer not null);

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
    );

CREATE INDEX subscriptions_business on subscriptions (business_uid, unread, created_at desc);

CREATE INDEX subscriptions_of on subscriptions (business_uid, subscription_uid);

CREATE INDEX subscriptions_candidate on subscriptions (candidate_business_uid, subscription_uid)
      where candidate_business_uid is not null;

CREATE INDEX subscriptions_due on subscriptions (urgency, refresh_at) where refresh_at is not null;

CREATE INDEX subscriptions_owed on subscriptions (owed_since) where owed_since is not null and refresh_at is not null;

CREATE INDEX subscriptions_served on subscriptions (read_at) where unread = 0 and gone is null and state is not null and not (state = 'canceled' and entitles = 0) and failing_since is null;

CREATE INDEX subscriptions_failing on subscriptions (gone, failing_since) where failing_since is not null;

CREATE INDEX subscriptions_given_up on subscriptions (unread, requested_at) where refresh_at is null;

CREATE INDEX subscriptions_made_up on subscriptions (requested_at)
      where unread > 0 and (failure is not null or refresh_at is null);

CREATE INDEX subscriptions_denied on subscriptions (requested_at) where unread > 0 and (failure is not null or refresh_at is null) and (refresh_at is null or (verifying = 0 and failure in ('platform_refused', 'platform_record_mismatch', 'platform_record_missing', 'token_refused')));

CREATE INDEX subscriptions_leased on subscriptions (refresh_at) where lease_token is not null;

CREATE INDEX subscriptions_suspect on subscriptions (lapses, refresh_at) where suspect = 1;

CREATE TABLE searches (
      business_uid text primary key,
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
    );

CREATE INDEX searches_due on searches (by_install, search_at);

CREATE INDEX searches_leased on searches (search_at) where lease_token is not null;

CREATE INDEX searches_asked on searches (asked);

CREATE INDEX searches_wanted on searches (wanted_at);

CREATE INDEX searches_failing on searches (asked) where failures > 0;

CREATE TABLE store_owner (
      id integer primary key,
      fingerprint text,
      has_read integer not null
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
    );

CREATE INDEX journal_lane on journal (key, seq) where "status" = 'pending';

CREATE INDEX journal_retrying on journal (seq) where status = 'pending' and attempts > 0;

CREATE INDEX journal_aside on journal (topic, seq) where status = 'unhandled' and kind = 'event' and settled_at is not null;

CREATE INDEX journal_status on journal (status, kind, seq, unread);

CREATE INDEX journal_settled on journal (status, kind, settled_at)
      where settled_at is not null and status in ('done', 'dead', 'unhandled');

CREATE INDEX journal_business on journal (business_uid, kind, received_at, seq) where business_uid is not null;

CREATE INDEX journal_subscription on journal (subscription_uid, received_at, seq)
      where subscription_uid is not null;

CREATE INDEX journal_outcome on journal (business_uid, settled_at, seq)
      where business_uid is not null and settled_at is not null;

CREATE INDEX journal_cause on journal (cause, received_at, seq) where cause is not null;

CREATE TABLE lanes (
      key text primary key,
      topic text not null,
      due_at bigint not null,
      lease_token text,
      lapses integer not null,
      suspect integer not null default 0,
      unread integer not null default 0
    );

CREATE INDEX lanes_due on lanes (topic, unread, due_at);

CREATE INDEX lanes_leased on lanes (due_at) where lease_token is not null;

CREATE INDEX lanes_suspect on lanes (lapses, due_at) where suspect = 1;

CREATE TABLE handlers (
      topic text primary key,
      seen_at bigint not null,
      rescued_at bigint,
      rescue_from bigint
    );

CREATE TABLE platform_facts (
      id integer primary key,
      facts text not null
    );

insert into marketplace_schema (version) values (2);

insert into marketplace_time (boot, anchor, noted, wals) values ('08416bec-abcb-4c2d-814b-c9ba1e286a41', 1795737435559, 1795802764122, 0);

insert into marketplace_dates (boot, dates, wall, behind) values ('08416bec-abcb-4c2d-814b-c9ba1e286a41', 1795737435559, 1795737435559, 0);

insert into subscriptions (subscription_uid, business_uid, candidate_business_uid, purchasable_uid, record, unread, state, gone, read_at, generation, settled_generation, requested_at, owed_since, refresh_at, not_before, urgency, cause, verifying, lease_token, finished_by, suspect, lapses, failure, progress, install_at, install_arrived_at, uninstalled_at, failing_since, served_since, update_at, end_at, quiet_until_read, entitles, created_at) values ('bakery-1', 'bakery', null, 'item', '{"uid":"bakery-1","business_uid":"bakery","purchasable_uid":"item","purchase_state":"purchased","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null}', 0, 'purchased', null, 1795802764014, 1, 1, 1795802763948, null, 1795802769014, 1795802764264, 3, 0, 0, null, 'vm/20595/65322614/sYNA07u6upvX/11', 0, 0, null, '{"generation":1,"owed":1,"verified":1,"outages":0,"refusals":0,"refusedSince":null,"refusedAt":null,"missing":0,"missingSince":null,"goneSince":null,"heldBack":0,"dissent":null}', null, null, null, null, 1795802763948, null, null, 0, 1, 1795802763948);

insert into subscriptions (subscription_uid, business_uid, candidate_business_uid, purchasable_uid, record, unread, state, gone, read_at, generation, settled_generation, requested_at, owed_since, refresh_at, not_before, urgency, cause, verifying, lease_token, finished_by, suspect, lapses, failure, progress, install_at, install_arrived_at, uninstalled_at, failing_since, served_since, update_at, end_at, quiet_until_read, entitles, created_at) values ('salon-1', 'salon', null, 'item', '{"uid":"salon-1","business_uid":"salon","purchasable_uid":"item","purchase_state":"suspended","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null}', 0, 'suspended', null, 1795802764014, 1, 1, 1795802763957, null, 1795802769014, 1795802764264, 3, 0, 0, null, 'vm/20595/65322614/sYNA07u6upvX/11', 0, 0, null, '{"generation":1,"owed":1,"verified":1,"outages":0,"refusals":0,"refusedSince":null,"refusedAt":null,"missing":0,"missingSince":null,"goneSince":null,"heldBack":0,"dissent":null}', null, null, null, null, 1795802763957, null, null, 0, 0, 1795802763957);

insert into subscriptions (subscription_uid, business_uid, candidate_business_uid, purchasable_uid, record, unread, state, gone, read_at, generation, settled_generation, requested_at, owed_since, refresh_at, not_before, urgency, cause, verifying, lease_token, finished_by, suspect, lapses, failure, progress, install_at, install_arrived_at, uninstalled_at, failing_since, served_since, update_at, end_at, quiet_until_read, entitles, created_at) values ('gym-1', 'gym', null, 'item', null, 1, null, null, null, 1, 0, 1795802764132, 1795802764132, 1795802764132, null, 1, 0, 0, null, null, 0, 0, null, null, null, null, null, null, null, null, null, 0, 0, 1795802764132);

insert into store_owner (id, fingerprint, has_read) values (1, '28c98074833ae8e6eac0e5e27aca166aea341c2f61d406fcfc045307ea796ae4', 1);

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, status, attempts, error, received_at, due_at, settled_at, tried_under, issues, cause, secret, unread, stack, payload) values (1, '01a21e2f-9294-71b3-960b-3bbfc129d351', 'event', 'application/installed', 'event:application/installed', 'business:bakery', 'bakery', null, 'unhandled', 0, null, 1795802763927, null, null, null, null, null, '2fabc262', 0, null, '{"entity_name":"application","event_type":"installed","data":{"business_id":"bakery","app_code_name":"app","event_time":"2026-11-01T10:00:00Z"}}');

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, status, attempts, error, received_at, due_at, settled_at, tried_under, issues, cause, secret, unread, stack, payload) values (2, '01a21e2f-92a7-7501-9a82-e445ccc51a1e', 'event', 'purchasable_subscription/create', 'event:purchasable_subscription/create', 'subscription:bakery-1', 'bakery', 'bakery-1', 'unhandled', 0, null, 1795802763948, null, null, null, null, null, '2fabc262', 0, null, '{"entity_name":"purchasable_subscription","event_type":"created","data":{"business_id":"bakery","purchasable_uid":"item","subscription_uid":"bakery-1"}}');

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, status, attempts, error, received_at, due_at, settled_at, tried_under, issues, cause, secret, unread, stack, payload) values (3, '01a21e2f-92b3-7844-994b-86811d238cf6', 'event', 'purchasable_subscription/create', 'event:purchasable_subscription/create', 'subscription:salon-1', 'salon', 'salon-1', 'unhandled', 0, null, 1795802763957, null, null, null, null, null, '2fabc262', 0, null, '{"entity_name":"purchasable_subscription","event_type":"created","data":{"business_id":"salon","purchasable_uid":"item","subscription_uid":"salon-1"}}');

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, status, attempts, error, received_at, due_at, settled_at, tried_under, issues, cause, secret, unread, stack, payload) values (4, '01a21e2f-92ec-7feb-a0f3-fadb5f968c4b', 'change', '', 'change', 'changes:bakery', 'bakery', 'bakery-1', 'done', 1, null, 1795802764016, null, 1795802764078, 'vm/20595/65322614/sYNA07u6upvX/12', null, 'event', null, 0, null, '{"id":"01a21e2f-92ec-7feb-a0f3-fadb5f968c4b","business_uid":"bakery","subscription_uid":"bakery-1","from":null,"to":"purchased","gone":null,"cause":"event","record":{"uid":"bakery-1","business_uid":"bakery","purchasable_uid":"item","purchase_state":"purchased","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null},"observedAt":"2026-11-27T18:06:04.012Z"}');

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, status, attempts, error, received_at, due_at, settled_at, tried_under, issues, cause, secret, unread, stack, payload) values (5, '01a21e2f-92ec-77e4-b2ed-a5f398464396', 'entitlement', '', 'entitlement', 'entitlement:bakery', 'bakery', 'bakery-1', 'unhandled', 0, null, 1795802764016, null, null, null, null, null, null, 0, null, '{"id":"01a21e2f-92ec-77e4-b2ed-a5f398464396","business_uid":"bakery","cause":"event","before":null,"after":"item"}');

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, status, attempts, error, received_at, due_at, settled_at, tried_under, issues, cause, secret, unread, stack, payload) values (6, '01a21e2f-92ec-7a51-97a2-ccb500cfbb5d', 'change', '', 'change', 'changes:salon', 'salon', 'salon-1', 'pending', 1, 'Error: the handler fails', 1795802764016, 1795802769078, 1795802764078, 'vm/20595/65322614/sYNA07u6upvX/12', null, 'event', null, 0, 'Error: the handler fails
    at /app/__tests__/support/releases/write.ts:29:41
    at handler (/app/lib/work/handling/handlers.ts:34:51)
    at handler (/app/lib/work/handling/call-handler.ts:36:44)
    at call (/app/lib/operations/reporting.ts:124:70)
    at Object.around [as call] (/app/lib/work/handling/call-handler.ts:36:24)
    at call (/app/lib/work/handling/call-handlers.ts:158:21)
    at Array.map (<anonymous>)
    at Object.map [as call] (/app/lib/work/handling/call-handlers.ts:157:14)
    at call (/app/lib/work/handling/dispatcher.ts:167:36)
    at runInSlot (/app/lib/work/leases/lease-loop.ts:116:7)', '{"id":"01a21e2f-92ec-7a51-97a2-ccb500cfbb5d","business_uid":"salon","subscription_uid":"salon-1","from":null,"to":"suspended","gone":null,"cause":"event","record":{"uid":"salon-1","business_uid":"salon","purchasable_uid":"item","purchase_state":"suspended","purchase_price":"9.99","updated_at":"2026-11-01T10:00:00.000Z","created_at":"2026-11-01T10:00:00.000Z","payment_type":"monthly","cancellation_date":null,"expiration_date":null},"observedAt":"2026-11-27T18:06:04.012Z"}');

insert into journal (seq, id, kind, name, topic, key, business_uid, subscription_uid, status, attempts, error, received_at, due_at, settled_at, tried_under, issues, cause, secret, unread, stack, payload) values (7, '01a21e2f-9362-73eb-b994-28cf4696dbb0', 'event', 'purchasable_subscription/create', 'event:purchasable_subscription/create', 'subscription:gym-1', 'gym', 'gym-1', 'unhandled', 0, null, 1795802764132, null, null, null, null, null, '2fabc262', 1, null, '{"entity_name":"purchasable_subscription","event_type":"created","data":{"business_id":"gym","purchasable_uid":"item","subscription_uid":"gym-1"}}');

insert into lanes (key, topic, due_at, lease_token, lapses, suspect, unread) values ('changes:salon', 'change', 1795802769078, null, 0, 0, 0);

insert into handlers (topic, seen_at, rescued_at, rescue_from) values ('change', 1795802763910, 1795802763920, null);

insert into platform_facts (id, facts) values (1, '{"since":"2026-11-27T18:06:03.879Z","events":[{"event":"application/installed","deliveries":1,"examined":1,"headers":[{"name":"host","count":1},{"name":"connection","count":1},{"name":"content-type","count":1},{"name":"accept","count":1},{"name":"accept-language","count":1},{"name":"sec-fetch-mode","count":1},{"name":"user-agent","count":1},{"name":"accept-encoding","count":1},{"name":"content-length","count":1}],"userAgents":[{"name":"node","count":1}]},{"event":"purchasable_subscription/create","deliveries":3,"examined":3,"headers":[{"name":"host","count":3},{"name":"connection","count":3},{"name":"content-type","count":3},{"name":"accept","count":3},{"name":"accept-language","count":3},{"name":"sec-fetch-mode","count":3},{"name":"user-agent","count":3},{"name":"accept-encoding","count":3},{"name":"content-length","count":3}],"userAgents":[{"name":"node","count":3}]}],"tokens":{"count":2,"shortestSeconds":null,"longestSeconds":null,"expiresIn":{"number":0,"string":0,"none":2,"other":0}},"refusals":[]}');
