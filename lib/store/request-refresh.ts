import type { Given, Script } from './dialect.js'
import type { Engine } from './engine.js'
import { dueAfterRequest, urgencyAfterRequest } from './request-sql.js'
import { prepare, prepareInsert } from './script.js'
import { type Connection, sql } from './sql.js'
import type { RefreshRequest } from './store.js'

export interface Requested {
  request: RefreshRequest
  /** Whether an event asks, and not `track` or `refresh`: those wait behind events. */
  byEvent: boolean
}

interface Named {
  uid: string
  business: string
  purchasable: string | null
  times: number
  event: 0 | 1
  /** 1: all of them ask for no change of what the first read finds. */
  quiet: 0 | 1
  /** 1: of another item, so it is remembered and not read. */
  other: 0 | 1
}

/** Requests for reads: the generation goes up, and the row is due as soon as reads may follow. */
export function createRefreshRequests(engine: Engine) {
  const requestNamed = prepareInsert(engine, NAMED, named)
  const requestOrdinary = prepare(engine, NAMED, ordinary)
  const requestKnown = prepare(engine, KNOWN, known)
  const requestBusinesses = prepare(engine, BUSINESSES, businesses)
  const lock = prepare(engine, { uid: 'text', business: 'text' }, locked)

  return {
    /** Marks rows as requested; in one statement per kind of request, each row at most once per statement. */
    *request(requests: readonly Requested[]): Script {
      const named = new Map<string, Named>()
      const known = new Map<string, { uid: string; times: number; event: 0 | 1 }>()
      const businesses = new Map<
        string,
        { business: string; installed: number | null; at: number; times: number; event: 0 | 1 }
      >()
      for (const { request: each, byEvent } of requests) {
        const event = byEvent ? 1 : 0
        if (each.kind === 'subscription' || each.kind === 'other_item') {
          const { subscriptionUid: uid, businessUid: business, purchasableUid: purchasable } = each
          const before = named.get(uid)
          const other = each.kind === 'other_item' ? 1 : 0
          const times = (before?.times ?? 0) + 1
          const asksQuiet = each.kind === 'subscription' && each.quiet === true
          const quiet = asksQuiet && (before?.quiet ?? 1) === 1 ? 1 : 0
          // What is the app's own by one request is not made another's by the next.
          if (before && before.other < other) named.set(uid, { ...before, times, quiet })
          else
            named.set(uid, {
              uid,
              business,
              purchasable,
              times,
              event: or(before?.event, event),
              quiet,
              other,
            })
        } else if (each.kind === 'known') {
          const uid = each.subscriptionUid
          const before = known.get(uid)
          known.set(uid, { uid, times: (before?.times ?? 0) + 1, event: or(before?.event, event) })
        } else {
          const { businessUid: business, install } = each
          const before = businesses.get(business) ?? { business, installed: null, at: 0, times: 0, event }
          const at = install?.at ?? Number.MAX_SAFE_INTEGER
          const last = install && at >= before.at ? { installed: Number(install.installed), at } : {}
          const times = before.times + 1
          businesses.set(business, { ...before, ...last, times, event: or(before.event, event) })
        }
      }
      // Requests of different kinds come one after the other: two batches could each wait for what the other has marked.
      if (engine.holdNames && known.size + businesses.size > 0)
        yield lock([
          ...[...named.keys(), ...known.keys()].map((uid) => ({ uid, business: null })),
          ...[...businesses.keys()].map((business) => ({ uid: null, business })),
        ])
      const unusual = yield* allButOrdinary(sorted(named))
      if (unusual.length > 0) yield requestNamed(unusual)
      if (known.size > 0) yield requestKnown(sorted(known))
      if (businesses.size > 0) yield requestBusinesses(sorted(businesses))
    },

    /** One batch of what was remembered of other items, where the item is one of these now; answers how many. */
    async adopt(trx: Connection, purchasableUids: readonly string[]): Promise<number> {
      const ours =
        purchasableUids.length === 0 ? sql`` : sql`and purchasable_uid in (${sql.join([...purchasableUids])})`
      const rows = await sql`
        update subscriptions set
          generation = 1, requested_at = ${engine.now()}, owed_since = ${engine.now()},
          refresh_at = ${engine.now()}, urgency = 1, unread = 1
        where subscription_uid in (
          select subscription_uid from subscriptions where unread = 2 ${ours} limit 500
        ) and unread = 2
        returning subscription_uid`.execute(trx)
      return rows.length
    },
  }

  /**
   * SQLite writes anew the entries of every index of which an update names a column, whether it changes or not. So
   * what is named as it is known, which is nearly all, is updated by a statement that names few; answers the rest.
   */
  function* allButOrdinary(rows: readonly Named[]): Script<readonly Named[]> {
    if (!engine.rewritesIndexes || rows.length === 0) return rows
    const updated = (yield { ...requestOrdinary(rows), answers: true }) as readonly { uid: string }[]
    if (updated.length === 0) return rows
    const uids = new Set(updated.map(({ uid }) => uid))
    return rows.filter(({ uid }) => !uids.has(uid))
  }

  function ordinary({ of }: Given<keyof typeof NAMED>) {
    return sql`
      update subscriptions set
        generation = generation + ${of('times')}, requested_at = ${of('now')},
        owed_since = coalesce(owed_since, ${of('now')}),
        urgency = ${urgencyAfterRequest(sql`case when ${of('event')} = 1 then unread else 2 end`)},
        quiet_until_read = case when ${of('quiet')} = 1 and unread = 1 then quiet_until_read else 0 end,
        refresh_at = ${dueAfterRequest(of('now'))}
      where subscription_uid = ${of('uid')} and business_uid = ${of('business')}
        and unread < 2 and failure is null and ${of('other')} = 0
      returning subscription_uid as uid`
  }

  function locked({ table }: Given) {
    return sql`
      with given as materialized (select * from ${table} as rows)
      select subscription_uid from subscriptions where subscription_uid in (
        select uid from given where uid is not null
        union
        select subscription_uid from given join subscriptions on business_uid = business
      ) order by subscription_uid ${engine.forUpdate}`
  }

  /**
   * A subscription named by a notice or by `track`. The first request decides its business; another one is a candidate,
   * which a read tries when the first does not show the subscription. So a forged notice costs a read and no more.
   * A row that was only remembered, of another item, has not been decided.
   */
  function named({ insert, of }: Given<keyof typeof NAMED>) {
    // A request of another item leaves a row as it is that nobody has asked to be read.
    const isOther = sql`subscriptions.generation + excluded.generation = 0`
    const isFirst = sql`subscriptions.unread = 2`
    return sql`
      insert into subscriptions
        (subscription_uid, business_uid, purchasable_uid, generation, settled_generation, requested_at, owed_since,
          refresh_at, urgency, unread, verifying, lapses, quiet_until_read, created_at)
      ${insert(sql`${of('uid')}, ${of('business')}, ${of('purchasable')}, ${of('times')} * (1 - ${of('other')}), 0,
        ${of('now')}, case when ${of('other')} = 0 then ${of('now')} end, case when ${of('other')} = 0 then ${of('now')} end,
        case when ${of('event')} = 1 then 1 else 2 end, 1 + ${of('other')}, 0, 0, ${of('quiet')}, ${of('now')}`)}
      on conflict (subscription_uid) do update set
        generation = subscriptions.generation +
          case when ${isFirst} or excluded.generation > 0 then excluded.generation else 1 end,
        requested_at = excluded.requested_at,
        owed_since = case when not (${isOther}) then coalesce(subscriptions.owed_since, excluded.requested_at) end,
        failure = null,
        -- Whoever asked before and wants the change gets it; of what was read before, nothing is quiet.
        quiet_until_read = case when excluded.quiet_until_read = 1 and
          (${isFirst} or (subscriptions.unread = 1 and subscriptions.quiet_until_read = 1)) then 1 else 0 end,
        unread = case when subscriptions.unread = 2 and excluded.unread = 1 then 1 else subscriptions.unread end,
        urgency = ${urgencyAfterRequest(sql`case when excluded.urgency = 1 and subscriptions.unread = 0 then 0 else excluded.urgency end`)},
        refresh_at = case when not (${isOther}) then ${dueAfterRequest(sql`excluded.requested_at`)} end,
        business_uid = case when ${isFirst} then excluded.business_uid else subscriptions.business_uid end,
        purchasable_uid = case when ${isFirst} then excluded.purchasable_uid else subscriptions.purchasable_uid end,
        candidate_business_uid = case
          when not (${isFirst}) and excluded.business_uid <> subscriptions.business_uid then excluded.business_uid
          else subscriptions.candidate_business_uid end`
  }

  function known({ table }: Given) {
    return sql`
      update subscriptions set
        generation = subscriptions.generation + marks.times, requested_at = marks.now, failure = null,
        owed_since = coalesce(subscriptions.owed_since, marks.now),
        urgency = ${urgencyAfterRequest(byMark)},
        quiet_until_read = ${quietByMark},
        refresh_at = ${dueAfterRequest(sql`marks.now`)}
      from ${table} as marks
      where subscriptions.subscription_uid = marks.uid and subscriptions.unread < 2`
  }

  function businesses({ table }: Given) {
    const isLast = sql`marks.installed is not null
      and (subscriptions.install_at is null or marks.at >= subscriptions.install_at)`
    return sql`
      update subscriptions set
        generation = subscriptions.generation + marks.times, requested_at = marks.now, failure = null,
        owed_since = coalesce(subscriptions.owed_since, marks.now),
        urgency = ${urgencyAfterRequest(byMark)},
        quiet_until_read = ${quietByMark},
        refresh_at = ${dueAfterRequest(sql`marks.now`)},
        uninstalled_at = case when not (${isLast}) then subscriptions.uninstalled_at
          when marks.installed = 0 then marks.now end,
        install_at = case when ${isLast} then marks.at else subscriptions.install_at end
      from (
        select business, installed, times, event, now, case when at > now then now else at end as at
        from ${table} as given
      ) as marks
      where subscriptions.business_uid = marks.business and subscriptions.unread < 2`
  }
}

/** By an event 0 or, never read, 1; by `track` or `refresh` 2. */
const byMark = sql`case when marks.event = 0 then 2 else subscriptions.unread end`
/** What an event announces is told, also where it is first seen by a read that was asked for quietly. */
const quietByMark = sql`case when marks.event = 1 then 0 else subscriptions.quiet_until_read end`

function or(before: 0 | 1 | undefined, event: 0 | 1): 0 | 1 {
  return before === 1 ? 1 : event
}

// Sorted, so that two transactions over the same rows lock them in one order.
function sorted<Row>(rows: Map<string, Row>): Row[] {
  return [...rows.keys()].sort().map((key) => rows.get(key) as Row)
}

const NAMED = {
  uid: 'text',
  business: 'text',
  purchasable: 'text',
  times: 'integer',
  event: 'integer',
  quiet: 'integer',
  other: 'integer',
} as const
const KNOWN = { uid: 'text', times: 'integer', event: 'integer' } as const
const BUSINESSES = {
  business: 'text',
  installed: 'integer',
  at: 'integer',
  times: 'integer',
  event: 'integer',
} as const

export type RefreshRequests = ReturnType<typeof createRefreshRequests>
