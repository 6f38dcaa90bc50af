import { DAY, MINUTE } from '../../../lib/clock.js'
import type { SubscriptionRecord } from '../../../lib/record.js'
import {
  CAUSES,
  type Cause,
  type ClaimLanes,
  type ClaimReads,
  type ClaimSuspectLane,
  type Entry,
  type EntryStatus,
  type HandleTopics,
  isTopicAmong,
  type LaneClaim,
  type LaneFinish,
  type Leased,
  MAX_LAPSES,
  MAX_READ_INTERVAL_MS,
  MIN_READ_INTERVAL_MS,
  type NewEvent,
  type OtherBusinesses,
  type ReadClaim,
  type ReadFinish,
  type ReadOthers,
  type RefreshRequest,
  type Store,
  type Subscription,
  type SuspectKind,
  type Topic,
  topicOf,
  URGENCY,
  type Urgency,
} from '../../../lib/store/store.js'
import type { Database, Wire } from './database.js'

export interface Row {
  uid: string
  business: string
  candidate: string | null
  purchasable: string | null
  record: SubscriptionRecord | null
  state: string | null
  gone: Subscription['gone']
  readAt: number | null
  generation: number
  settled: number
  requestedAt: number
  owedSince: number | null
  refreshAt: number | null
  notBefore: number
  urgency: Urgency
  cause: Cause
  verifying: boolean
  token: string | null
  suspect: boolean
  lapses: number
  failure: string | null
  progress: string | null
  installAt: number | null
  installArrivedAt: number | null
  uninstalledAt: number | null
  failingSince: number | null
  servedSince: number | null
  updateAt: number | null
  endAt: number | null
  quiet: boolean
  createdAt: number
}

export interface Line extends Omit<Entry, 'attempt'> {
  seq: number
  status: EntryStatus
  dueAt: number
  attempts: number
  error: string | null
}

export interface Lane {
  token: string | null
  /** The end of the lease. */
  until: number
  suspect: boolean
  lapses: number
}

/**
 * The promises of a store (the comments of the port) as plain objects. They are faster than a database, so more worlds
 * can be tried. The package's own SQL runs the same worlds.
 */
