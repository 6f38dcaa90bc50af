import { createGivenClaims } from '../leases/given-claims.js'
import { newLeaseToken, TAKEN_BACK } from '../leases/leases.js'
import { createLookBack, type LookBack } from '../leases/look-back.js'
import type { Suspects } from '../leases/suspects.js'
import {
  type ClaimLanes,
  type ClaimSuspectLane,
  type Entry,
  EVERY_EVENT,
  isOfRead,
  isTopicAmong,
  LANE_URGENCY,
  type LaneClaim,
  type LaneFinish,
  type LaneUrgency,
  type Leased,
  type Topic,
  topicOf,
} from '../port/store.js'
import type { ClockOffset } from '../sql/clock-offset.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, sql } from '../sql/sql.js'
import type { Transaction } from '../sql/transaction.js'
import { MAX_BYTES } from '../sql/within-bytes.js'
import { asEntry, dueTopics, type EntryRow, headsOf, isDue, otherTopics } from './heads.js'
import { type Lanes, MAX_HANDED_OUT } from './lanes.js'

/** A lane that is not suspect: it is free, or was taken from its holder. */
const IS_UNSUSPECTED = sql`suspect = 0 and (lease_token is null or lease_token = ${sql.lit(TAKEN_BACK)})`

/** Leases lanes for handlers, and returns their first entries. */
export function createLaneClaims(options: {
  engine: Engine
  read: Engine['read']
  write: Engine['write']
  lanes: Pick<Lanes, 'advance'>
  suspects: Pick<Suspects, 'begin' | 'lanesOf'>
  finishLanes(trx: Transaction, finishes: readonly LaneFinish[]): Promise<unknown>
  offsetOf: ClockOffset
}) {
  const { engine, read, write, lanes, suspects, finishLanes, offsetOf } = options
  /** Whether the last claim leased as many lanes as its limit. */
  let wasFull = false
  /** How many lanes the payloads of one claim allow, judged by the claims before. */
  let lanesThatFit = Number.POSITIVE_INFINITY

  /** Leases of which no entry is handled: without entries, or their sync failed. */
  let unbegun: Leased[] = []

  async function returnUnbegun() {
    if (unbegun.length === 0) return
    const untried = unbegun.map((lease) => ({ ...lease, results: [], keepLease: false }))
    await write((trx) => finishLanes(trx, untried))
    unbegun = []
  }

  const given = createGivenClaims(engine, 'lane')
  const lookBack = createLookBack(engine)
  /** Topics that lanes have or had: the search for others leaves out their part of the index. */
  const seen = new Set<Topic>()

  /** The due classes of the topics among `named`. */
  async function dueAmong(db: Connection, named: readonly Topic[]): Promise<DueTopic[]> {
    const among = new Set(named)
    const due = await dueTopics(engine, db)
    return due.filter(({ topic }) => isTopicAmong(among, topic))
  }

  /** Picks and locks due lanes, of each class the longest due. Returns their classes by key. */
  async function pick(
    trx: Connection,
    { topics: named, limit, exceptKeys, choose = ([first]) => first }: ClaimLanes,
    known: readonly DueTopic[] | undefined,
    look: LookBack,
  ): Promise<Map<string, LaneUrgency>> {
    const rowsOf = (topics: readonly DueTopic[]) => dueLanes(trx, topics, { limit, exceptKeys }, look)
    const due = engine.isLocal ? await rowsOf(known ?? (await dueAmong(trx, named))) : await dueOfSeen()
    return due.length === 0 ? new Map() : pickLanes(due, limit, choose)

    /** Of the topics that were seen, and at once a search for others, which finds none but the first time. */
    async function dueOfSeen() {
      for (const topic of named) if (topic !== EVERY_EVENT) seen.add(topic)
      const among = new Set(named)
      for (;;) {
        const topics = [...seen].filter((topic) => isTopicAmong(among, topic))
        const classes = topics.flatMap((topic) => ([0, 1] as const).map((unread) => ({ topic, unread })))
        const [others, rows] = await Promise.all([otherTopics(trx, [...seen]), rowsOf(classes)])
        const news = others.filter((topic) => !seen.has(topic))
        for (const topic of news) seen.add(topic)
        if (news.length > 0) continue
        for (const each of classes) {
          const found = rows.filter(({ topic, unread }) => topic === each.topic && unread === each.unread)
          look.found(partOf(each), Math.max(0, ...found.map(({ due_for }) => due_for)))
        }
        return rows
      }
    }
  }

  /** The due lanes of these topics that nobody has leased, by class and by how long they have been due, and locked. */
  async function dueLanes(
    trx: Connection,
    topics: readonly DueTopic[],
    { limit, exceptKeys }: Pick<ClaimLanes, 'limit' | 'exceptKeys'>,
    look: LookBack,
  ): Promise<DueLane[]> {
    if (topics.length === 0) return []
    // A range of the index for each class of each topic: `topic in (…)` would sort all due lanes.
    const ranges = topics.map(
      ({ topic, unread }, i) => sql`select * from (
        select key, due_at, topic, unread, ${engine.now()} - due_at as due_for, ${sql.lit(urgencyOf(topic, unread))} as urgency
        from lanes
        where topic = ${topic} and unread = ${sql.lit(unread)}
          and ${isDue(engine)} and ${look.since(partOf({ topic, unread }), sql`due_at`)} and ${IS_UNSUSPECTED}
          and key not in ${engine.keys(exceptKeys)}
        order by due_at limit ${limit} ${engine.skipLocked}
      ) as ${sql.ref(`range_${i}`)}`,
    )
    return sql<DueLane>`
      select * from (${sql.join(ranges, ' union all ')}) as due order by urgency, due_at`.execute(trx)
  }

  /** Leases due lanes. `heads`, their first entries, are known when the transaction has ended. */
  async function lease(
    trx: Transaction,
    options: ClaimLanes,
    known: readonly DueTopic[] | undefined,
    look: LookBack,
  ): Promise<LeasedLanes> {
    const leaseToken = newLeaseToken()
    const urgencies = await pick(trx, options, known, look)
    const keys = [...urgencies.keys()]
    if (keys.length === 0) return { leases: [], urgencies, heads: Promise.resolve(new Map()) }
    const count = Math.min(MAX_HANDED_OUT, Math.max(1, Math.floor(options.entryLimit / keys.length)))
    const heads = headsOf(engine, trx, keys, count)
    trx.leave(heads)
    trx.leave(
      sql`
        update lanes set lease_token = ${leaseToken}, due_at = ${engine.leaseNow()} + ${options.leaseMs}
        where ${engine.isOneOf('key', keys)}`.execute(trx),
    )
    return { leases: keys.map((id) => ({ id, leaseToken })), urgencies, heads }
  }

  /** The claims of leased lanes. Those that get no entries are returned. */
  async function claimsOf(leased: LeasedLanes, named: readonly Topic[]): Promise<LaneClaim[]> {
    const heads = await leased.heads
    const topics = new Set(named)
    const offset = offsetOf([...heads.values()].flat()[0]?.now)
    const claims = leased.leases.map((lease): LaneClaim => {
      const entries = handedOut(heads.get(lease.id) ?? [], { topics, lapses: 0, offset })
      const urgency = leased.urgencies.get(lease.id) as LaneUrgency
      return { ...lease, urgency, lapses: 0, entries }
    })
    // A lane may be without entries: an event that is accepted twice inserts a lane again after its entry has ended, a
    // holder that died may have ended the head, and the payloads of other lanes may have been enough for one claim.
    const empty = claims.filter(({ entries }) => entries.length === 0)
    const cut = empty.filter(({ id }) => heads.get(id)?.length === 0)
    lanesThatFit =
      cut.length > 0 && bytesOf(heads) >= MAX_BYTES
        ? claims.length - cut.length
        : Math.ceil(lanesThatFit * 1.25)
    unbegun.push(...empty)
    await returnUnbegun().catch(() => {})
    const seqOf = ({ id }: LaneClaim) => heads.get(id)?.[0]?.seq ?? 0
    return claims
      .filter(({ entries }) => entries.length > 0)
      .sort((a, b) => a.urgency - b.urgency || seqOf(a) - seqOf(b))
  }

  function claim(options: ClaimLanes): Promise<LaneClaim[]> {
    const look = lookBack.look()
    return look.during(claimFrom(look, options))
  }

  async function claimFrom(look: LookBack, options: ClaimLanes): Promise<LaneClaim[]> {
    // A read first, so that an idle store is not written. After a full claim more lanes are most likely due. On PostgreSQL it
    // would cost as much as the claim.
    const due =
      !engine.isLocal || wasFull || given.mustReturn()
        ? undefined
        : await read((db) => dueAmong(db, options.topics))
    if (due?.length === 0) return []
    const limit = Math.min(options.limit, lanesThatFit)
    const leased = await given.claim(
      write,
      (trx) => lease(trx, { ...options, limit }, due, look),
      ({ leases }) => leases,
    )
    const claims = await claimsOf(leased, options.topics)
    wasFull = claims.length === limit
    return claims
  }

  async function claimSuspect(
    trx: Connection,
    { leaseMs, ...among }: ClaimSuspectLane,
  ): Promise<LaneClaim | undefined> {
    const begun = await suspects.begin(trx, 'lane', leaseMs, suspects.lanesOf(among))
    if (!begun) return undefined
    const { id, lapses } = begun
    const rows = (await headsOf(engine, trx, [id], 1)).get(id) ?? []
    const topics = new Set(among.topics)
    const entries = handedOut(rows, { topics, lapses, offset: offsetOf(rows[0]?.now) })
    const [head] = entries
    // It runs alone, so its class decides nothing.
    if (head) return { ...begun, urgency: urgencyOf(topicOf(head), 0), entries }
    // Its head has ended, or has another topic.
    await lanes.advance(trx, [id], rows.length === 0 ? 'all' : 'untried')
    return undefined
  }

  /**
   * Makes claims, and resolves when they are on disk: a handler must not see what a power cut could
   * still undo. A claim whose sync failed is returned, at once or before the next claim. Otherwise its lease would run out,
   * and count as an end of the process, although no handler was called.
   */
  async function onDisk(claim: () => Promise<LaneClaim[]>): Promise<LaneClaim[]> {
    await returnUnbegun()
    const mark = engine.mark()
    const claims = await claim()
    if (claims.length === 0) return []
    try {
      await engine.durable(mark)
      return claims
    } catch (error) {
      unbegun.push(...claims)
      await returnUnbegun().catch(() => {})
      throw error
    }
  }

  // See the port. The calls come one at a time.
  return {
    claimLanes: (options: ClaimLanes) => onDisk(() => claim(options)),
    async claimSuspectLane(options: ClaimSuspectLane) {
      const [claimed] = await onDisk(async () => {
        return given.claim(
          write,
          async (trx) => [(await claimSuspect(trx, options)) ?? []].flat(),
          (made) => made,
        )
      })
      return claimed
    },
  }
}

