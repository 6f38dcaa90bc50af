import { describe, expect, it } from '@jest/globals'
import { DAY } from '../../../lib/base/clock.js'
import {
  type Announcement,
  MIN_READ_INTERVAL_MS,
  type RefreshRequest,
} from '../../../lib/store/port/store.js'
import type { Engine } from '../../../lib/store/sql/engine.js'
import type { Query, Sql } from '../../../lib/store/sql/sql.js'
import type { Requested } from '../../../lib/store/subscriptions/merge-requests.js'
import { createRefreshRequests } from '../../../lib/store/subscriptions/requests.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'

describe.each(ENGINE_NAMES)('D259 the requests of a batch on %s', (name) => {
  const engine = useEngine(name)

  async function open() {
    const opened = await openStoreWithSql(await engine.freshAddress(), { clock: STOPPED })
    const { request } = createRefreshRequests(atNow(opened.engine))

    /** The rows that these requests leave, each request in a batch of its own or all in one. */
    async function rowsAfter(before: readonly string[], batches: readonly (readonly Requested[])[]) {
      for (const statement of ['delete from subscriptions', ...before]) await opened.sql(statement)
      for (const batch of batches) await opened.engine.writeAll(request(batch))
      return opened.sql('select * from subscriptions order by subscription_uid')
    }
    return async (before: readonly string[], requests: readonly Requested[]) => ({
      single: await rowsAfter(
        before,
        requests.map((each) => [each]),
      ),
      merged: await rowsAfter(before, [requests]),
    })
  }

  it('end as if each had come in a batch of its own, in their order', async () => {
    const compare = await open()
    const random = randomFrom(20_261_125)
    for (let round = 0; round < 250; round++) {
      const before = UIDS.filter(() => random(3) > 0).map((uid) => someRow(uid, random))
      const requests = Array.from({ length: 2 + random(7) }, () => someRequest(random))
      const { single, merged } = await compare(before, requests)
      expect({ round, before, requests, rows: merged }).toEqual({ round, before, requests, rows: single })
    }
  })

  it('are due at the end of the pause after the last read, and now if no pause is that long', async () => {
    const compare = await open()
    for (const [notBefore, dueAt] of [
      [null, NOW],
      [NOW, NOW],
      [NOW + 1, NOW + 1],
      [LONGEST, LONGEST],
      [LONGEST + 1, NOW],
      [NOW + DAY, NOW],
    ] as const) {
      const row = rowOf('s1', { business_uid: 'A', unread: 0, not_before: notBefore })
      const { merged } = await compare([row], [event(named('s1', 'A'))])
      expect({ notBefore, dueAt: merged.map(({ refresh_at: at }) => at) }).toEqual({
        notBefore,
        dueAt: [dueAt],
      })
    }
  })

  it('let the first business own a new subscription, and make the next one the candidate', async () => {
    const compare = await open()
    const { merged } = await compare([], [event(named('s1', 'A')), event(named('s1', 'B'))])
    expect(merged).toMatchObject([{ business_uid: 'A', candidate_business_uid: 'B' }])
  })

  it('keep an end that one business announces when an event of another follows', async () => {
    const compare = await open()
    const { merged } = await compare(
      [rowOf('s1', { business_uid: 'A', unread: 0 })],
      [event({ ...named('s1', 'A'), announces: 'end' }), event({ ...named('s1', 'B'), announces: 'access' })],
    )
    expect(merged).toMatchObject([{ end_at: NOW, update_at: NOW }])
  })

  it('note an update that a record announces for a subscription in the store', async () => {
    const compare = await open()
    const { merged } = await compare(
      [rowOf('s1', { business_uid: 'A', unread: 0 }), rowOf('s2', { business_uid: 'B', unread: 0 })],
      ['s1', 's2'].map((subscriptionUid) =>
        event({ kind: 'stored', subscriptionUid, businessUid: 'A', announces: 'update' }),
      ),
    )
    expect(merged).toMatchObject([{ update_at: NOW }, { update_at: null }])
  })
})