export function createTables(): Database & {
  rows(): Map<string, Row>
  lines(): Line[]
  lanes(): Map<string, Lane>
} {
  let now = () => 0
  let rows = new Map<string, Row>()
  let lines: Line[] = []
  let open: Line[] = []
  let isWorkedOn = false
  let lanes = new Map<string, Lane>()
  let seen = new Map<Topic, number>()
  let everSeen = new Set<Topic>()
  let count = 0
  let isNewestNext = false

  function due(row: Row, cause: Cause) {
    if (row.token !== null || row.suspect || (row.refreshAt !== null && row.refreshAt <= now())) return
    const last = row.notBefore + MAX_READ_INTERVAL_MS - MIN_READ_INTERVAL_MS
    const isPutOff =
      cause === 'event' && row.generation > row.settled && row.refreshAt !== null && row.refreshAt <= last
    row.refreshAt = isPutOff ? Math.min(now() + MIN_READ_INTERVAL_MS, last) : Math.max(row.notBefore, now())
  }

  function mark(row: Row, cause: Cause) {
    const isStronger = CAUSES.indexOf(cause) < CAUSES.indexOf(row.cause)
    if (row.refreshAt === null || isStronger) row.cause = cause
    const urgency = cause === 'event' ? (row.record ? 0 : 1) : 2
    row.urgency =
      row.generation > row.settled ? (Math.min(row.urgency, urgency) as Urgency) : (urgency as Urgency)
    due(row, cause)
    row.generation++
    row.requestedAt = now()
    row.owedSince ??= now()
    row.failure = null
    if (cause === 'event') row.quiet = false
  }

  function want(each: RefreshRequest, cause: Cause) {
    if (each.kind === 'business') {
      for (const row of rows.values()) {
        if (row.business !== each.businessUid) continue
        mark(row, cause)
        if (!each.install) continue
        const { at } = each.install
        if (at === null || at > now() + DAY) row.installArrivedAt = now()
        else if (at < (row.installAt ?? 0) || at < (row.installArrivedAt ?? 0)) continue
        else row.installAt = at
        row.uninstalledAt = each.install.installed ? null : now()
      }
      return
    }
    const row = rows.get(each.subscriptionUid)
    const announces = 'announces' in each ? each.announces : undefined
    if (row?.record && row.business === each.businessUid && announces !== undefined) {
      if (announces !== 'access') row.updateAt ??= now()
      if (announces !== 'update') row.endAt = announces === 'end' ? now() : null
    }
    if (row) {
      mark(row, cause)
      if (each.kind === 'subscription' && !each.quiet) row.quiet = false
      if (each.kind === 'subscription' && row.business !== each.businessUid) row.candidate = each.businessUid
    } else if (each.kind === 'subscription') {
      rows.set(each.subscriptionUid, {
        uid: each.subscriptionUid,
        business: each.businessUid,
        candidate: null,
        purchasable: each.purchasableUid,
        record: null,
        state: null,
        gone: null,
        readAt: null,
        generation: 1,
        settled: 0,
        requestedAt: now(),
        owedSince: now(),
        refreshAt: now(),
        notBefore: 0,
        urgency: cause === 'event' ? 1 : 2,
        cause,
        verifying: false,
        token: null,
        suspect: false,
        lapses: 0,
        failure: null,
        progress: null,
        installAt: null,
        installArrivedAt: null,
        uninstalledAt: null,
        failingSince: null,
        servedSince: null,
        updateAt: null,
        endAt: null,
        quiet: each.quiet ?? false,
        createdAt: now(),
      })
    }
  }

  function append(
    line: Pick<Line, 'id' | 'kind' | 'name' | 'key' | 'businessUid' | 'subscriptionUid' | 'payload'>,
  ) {
    const { id } = line
    if (lines.some((each) => each.id === id)) return
    const added: Line = {
      ...line,
      issues: null,
      receivedAt: now(),
      seq: ++count,
      status: isTopicAmong(seen, topicOf(line))
        ? 'pending'
        : line.kind === 'change' || !isWorkedOn || isTopicAmong(everSeen, topicOf(line))
          ? 'waiting'
          : 'unhandled',
      dueAt: now(),
      attempts: 0,
      error: null,
    }
    lines.push(added)
    if (added.status !== 'unhandled') open.push(added)
  }

  function ofBusiness(business: string): Subscription[] {
    return [...rows.values()]
      .filter((row) => row.business === business)
      .sort((a, b) => a.createdAt - b.createdAt || (a.uid < b.uid ? -1 : 1))
      .map(asSubscription)
  }

  function claimReads({ leaseMs, limit, except, urgencies, choose = ([first]) => first }: ClaimReads) {
    const claims: ReadClaim[] = []
    const busy = new Set(except)
    while (claims.length < limit) {
      const due = [...rows.values()]
        .filter((row) => isDue(row) && row.token === null && !row.suspect && !busy.has(row.business))
        .sort((a, b) => (a.refreshAt as number) - (b.refreshAt as number))
      const classes = urgencies.filter((urgency) => due.some((row) => row.urgency === urgency))
      const urgency = choose(
        classes,
        claims.map((claim) => claim.urgency),
      )
      const ofClass = due.filter((row) => row.urgency === urgency)
      const row = ofClass.at(urgency === 1 && isNewestNext ? -1 : 0)
      if (!row) break
      if (urgency === 1) isNewestNext = !isNewestNext
      busy.add(row.business)
      claims.push(leased(row, leaseMs))
    }
    return claims
  }

  function isDue({ refreshAt }: Row) {
    return refreshAt !== null && refreshAt <= now()
  }

  function suspectReads(): Row[] {
    for (const row of rows.values()) {
      if (row.token === null || !isDue(row)) continue
      row.token = null
      row.suspect = true
      if (row.lapses < MAX_LAPSES) continue
      row.failure = 'lease_lapsed'
      row.refreshAt = now() + 5 * MINUTE * 2 ** Math.min(6, row.lapses - MAX_LAPSES)
    }
    return [...rows.values()]
      .filter((row) => row.suspect && row.token === null && isDue(row))
      .sort((a, b) => a.lapses - b.lapses || (a.refreshAt as number) - (b.refreshAt as number))
  }

  function claimSuspectRead({ leaseMs }: { leaseMs: number }): ReadClaim | undefined {
    const [row] = suspectReads()
    if (!row) return undefined
    row.lapses++
    return { ...leased(row, leaseMs), lapses: row.lapses - 1 }
  }

  function leased(row: Row, leaseMs: number): ReadClaim {
    row.token = `lease ${++count}`
    row.refreshAt = now() + leaseMs
    const { uid: id, token: leaseToken, urgency, cause, generation, settled: settledGeneration } = row
    const { candidate: candidateBusinessUid, lapses, uninstalledAt, createdAt, progress } = row
    const { failingSince, updateAt, endAt } = row
    const updates = [...rows.values()].flatMap((each) =>
      each.business === row.business && each.readAt !== null && (each.updateAt ?? 0) >= (row.readAt ?? 0)
        ? (each.updateAt ?? [])
        : [],
    )
    const businessUpdateAt = failingSince === null || updates.length === 0 ? null : Math.max(...updates)
    return {
      ...{ id, leaseToken, subscription: asSubscription(row), urgency, cause, generation, settledGeneration },
      ...{ candidateBusinessUid, lapses, uninstalledAt, createdAt, progress, claimedAt: now() },
      ...{ failingSince, updateAt, businessUpdateAt, endAt },
      leaseTimeBehindMs: 0,
    }
  }

  function finishRead(claim: ReadClaim, finish: ReadFinish): boolean {
    const row = rows.get(claim.id)
    if (row?.token !== claim.leaseToken) return false
    const isQuiet = row.quiet
    const isAskedAgain = row.generation > claim.generation
    // The conclusion from an event waits for a read that was requested after it.
    const gone = finish.found?.gone ?? null
    const isTooLate =
      isAskedAgain && (gone === 'revoked' || gone === 'ended') && claim.subscription.gone === null
    if (isTooLate) finish = { settled: false, failure: finish.failure, progress: claim.progress, nextInMs: 0 }
    const { found, settled, failure, progress, nextInMs, clearUninstalled, changes = [] } = finish
    const isFirst = row.readAt === null
    if (found) {
      row.record = found.record && (JSON.parse(JSON.stringify(found.record)) as SubscriptionRecord)
      row.state = found.state
      row.gone = found.gone
      // A result that was held while the process was frozen counts as known for no longer than its lease.
      row.readAt = Math.min(now(), row.refreshAt as number)
      if (found.record) {
        row.business = found.record.business_uid
        row.purchasable = found.record.purchasable_uid
        row.quiet = false
      }
    }
    if (settled) row.settled = claim.generation
    if (settled || REFUSED.has(failure)) row.owedSince = isAskedAgain ? row.requestedAt : null
    const isShown = settled && failure === null
    if (isShown) {
      row.failingSince = null
      row.servedSince ??= isFirst ? row.createdAt : now()
    } else if (REFUSED.has(failure) && row.record && row.state !== 'canceled') {
      row.failingSince ??= now()
      row.servedSince = null
    }
    if (finish.clearUpdate && !isAskedAgain) row.updateAt = null
    if (finish.clearEnd && !isAskedAgain) row.endAt = null
    row.failure = isAskedAgain ? null : failure
    row.progress = progress
    row.verifying = finish.verifying ?? false
    if (!isAskedAgain) {
      if (clearUninstalled) row.uninstalledAt = null
      if (finish.candidate !== undefined) row.candidate = finish.candidate
      if (finish.urgency !== undefined) row.urgency = finish.urgency
      if (finish.urgency === URGENCY.reconcile) row.cause = 'reconcile'
    }
    row.token = null
    row.suspect = false
    row.lapses = 0
    row.notBefore = now() + MIN_READ_INTERVAL_MS
    if (isAskedAgain) row.refreshAt = row.notBefore
    else row.refreshAt = nextInMs === null ? null : now() + nextInMs
    for (const { id, key, businessUid, payload } of isQuiet ? [] : changes) {
      append({
        id,
        kind: 'change',
        name: '',
        key,
        businessUid,
        subscriptionUid: claim.id,
        payload,
      })
    }
    return !isTooLate
  }

  const stays = (row: Row) =>
    row.endAt === null && (row.uninstalledAt === null || (row.readAt ?? 0) > row.uninstalledAt + 60_000)

  const isSilent = (row: Row) => row.updateAt === null && row.endAt === null && row.uninstalledAt === null

  function otherBusinesses(
    { subscription, uninstalledAt, endAt }: ReadClaim,
    failingMs: number,
  ): OtherBusinesses {
    const since = now() - failingMs
    const others = [...rows.values()].filter((row) => row.business !== subscription.businessUid)
    const count = (of: Row[]) => new Set(of.map((row) => row.business)).size
    const failing = others.filter(
      (row) => row.failingSince !== null && row.failingSince >= since - 10 * 60_000,
    )
    const served = others.filter((row) => isServed(row) && (row.readAt as number) >= since)
    const lately = [...rows.values()].filter(
      (row) => row.failingSince !== null && row.failingSince >= now() - 24 * 3_600_000 && isSilent(row),
    )
    const first = Math.min(...lately.map((row) => row.failingSince as number))
    const isAnnounced = uninstalledAt !== null || endAt !== null
    return {
      lately: isAnnounced
        ? { failing: 0, served: 0 }
        : {
            failing: count(lately.filter((row) => others.includes(row))) + 1,
            served: count(others.filter((row) => isServed(row) && (row.readAt as number) >= first)),
          },
      unread: Math.min(
        20,
        count(
          others.filter(
            (row) => isServed(row) && stays(row) && row.failure === null && (row.readAt as number) < since,
          ),
        ),
      ),
      failing: count(failing) + 1,
      served: count(served),
      recovered: count(
        served.filter(
          (row) =>
            row.createdAt <= since &&
            (row.servedSince ?? 0) > Math.max(row.createdAt, now() - Math.max(failingMs / 2, 10 * 60_000)),
        ),
      ),
      isSteady: served.some((row) => row.servedSince !== null && row.servedSince <= since),
      exist: others.some((row) => isServed(row) || (isActive(row) && stays(row))),
    }
  }

  function readOthers({ subscription }: ReadClaim, options: ReadOthers) {
    const others = [...rows.values()].filter(
      (row) => row.business !== subscription.businessUid && row.token === null,
    )
    const lastRead = (row: Row) => row.notBefore - MIN_READ_INTERVAL_MS
    if (options.which === 'served') {
      const before = now() - options.unreadForMs
      const due = others
        .filter(
          (row) =>
            isServed(row) &&
            stays(row) &&
            row.failure === null &&
            lastRead(row) < before &&
            (row.refreshAt ?? 0) > now(),
        )
        .sort((a, b) => (a.readAt as number) - (b.readAt as number))
        .slice(0, options.limit)
      for (const row of due) row.refreshAt = now()
      return due.length
    }
    const isNeverRead = (row: Row) => row.record === null && row.failure !== null && row.verifying
    const isSoon = (row: Row) => !isNeverRead(row) && stays(row) && row.updateAt === null
    const at = (row: Row) => Math.max(lastRead(row) + options.pauseMs, now() + (isSoon(row) ? 0 : 60_000))
    const known = others
      .filter((row) => row.failingSince !== null && (row.gone === null || isSilent(row)))
      .sort((a, b) => (b.failingSince as number) - (a.failingSince as number))
    const bought = others.filter(isNeverRead).sort((a, b) => b.requestedAt - a.requestedAt)
    const due = [...known, ...bought].filter((row) => (row.refreshAt ?? 0) > at(row)).slice(0, options.limit)
    for (const row of due) row.refreshAt = at(row)
    return due.length
  }

  function laneOf(key: string): Lane {
    const lane = lanes.get(key) ?? { token: null, until: 0, suspect: false, lapses: 0 }
    lanes.set(key, lane)
    return lane
  }

  /** The lanes whose head the caller may handle now, with their pending entries. */
  function dueLanes({ topics, exceptKeys }: Pick<ClaimLanes, 'topics' | 'exceptKeys'>): [string, Line[]][] {
    const named = new Set(topics)
    const byKey = new Map<string, Line[]>()
    for (const line of open) {
      if (line.status === 'pending') byKey.set(line.key, [...(byKey.get(line.key) ?? []), line])
    }
    for (const lane of lanes.values()) {
      if (lane.token === null || lane.until > now()) continue
      lane.token = null
      lane.suspect = true
    }
    return [...byKey].filter(([key, [head]]) => {
      const isFree = laneOf(key).token === null && (head?.dueAt ?? 0) <= now()
      return isFree && isTopicAmong(named, topicOf(head as Line)) && !exceptKeys.includes(key)
    })
  }

  function suspectLanes(options: Pick<ClaimLanes, 'topics' | 'exceptKeys'>) {
    return dueLanes(options)
      .filter(([key]) => laneOf(key).suspect)
      .sort(([a], [b]) => laneOf(a).lapses - laneOf(b).lapses)
  }

  function claimSuspectLane(options: ClaimSuspectLane): LaneClaim | undefined {
    const [found] = suspectLanes(options)
    if (!found) return undefined
    const [key, [head]] = found as [string, [Line]]
    const lane = laneOf(key)
    const lapses = lane.lapses++
    lane.token = `lease ${++count}`
    lane.until = now() + options.leaseMs
    return {
      id: key,
      leaseToken: lane.token,
      lapses,
      entries: [{ ...head, attempt: head.attempts + lapses + 1 }],
    }
  }

  function dueSuspect({ kinds, ...options }: Parameters<Store['dueSuspect']>[0]): SuspectKind | null {
    const lane = kinds.includes('lane') ? suspectLanes(options)[0] : undefined
    const row = kinds.includes('read') ? suspectReads()[0] : undefined
    if (lane && row) return laneOf(lane[0]).lapses <= row.lapses ? 'lane' : 'read'
    return lane ? 'lane' : row ? 'read' : null
  }

  function claimLanes({ limit, entryLimit, leaseMs, topics, exceptKeys }: ClaimLanes): LaneClaim[] {
    const leaseToken = `lease ${++count}`
    const named = new Set(topics)
    const due = dueLanes({ topics, exceptKeys }).filter(([key]) => !laneOf(key).suspect)
    return due.slice(0, limit).map(([key, pending]) => {
      const lane = laneOf(key)
      lane.token = leaseToken
      lane.until = now() + leaseMs
      const most = Math.max(1, Math.floor(entryLimit / Math.min(limit, due.length)))
      const foreign = pending.findIndex((line) => !isTopicAmong(named, topicOf(line)))
      const handedOut = pending.slice(0, foreign < 0 ? pending.length : foreign).slice(0, most)
      return {
        id: key,
        leaseToken,
        lapses: 0,
        entries: handedOut.map((line) => ({ ...line, attempt: line.attempts + 1 })),
      }
    })
  }

  function finishLanes(finishes: readonly LaneFinish[]): string[] {
    const held = finishes.filter(({ id, leaseToken }) => lanes.get(id)?.token === leaseToken)
    for (const { id: key, results, keepLease } of held) {
      for (const { id, attempt, result } of results) {
        const line = open.find((each) => each.id === id)
        if (line?.status !== 'pending') continue
        line.status = result.kind === 'retry' ? 'pending' : result.kind
        line.dueAt = now() + (result.kind === 'retry' ? result.inMs : 0)
        line.error = result.kind === 'done' ? null : result.error
        line.attempts = attempt
      }
      const lane = laneOf(key)
      if (results.length > 0) Object.assign(lane, { suspect: false, lapses: 0 })
      if (keepLease) continue
      if (lane.suspect) Object.assign(lane, { token: null, lapses: lane.lapses - 1 })
      else lanes.delete(key)
    }
    open = open.filter(({ status }) => status === 'pending' || status === 'waiting')
    return held.map(({ id }) => id)
  }

  function handleTopics({ topics, rescueMs, retireMs }: HandleTopics) {
    const isFirst = !isWorkedOn
    isWorkedOn = true
    for (const topic of topics) seen.set(topic, now())
    for (const topic of topics) everSeen.add(topic)
    for (const [topic, at] of seen) if (at < now() - retireMs) seen.delete(topic)
    const named = new Set(topics)
    for (const line of lines) {
      const isRecent = line.receivedAt >= now() - rescueMs
      if (line.status !== 'unhandled' || !isRecent || !isTopicAmong(named, topicOf(line))) continue
      line.status = 'waiting'
      open.push(line)
    }
    open.sort((a, b) => a.seq - b.seq)
    for (const line of open) {
      if (isTopicAmong(seen, topicOf(line))) line.status = 'pending'
      else if (isFirst && line.kind !== 'change') line.status = 'unhandled'
    }
  }

  function renew(of: { token: string | null } | undefined, { leaseToken }: Leased): boolean {
    return of !== undefined && of.token === leaseToken
  }

  return {
    storeFor(wire) {
      const listeners = new Set<Parameters<Store['subscribe']>[0]>()
      let opened = false
      const announce: Wire['announce'] = (hint) => {
        for (const listener of listeners) listener(hint)
        wire.announce(hint)
      }
      const store: Store = {
        async open() {
          if (opened) return
          opened = true
          wire.watch((hint) => {
            for (const listener of listeners) listener(hint)
          })
        },
        async close() {},
        async accept(events: readonly NewEvent[]) {
          // Not at once, because a group commit collects calls.
          await new Promise(setImmediate)
          for (const event of events) append(event)
          const requests = events.flatMap((event) => event.refresh ?? [])
          for (const each of requests) want(each, 'event')
          for (const each of requests) announce({ kind: 'requested', businessUid: each.businessUid })
          announce({ kind: 'journal' })
        },
        async backup() {
          throw new Error('tables in memory have no backup')
        },
        async requestRefresh(request, cause = 'request') {
          await new Promise(setImmediate)
          want(request, cause)
          announce({ kind: 'requested', businessUid: request.businessUid })
        },
        subscriptionsOf: async (business) => ofBusiness(business),
        subscriptionsNamed: async (uids) => uids.flatMap((uid) => rows.get(uid) ?? []).map(asSubscription),
        claimReads: async (options) => claimReads(options),
        async renewRead(claim, leaseMs) {
          const row = rows.get(claim.id)
          if (!renew(row, claim)) return false
          ;(row as Row).refreshAt = now() + leaseMs
          return true
        },
        otherBusinesses: async (claim, failingMs) => otherBusinesses(claim, failingMs),
        async readOthers(claim, options) {
          const count = readOthers(claim, options)
          if (count > 0) announce({ kind: 'requested', businessUid: null })
          return count
        },
        async finishRead(claim, finish) {
          if (!finishRead(claim, finish)) return false
          const businesses = (finish.changes ?? []).map((change) => change.businessUid)
          for (const businessUid of new Set([claim.subscription.businessUid, ...businesses]))
            announce({ kind: 'decided', businessUid, superseded: finish.found !== undefined })
          if (businesses.length > 0) announce({ kind: 'journal' })
          return true
        },
        claimLanes: async (options) => claimLanes(options),
        claimSuspectLane: async (options) => claimSuspectLane(options),
        claimSuspectRead: async (options) => claimSuspectRead(options),
        dueSuspect: async (options) => dueSuspect(options),
        async renewLane(lane, leaseMs) {
          const held = lanes.get(lane.id)
          if (!renew(held, lane)) return false
          ;(held as Lane).until = now() + leaseMs
          return true
        },
        finishLanes: async (finishes) => finishLanes(finishes),
        async handleTopics(options) {
          handleTopics(options)
          announce({ kind: 'journal' })
        },
        listEntries: () => Promise.reject(new Error('not used in a run')),
        getEntry: () => Promise.reject(new Error('not used in a run')),
        replayEntry: () => Promise.reject(new Error('not used in a run')),
        listSubscriptions: () => Promise.reject(new Error('not used in a run')),
        timelineOf: () => Promise.reject(new Error('not used in a run')),
        recordAction: () => Promise.reject(new Error('not used in a run')),
        erase: () => Promise.reject(new Error('not used in a run')),
        refreshAll: () => Promise.reject(new Error('not used in a run')),
        prune: async () => ({ rows: 0, dead: [] }),
        counts: () => Promise.reject(new Error('not used in a run')),
        // No answer and no change depends on the delivered payload.
        arrivals: async () => ({ arrivals: [], completeSince: null }),
        dueWork: () => Promise.reject(new Error('not used in a run')),
        schemaVersion: async () => 1,
        subscribe(listener) {
          listeners.add(listener)
          return () => void listeners.delete(listener)
        },
      }
      return store
    },
    async begin(clockOfRun) {
      now = clockOfRun
      rows = new Map()
      lines = []
      open = []
      isWorkedOn = false
      lanes = new Map()
      seen = new Map()
      everSeen = new Set()
      count = 0
      isNewestNext = false
    },
    subscriptions: async () => [...rows.values()],
    journal: async () => lines,
    /** The rows, for sabotage. */
    rows: () => rows,
    lines: () => lines,
    lanes: () => lanes,
    close: async () => {},
  }
}

const REFUSED = new Set<string | null>([
  'platform_refused',
  'platform_record_mismatch',
  'token_refused',
  'platform_record_missing',
])

const isActive = (row: Row) => row.record !== null && row.gone === null && row.state !== 'canceled'
const isServed = (row: Row) => isActive(row) && row.failingSince === null

function asSubscription(row: Row): Subscription {
  const { uid, business, purchasable, record, generation, settled, ...same } = row
  const { state, gone, readAt, requestedAt, owedSince, verifying, failure, refreshAt, quiet } = same
  return {
    subscriptionUid: uid,
    businessUid: business,
    purchasableUid: purchasable,
    record: record && { ...record },
    state,
    gone,
    readAt,
    requestedAt,
    owedSince,
    generation,
    settledGeneration: settled,
    pending: generation > settled,
    verifying,
    failure,
    refreshAt,
    quiet,
  }
}
