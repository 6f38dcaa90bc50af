import { sql, type Transaction } from 'kysely'
import type { Engine, Tables } from './schema.js'
import { MIN_READ_INTERVAL_MS, type RefreshRequest } from './store.js'

/** Marking rows of `subscriptions` as wanted: the generation goes up, and the row is due as soon as reads may follow. */
export function createRefreshRequests(engine: Engine) {
  return {
    /** Marks rows as wanted; in one statement per kind of mark, each row at most once per statement. */
    async want(trx: Transaction<Tables>, wanted: readonly RefreshRequest[]) {
      const named = new Map<
        string,
        { uid: string; business: string; purchasable: string | null; times: number }
      >()
      const known = new Map<string, { uid: string; times: number }>()
      const businesses = new Map<
        string,
        { business: string; installed: number | null; at: number; times: number }
      >()
      for (const each of wanted) {
        if (each.kind === 'subscription') {
          const { subscriptionUid: uid, businessUid: business, purchasableUid: purchasable } = each
          named.set(uid, { uid, business, purchasable, times: (named.get(uid)?.times ?? 0) + 1 })
        } else if (each.kind === 'known' || each.kind === 'other_item') {
          const uid = each.subscriptionUid
          known.set(uid, { uid, times: (known.get(uid)?.times ?? 0) + 1 })
        } else {
          const { businessUid: business, install } = each
          const { times, ...before } = businesses.get(business) ?? {
            business,
            installed: null,
            at: 0,
            times: 0,
          }
          const at = install?.at ?? Number.MAX_SAFE_INTEGER
          const last = install && at >= before.at ? { installed: Number(install.installed), at } : {}
          businesses.set(business, { ...before, ...last, times: times + 1 })
        }
      }
      if (known.size + businesses.size > 0)
        await lockInOrder(trx, [...named.keys(), ...known.keys()], [...businesses.keys()])
      if (named.size > 0) await wantNamed(trx, sortedJson(named))
      if (known.size > 0) await wantKnown(trx, sortedJson(known))
      if (businesses.size > 0) await wantBusinesses(trx, sortedJson(businesses))
    },
  }

  /** Marks of different kinds come one after the other: two batches could each wait for what the other has marked. */
  async function lockInOrder(trx: Transaction<Tables>, uids: string[], businessUids: string[]) {
    const texts = (values: string[]) =>
      engine.rows(JSON.stringify(values.map((value) => ({ value }))), { value: 'text' })
    await sql`
      select subscription_uid from subscriptions where subscription_uid in (
        select value from ${texts(uids)} as named
        union
        select subscription_uid from ${texts(businessUids)} as businesses
          join subscriptions on business_uid = value
      ) order by subscription_uid ${engine.forUpdate}`.execute(trx)
  }

  /**
   * A subscription named by a notice or by `track`. The first word for whose it is stands until the platform refuses
   * it, and then the next counts; once it has been read the record does. A forged notice costs a read and no more.
   */
  async function wantNamed(trx: Transaction<Tables>, json: string) {
    const columns = { uid: 'text', business: 'text', purchasable: 'text', times: 'integer' } as const
    await sql`
      insert into subscriptions
        (subscription_uid, business_uid, purchasable_uid, wanted, done, requested_at, refresh_at, lane, lapses, created_at)
      select uid, business, purchasable, times, 0, ${engine.now()}, ${engine.now()}, 'new', 0, ${engine.now()}
      from ${engine.rows(json, columns)} as named where true
      on conflict (subscription_uid) do update set
        wanted = subscriptions.wanted + excluded.wanted,
        requested_at = excluded.requested_at,
        failure = null,
        refresh_at = ${due()},
        business_uid = case when ${disproved}
          then excluded.business_uid else subscriptions.business_uid end,
        purchasable_uid = case when ${disproved}
          then excluded.purchasable_uid else subscriptions.purchasable_uid end`.execute(trx)
  }

  // Due now, or when the pause after the last read is over (which a clock that was set back would make long); a leased
  // row keeps its lease's end (the finish sees that it was wanted again), an overdue one its place.
  function due() {
    return sql`case
      when subscriptions.lease_token is not null or subscriptions.refresh_at <= ${engine.now()}
        then subscriptions.refresh_at
      when subscriptions.not_before > ${engine.now()} and subscriptions.not_before <= ${engine.now()} + ${MIN_READ_INTERVAL_MS}
        then subscriptions.not_before
      else ${engine.now()} end`
  }

  async function wantKnown(trx: Transaction<Tables>, json: string) {
    await sql`
      update subscriptions set
        wanted = subscriptions.wanted + marks.times, requested_at = ${engine.now()}, failure = null,
        refresh_at = ${due()}
      from ${engine.rows(json, { uid: 'text', times: 'integer' })} as marks
      where subscriptions.subscription_uid = marks.uid`.execute(trx)
  }

  async function wantBusinesses(trx: Transaction<Tables>, json: string) {
    const columns = { business: 'text', installed: 'integer', at: 'integer', times: 'integer' } as const
    const isLast = sql`marks.installed is not null
      and (subscriptions.install_at is null or marks.at >= subscriptions.install_at)`
    await sql`
      update subscriptions set
        wanted = subscriptions.wanted + marks.times, requested_at = ${engine.now()}, failure = null,
        refresh_at = ${due()},
        uninstalled_at = case when not (${isLast}) then subscriptions.uninstalled_at
          when marks.installed = 0 then ${engine.now()} end,
        install_at = case when ${isLast} then marks.at else subscriptions.install_at end
      from (
        select business, installed, times, case when at > ${engine.now()} then ${engine.now()} else at end as at
        from ${engine.rows(json, columns)} as told
      ) as marks
      where subscriptions.business_uid = marks.business`.execute(trx)
  }
}

/** Never read, and the platform has refused or not shown it for the business named so far. */
const disproved = sql`(subscriptions.record is null and subscriptions.failure in
  ('platform_record_missing', 'platform_refused', 'platform_record_mismatch', 'token_refused'))`

// Sorted, so that two transactions over the same rows lock them in one order.
function sortedJson(rows: Map<string, object>): string {
  return JSON.stringify([...rows.keys()].sort().map((key) => rows.get(key)))
}