const NOW = 1_790_000_000_000
/** The end of the pause of a row that is read now. */
const LONGEST = NOW + MIN_READ_INTERVAL_MS
/** The end of the pause of a row that was just read. */
const SOON = NOW + 100
const UIDS = ['s1', 's2', '😀', '\uff21']
const BUSINESSES = ['A', 'B', 'C']

const STOPPED = { now: () => NOW, monotonic: () => NOW, setTimeout, clearTimeout }

/** The engine with a server's clock that stands still. */
function atNow(engine: Engine): Engine {
  const stopped = (query: Query): Query => ({
    ...query,
    text: query.text.replaceAll('(select (extract(epoch from clock_timestamp()) * 1000)::bigint)', `${NOW}`),
  })
  return { ...engine, compile: (query: Sql) => stopped(engine.compile(query)) }
}

function event(request: RefreshRequest): Requested {
  return { request, cause: 'event' }
}

function named(subscriptionUid: string, businessUid: string) {
  return { kind: 'subscription', subscriptionUid, businessUid, purchasableUid: null } as const
}

function someRequest(random: (below: number) => number): Requested {
  const one = <T>(list: readonly T[]) => list[random(list.length)] as T
  const subscriptionUid = one(UIDS)
  const businessUid = one(BUSINESSES)
  if (random(6) === 0)
    return {
      request: { ...named(subscriptionUid, businessUid), ...(random(2) ? { quiet: true } : {}) },
      cause: one(['request', 'import']),
    }
  if (random(6) === 0) return { request: { kind: 'business', businessUid, install: null }, cause: 'request' }
  const announces = one<Announcement | undefined>([undefined, 'update', 'end', 'access'])
  const announced = announces && { announces }
  return event(
    one<RefreshRequest>([
      { ...named(subscriptionUid, businessUid), purchasableUid: one(['i1', 'i2', null]), ...announced },
      { ...named(subscriptionUid, businessUid), ...announced },
      { kind: 'stored', subscriptionUid, businessUid, ...announced },
      { kind: 'business', businessUid, install: { installed: random(2) === 0, at: one(DATES) } },
    ]),
  )
}

const DATES = [null, NOW - 2_000, NOW - 1_000, NOW - 1_000, NOW + 1_000, NOW + 2 * DAY]

function someRow(uid: string, random: (below: number) => number): string {
  const one = <T>(list: readonly T[]) => list[random(list.length)] as T
  const isLeased = random(5) === 0
  return rowOf(uid, {
    business_uid: one(BUSINESSES),
    candidate_business_uid: one([null, null, 'C']),
    unread: random(2),
    generation: 2,
    settled_generation: 1 + random(2),
    owed_since: one([null, NOW - 5_000]),
    refresh_at: isLeased ? NOW + 60_000 : one([null, NOW - 1_000, NOW + 50, NOW + 3_000, NOW + DAY]),
    not_before: one([null, NOW - 10_000, NOW - 1_000, SOON, NOW + 200, NOW + DAY]),
    urgency: random(5),
    cause: random(4),
    lease_token: isLeased ? 'h/1/x/1' : null,
    suspect: one([0, 0, 0, 1]),
    failure: one([null, 'platform_refused']),
    install_at: one([null, ...DATES]),
    install_arrived_at: one([null, NOW - 1_500, NOW + 500]),
    uninstalled_at: one([null, NOW - 1_500]),
    update_at: one([null, NOW - 1_500]),
    end_at: one([null, NOW - 1_500]),
    quiet_until_read: random(2),
  })
}

/** An insert of a row of `subscriptions`. */
function rowOf(uid: string, columns: Record<string, string | number | null>): string {
  const row = {
    ...{ subscription_uid: uid, generation: 1, settled_generation: 1, urgency: 4, cause: 3, verifying: 0 },
    ...{ suspect: 0, lapses: 0, quiet_until_read: 0, created_at: NOW - DAY, refresh_at: NOW + DAY },
    ...columns,
  }
  const values = Object.values(row).map((value) => (typeof value === 'string' ? `'${value}'` : `${value}`))
  return `insert into subscriptions (${Object.keys(row).join(', ')}) values (${values.join(', ')})`
}

/** Numbers below a bound, the same in each run. */
function randomFrom(seed: number) {
  let state = seed
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
