import { canonicalState } from '../../../lib/entitlement/purchase-state.js'
import type {
  LaneClaim,
  LaneFinish,
  Leased,
  NewEvent,
  ReadClaim,
  ReadFinish,
  Store,
} from '../../../lib/store/port/store.js'
import type { VirtualClock } from '../machine/virtual-clock.js'
import type { Platform, Shown } from '../platform/platform.js'
import { OUR_ITEM } from '../settings.js'
import type { Database } from '../world/database.js'
import type { DoorReply } from '../world/door.js'
import { checkAcknowledged, checkChanges } from '../world/journal.js'
import type { Process } from '../world/process.js'
import type { Verdict } from '../world/promises.js'

/** How old the state of the store behind an answer may be: the cache's 5 s, two slow calls, and the wait for a read. */
const ANSWER_WINDOW_MS = 11_000

/** The ends of so many businesses and more are held back like an outage, if they are most. */
const MANY = 3

interface Active {
  entry: string
  lease: Lease | undefined
  process: Process
  signal: AbortSignal
}

interface Lease {
  token: string
  until: number
  process: Process
}

/** Watches a run from outside: writes to the database, calls of handlers, and answers. */
export function createOracle(options: {
  time: VirtualClock
  verdict: Verdict
  platform: Pick<Platform, 'state' | 'of' | 'isRefused' | 'refusedSince'>
  database: Database
  handlers: number
  maxStaleMs: number
  leaseMs: number
}) {
  const { verdict, platform, database, handlers, maxStaleMs, leaseMs } = options
  const { now } = options.time
  const { fail, made, skipped } = verdict
  const shown = new Map<string, Shown[]>()
  const newest = new Map<string, number>()
  const leases = new Map<string, Lease>()
  const active = new Map<string, Set<Active>>()
  const changes = new Map<string, { id: string; uid: string; order: number; ended: 'no' | 'done' | 'dead' }>()
  const changesOf = new Map<string, string[]>()
  /** The lease under which a handler last returned from a change. */
  const returnedUnder = new Map<string, string>()
  /** The lease under which the last try of a change failed. */
  const deadUnder = new Map<string, string>()
  const returned = new Map<string, Set<number>>()
  const acknowledged = new Set<string>()
  const announced = new Set<string>()
  /** The latest install event by its own time, that time, and when the app got it. */
  const installs = new Map<string, { installed: boolean; at: number; cameAt: number }>()
  const knownAt = new Map<string, number>()
  const granted = new Map<string, Map<string, number>>()
  const openedAt = new Map<Process, number>()
  const history = new Map<string, { at: number; grants: boolean; freshest: number }[]>()

  /** The results that a lease has written: a repeated finish writes none of them again. */
  const written = new Set<string>()
  function isRepeated(id: string, leaseToken: string): boolean {
    const key = `${id} ${leaseToken}`
    return written.has(key) || !written.add(key)
  }

  function onFinishRead(claim: ReadClaim, { found, changes: observed = [] }: ReadFinish) {
    if (isRepeated(claim.id, claim.leaseToken)) return
    const { subscriptionUid: uid, businessUid: business } = claim.subscription
    if (found?.record && found.gone === null) {
      const { updated_at, purchase_state } = found.record
      made('shown')
      made('onward')
      const wasShown = shown
        .get(uid)
        ?.some((each) => each.updatedAt === updated_at && each.state === purchase_state)
      if (!wasShown) fail('shown', `${uid} is stored as ${purchase_state} of ${updated_at}`)
      const time = Date.parse(String(updated_at))
      if (time < (newest.get(uid) ?? 0)) {
        const before = new Date(newest.get(uid) ?? 0).toISOString()
        fail('onward', `${uid} went from ${before} to ${updated_at}`)
      }
      newest.set(uid, Math.max(time, newest.get(uid) ?? 0))
    }
    if (found) {
      const grants =
        found.gone === null && found.record?.purchasable_uid === OUR_ITEM && found.state === 'purchased'
      const ofBusiness = granted.get(business) ?? new Map<string, number>()
      granted.set(business, ofBusiness)
      // The confirmation came between the platform's answer and the finish of the read.
      if (grants) ofBusiness.set(uid, shown.get(uid)?.at(-1)?.at ?? 0)
      else ofBusiness.delete(uid)
      const list = history.get(business) ?? [{ at: 0, grants: false, freshest: 0 }]
      history.set(business, list)
      list.push({ at: now(), grants: ofBusiness.size > 0, freshest: Math.max(0, ...ofBusiness.values()) })
    }
    const ids = changesOf.get(uid) ?? []
    changesOf.set(uid, ids)
    for (const { id } of observed) {
      changes.set(id, { id, uid, order: ids.length, ended: 'no' })
      ids.push(id)
    }
  }

  const refusedOf = (businesses: readonly string[]) => new Set(businesses.filter(platform.isRefused))

  /** If the token is refused, only the uninstall decides, and only if it came when the subscription was known. */
  function isToldOf(uid: string, business: string): boolean {
    const word = installs.get(business)
    return (
      word?.installed === false &&
      word.at >= (platform.refusedSince(business) ?? 0) &&
      word.cameAt > (knownAt.get(uid) ?? Number.POSITIVE_INFINITY)
    )
  }

  function onFinishLanes(finishes: readonly LaneFinish[], held: readonly string[]) {
    for (const { id: key, leaseToken, results } of finishes) {
      if (!held.includes(key)) continue
      for (const { id, result } of results) {
        if (isRepeated(id, leaseToken)) continue
        leases.delete(id)
        const change = changes.get(id)
        if (change && result.kind !== 'retry') change.ended = result.kind
      }
    }
  }

  return {
    onShown(each: Shown) {
      const list = shown.get(each.uid) ?? []
      list.push(each)
      shown.set(each.uid, list)
    },

    /** Notes a call that the database made for `process`. */
    onCommit(process: Process, method: keyof Store, args: readonly unknown[], result: unknown) {
      if (method === 'open') openedAt.set(process, now())
      if (method === 'finishRead' && result === true)
        onFinishRead(args[0] as ReadClaim, args[1] as ReadFinish)
      if (method === 'finishLanes')
        onFinishLanes(args[0] as readonly LaneFinish[], result as readonly string[])
      if (method === 'claimLanes' || method === 'claimSuspectLane') {
        for (const { leaseToken: token, entries } of [result ?? []].flat() as LaneClaim[]) {
          const lease = { token, until: now() + leaseMs, process }
          for (const { id } of entries) leases.set(id, lease)
        }
      }
      if (method === 'renewLane' && result === true) {
        const { leaseToken } = args[0] as Leased
        for (const lease of leases.values()) {
          if (lease.token === leaseToken && lease.process === process) lease.until = now() + leaseMs
        }
      }
      if (method === 'accept') {
        for (const { refresh } of args[0] as NewEvent[]) {
          if (refresh?.kind === 'business' && refresh.install) {
            const at = Math.min(refresh.install.at ?? now(), now())
            const { installed } = refresh.install
            if (at >= (installs.get(refresh.businessUid)?.at ?? 0))
              installs.set(refresh.businessUid, { installed, at, cameAt: now() })
          }
          if (refresh?.kind === 'subscription' && !knownAt.has(refresh.subscriptionUid))
            knownAt.set(refresh.subscriptionUid, now())
        }
      }
    },

    /** The reply to a delivery, in time or not. */
    onReply({ status, text }: DoorReply) {
      if (status !== 200) return
      const { id, ids = [id] } = JSON.parse(text) as { id: string; ids?: string[] }
      for (const each of ids) acknowledged.add(each)
    },

    /** An acknowledged delivery has made these subscriptions known. */
    onAnnounced(uids: readonly string[]) {
      for (const uid of uids) announced.add(uid)
    },

    /** Notes that a handler begins. Returns a function for its end, whose argument is whether it returned. */
    onHandler(
      process: Process,
      handler: number,
      key: string,
      id: string,
      signal: AbortSignal,
      isLastTry: boolean,
    ): (hasReturned: boolean) => void {
      const lease = leases.get(id)
      const mine: Active = {
        entry: id,
        lease: lease?.process === process ? lease : undefined,
        process,
        signal,
      }
      const others = active.get(key) ?? new Set<Active>()
      active.set(key, others)
      made('apart')
      for (const other of others) {
        if (other.signal.aborted || other.process.isDead()) continue
        if (other.entry === id && other.process === process) continue
        // A frozen process, or one that could not renew, has lost its lease without knowing it. A late finish does not
        // count either.
        const hasLost = (each: Active) =>
          (each.lease?.until ?? 0) <= now() && each.process.troubledUntil() >= now() - 2 * leaseMs
        if (hasLost(other) || hasLost(mine)) {
          skipped('apart', 'a lease was lost in a fault')
          continue
        }
        fail('apart', `${key}: ${id} in ${process.name}, ${other.entry} in ${other.process.name}`)
      }
      others.add(mine)
      const change = changes.get(id)
      if (change) {
        made('order')
        const earlier = (changesOf.get(change.uid) ?? []).slice(0, change.order)
        // A change that ended under the same lease is written before or with the next one, so that a crash repeats
        // both.
        const hasEnded = (each: string) =>
          deadUnder.get(each) === lease?.token ||
          ((returned.get(each)?.size ?? 0) >= handlers && returnedUnder.get(each) === lease?.token)
        const open = earlier.filter((each) => changes.get(each)?.ended === 'no' && !(lease && hasEnded(each)))
        if (open.length > 0) fail('order', `${change.uid}: the change ${change.order} came too early`)
      }
      return (hasReturned) => {
        others.delete(mine)
        if (!hasReturned && isLastTry && lease) deadUnder.set(id, lease.token)
        if (!hasReturned) return
        const by = returned.get(id) ?? new Set()
        returned.set(id, by.add(handler))
        if (lease) returnedUnder.set(id, lease.token)
      }
    },

    onAnswer(process: Process, business: string, entitled: boolean) {
      const everything = [...shown.values()]
        .flat()
        .filter((each) => each.business === business && each.item === OUR_ITEM)
      const lastPurchased = Math.max(
        0,
        ...everything.filter(({ state }) => state === 'purchased').map(({ at }) => at),
      )
      // A reply may be under way for 5 s and a call of the store for 2 s, and a process may stand still for its whole
      // lease.
      const slackMs = leaseMs + 10_000 + Math.abs(process.skewMs)
      made('entitled')
      if (entitled && now() - lastPurchased > maxStaleMs + slackMs) {
        const ago = lastPurchased === 0 ? 'never' : `${(now() - lastPurchased) / 1_000} s ago`
        fail('entitled', `${business} has access; the platform showed it ${ago}`)
      }
      const since = now() - ANSWER_WINDOW_MS
      if (process.troubledUntil() >= since - 10_000) return skipped('follow', 'the process had a fault')
      made('follow')
      const list = history.get(business) ?? []
      const from = Math.max(
        0,
        list.findLastIndex(({ at }) => at <= since),
      )
      const window = list.slice(from)
      if (entitled && !window.some(({ grants }) => grants)) {
        fail('follow', `${business} has access by ${process.name}, but the store has not shown it lately`)
      }
      const isSure =
        window.length > 0 &&
        (window[0]?.at ?? now()) <= since &&
        window.every(({ grants, freshest }) => grants && now() - freshest < maxStaleMs - 10_000)
      // A question that comes while a process opens its store is answered at once, with `store_unavailable`.
      const wasOpen = (openedAt.get(process) ?? Number.POSITIVE_INFINITY) <= since
      if (!entitled && isSure && wasOpen) {
        fail('follow', `${business} is denied by ${process.name}, but the store has purchased`)
      }
    },

    /** The first difference from the intended end state; undefined if there is none. */
    async unfinished(): Promise<string | undefined> {
      const rows = await database.subscriptions()
      const refused = refusedOf(rows.map((row) => row.business_uid))
      for (const { subscription_uid: uid, business_uid: business, ...row } of rows) {
        const truth = canonicalState(platform.state(uid) ?? 'none')
        const isUnknown = !platform.of(business).some((each) => each.uid === uid)
        const words = `${uid} is ${row.state} (${row.gone ?? row.failure ?? 'well'}), on the platform ${truth}`
        if (isUnknown) {
          if (row.state !== null) return words
        } else if (platform.isRefused(business)) {
          if (refused.size >= MANY) continue
          if (row.state !== truth && row.state !== null && isToldOf(uid, business)) return words
        } else if (
          row.state !== truth &&
          !(truth === 'canceled' && (row.gone === 'revoked' || row.gone === 'ended'))
        )
          return words
      }
      const pending = (await database.journal()).find(({ status }) => status === 'pending')
      return pending && `${pending.kind} of ${pending.key} waits for its handlers (${pending.error})`
    },

    async checkEnd() {
      const journal = await database.journal()
      const rows = new Map((await database.subscriptions()).map((row) => [row.subscription_uid, row]))
      const businesses = [...rows.values()].map((row) => row.business_uid)
      const areHeldBack = refusedOf(businesses).size >= MANY
      for (const { subscription_uid: uid, business_uid: business } of rows.values())
        if (!platform.isRefused(business)) made('equal')
        else if (areHeldBack) skipped('equal', 'ends of many at once are held back')
        else if (isToldOf(uid, business)) made('equal')
        else skipped('equal', 'a refusal alone tells no end')
      const kept = new Map(journal.map((entry) => [entry.id, entry]))
      checkAcknowledged(acknowledged, journal, verdict)
      for (const uid of announced) {
        if (!rows.has(uid)) fail('stored', `${uid} was announced, but is not known`)
      }
      for (const { id, uid, order } of changes.values()) {
        made('handled')
        const by = returned.get(id)?.size ?? 0
        const isDead = kept.get(id)?.status === 'dead'
        if (by < handlers && !isDead) {
          fail('handled', `change ${order} of ${uid} reached ${by} of ${handlers}`)
        }
      }
      const stored = checkChanges(journal, verdict)
      for (const [uid, { state }] of rows) {
        const last = stored.get(uid)?.state ?? null
        if (state !== last) fail('handled', `${uid} is ${state}, but its changes end at ${last}`)
      }
    },
  }
}