interface LeasedLanes {
  leases: Leased[]
  urgencies: ReadonlyMap<string, LaneUrgency>
  heads: Promise<ReadonlyMap<string, readonly EntryRow[]>>
}

/** A topic, and one of its classes of lanes. */
interface DueTopic {
  topic: Topic
  unread: 0 | 1
}

/** The part of a look back that reads a class of a topic. */
const partOf = ({ topic, unread }: DueTopic) => `${topic} ${unread}`

interface DueLane extends DueTopic {
  key: string
  /** How long it has been due. */
  due_for: number
  urgency: LaneUrgency
}

function urgencyOf(topic: Topic, unread: 0 | 1): LaneUrgency {
  if (isOfRead(topic)) return LANE_URGENCY.change
  return unread === 0 ? LANE_URGENCY.event : LANE_URGENCY.eventOfUnread
}

/** Picks up to `limit` lanes from those that are due, which are sorted by class and by how long they have been due. */
function pickLanes(
  due: readonly DueLane[],
  limit: number,
  choose: NonNullable<ClaimLanes['choose']>,
): Map<string, LaneUrgency> {
  const left = Object.values(LANE_URGENCY).map((urgency) => ({
    urgency,
    keys: due.flatMap((lane) => (lane.urgency === urgency ? lane.key : [])).reverse(),
  }))
  const picked = new Map<string, LaneUrgency>()
  const taken: LaneUrgency[] = []
  while (picked.size < limit) {
    const classes = left.filter(({ keys }) => keys.length > 0)
    const urgency = choose(
      classes.map((each) => each.urgency),
      taken,
    )
    const key = classes.find((each) => each.urgency === urgency)?.keys.pop()
    if (key === undefined || urgency === undefined) break
    picked.set(key, urgency)
    taken.push(urgency)
  }
  return picked
}

const bytesOf = (heads: ReadonlyMap<string, readonly EntryRow[]>) =>
  [...heads.values()].flat().reduce((sum, { payload }) => sum + Buffer.byteLength(payload), 0)

/**
 * The entries of a leased lane to hand out, in order. They are its first pending entries, up to the first that the
 * caller does not handle, or whose next try is not due because an earlier entry was replayed.
 */
function handedOut(
  rows: readonly EntryRow[],
  { topics, lapses, offset }: { topics: ReadonlySet<Topic>; lapses: number; offset: number },
): Entry[] {
  const end = rows.findIndex(
    ({ topic, due_at: dueAt, now }, i) =>
      !isTopicAmong(topics, topic) || (i > 0 && dueAt !== null && dueAt > now),
  )
  const ours = rows.slice(0, end < 0 ? rows.length : end)
  return ours.map((row, i) => asEntry(row, offset, i === 0 ? lapses : 0))
}
