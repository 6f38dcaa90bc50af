import type { Answer } from '../log.js'
import { type Belief, isElsewhere, type Sight } from './belief.js'
import type { Announced, Call, History } from './history.js'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

const HEADING = 'A subscription that the platform no longer shows ends'
const OUTAGE = 'An outage is not the end of many'

/** The table of "A subscription that the platform no longer shows ends", and what holds an end back. */
export function createEnds(history: History, belief: Belief) {
  const { announcedTo, announcedOf, shownOf, exactness } = history
  const { adverse, slackMs } = belief
  const known = new Set<string>()
  for (const { reply } of history.looks) if (reply?.is === 'record') known.add(reply.business)

  /**
   * The rows of the table whose evidence was there at `at`, without what holds an end back. `from`: events before it are
   * no evidence.
   */
  function evidence(uid: string, business: string, since: number, at: number, forHowLong: number, from = 0) {
    const all = adverse(uid, business, since, at)
    const refusals = all.filter(({ reply }) => reply?.is === 'refused')
    const empty = all.filter(({ reply }) => isElsewhere(reply, business) || isNotFound(reply))
    const [first] = refusals
    const isOlder = (look: Call | undefined, ms: number) =>
      look !== undefined && look.at <= at - ms + forHowLong
    const isThere = (each: Announced) => each.at >= from && each.at <= at
    const events = announcedTo(business).filter(isThere)
    const isUninstalled = events.some(({ pair }) => pair.endsWith(' uninstalled'))
    const isUpdated = events.some(({ pair }) => pair === 'purchasable_subscription update')
    const isRejected = announcedOf(uid).some(
      (each) => isThere(each) && each.state !== '' && each.state !== 'purchased',
    )
    return {
      first: all[0],
      revoked: isUninstalled && refusals.length >= 2 && isOlder(first, MINUTE),
      record: isRejected && refusals.length >= 1,
      update: (isUpdated || isUninstalled) && isOlder(first, HOUR),
      missing: empty.length >= 3 && isOlder(empty[0], MINUTE),
      /** "The platform refused every read, and no event announced anything." */
      unannounced: (maxStaleMs: number) => isOlder(first, maxStaleMs),
    }
  }

  /** Why a purchased subscription, last shown by `last`, must not be denied by this answer; undefined if it may be. */
  function whyNot(uid: string, business: string, last: Sight, at: number, { reason }: Answer) {
    const since = Math.min(last.from, last.at)
    const found = evidence(uid, business, since, at, slackMs)
    if (!found.first)
      return {
        heading: 'The gate: one subscription that gives access is enough',
        message: 'nothing denies it',
      }
    if (!isEvident(found, last)) return { heading: HEADING, message: 'no row of the table has its evidence' }
    const isNamed = reason === 'revoked' || reason === 'missing'
    if (isNamed && !found[reason] && !isOfAnother(reason, uid, business, at))
      return { heading: HEADING, message: `no evidence for ${reason}` }
    const held = whyHeldBack({ uid, business, last, since }, at)
    return held ? { heading: OUTAGE, message: held } : undefined
  }

  /** Whether a row of the table has its evidence, for a subscription that was last shown by `last`. */
  function isEvident(found: ReturnType<typeof evidence>, last: Sight): boolean {
    const { revoked, record, update, missing, unannounced } = found
    return revoked || record || update || missing || unannounced(last.process.rules.maxStaleMs)
  }

  /**
   * What surely holds an end back at `at`. Undefined if a read before then may have believed it: what was believed once
   * stays, however many others fail afterwards. `from` as for the evidence, `servedFrom` as for what holds it back.
   */
  function whyHeldBack(
    { uid, business, last, since }: { uid: string; business: string; last: Sight; since: number },
    at: number,
    { from, servedFrom }: { from?: number; servedFrom?: number } = {},
  ): string | undefined {
    let why: string | undefined
    for (const moment of [...adverse(uid, business, since, at).map((look) => look.at), at]) {
      const found = evidence(uid, business, since, moment, slackMs, from)
      if (!found.first || !isEvident(found, last)) continue
      why = whyHeld(business, found.first.at, moment, servedFrom)
      if (!why) return undefined
    }
    return why
  }

  /** The reason of an answer may be that of another subscription of the business, which has ended too. */
  function isOfAnother(reason: 'revoked' | 'missing', uid: string, business: string, at: number): boolean {
    return [...belief.uidsOf(business)].some((other) => {
      const last = belief
        .sightsOf(other)
        .filter((each) => each.at <= at)
        .at(-1)
      return other !== uid && last && evidence(other, business, last.from, at, slackMs)[reason]
    })
  }

  /**
   * Whether the platform still owes the app the record of a subscription: the last read showed it as purchased, and it has
   * not ended since by the table. An event "is forgotten when the platform still shows the subscription an hour later"
   * (docs/decisions/believing-an-end.md).
   */
  function isOwed(uid: string, business: string, at: number): boolean {
    const last = belief
      .sightsOf(uid)
      .filter((each) => each.at <= at)
      .at(-1)
    if (last?.reply.state !== 'purchased' || last.business !== business) return false
    const [since, from] = [last.from, last.from - HOUR]
    const found = evidence(uid, business, since, at, slackMs, from)
    if (!found.first || !isEvident(found, last)) return true
    const options = { from, servedFrom: found.first.at }
    return whyHeldBack({ uid, business, last, since }, at, options) !== undefined
  }

  /** What surely holds an end back. Those that were read just before it may count as served since. */
  function whyHeld(business: string, firstAt: number, at: number, servedFrom = firstAt - 10 * MINUTE) {
    const others = [...known].filter((each) => each !== business)
    let failing = 0
    let served = 0
    let waiting = 0
    for (const other of others) {
      const looks = looksOf(other).filter((each) => each.at <= at)
      const before = looks.filter((each) => each.at < firstAt - 10 * MINUTE).at(-1)
      const since = looks.filter((each) => each.at >= firstAt - 10 * MINUTE)
      const isServed = ({ at: own, reply }: Call) =>
        own >= servedFrom && reply?.is === 'record' && reply.business === other
      if (looks.some(isServed)) served++
      // Those that had ended or were canceled before do not fail.
      else if (before?.reply?.is !== 'record' || before.reply.state === 'canceled') continue
      else if (since.some(({ reply }) => reply?.is === 'refused' || reply?.is === 'nothing')) failing++
      else waiting++
    }
    if (failing >= 3 && failing > served)
      return `${failing} others fail since about the same time, and ${served} were served`
    if (served === 0 && failing + waiting > 0) return 'no other business was served since'
    return undefined
  }

  /** Whether the end of a subscription is certain for so long that no answer may grant access any more. */
  function isOver(uid: string, business: string, at: number): boolean {
    const sights = belief.sightsOf(uid)
    const last = sights.filter((each) => each.at <= at).at(-1)
    if (!last) return false
    const lateMs = 3 * exactness.lateMs + slackMs
    const looks = adverse(uid, business, last.at, at)
    const first = looks[0]?.at ?? Number.POSITIVE_INFINITY
    if (!history.isWorkedOn(first, at) || firstEventAfterEnd(business, last.at) > at) return false
    const found = evidence(uid, business, last.at, at - lateMs, 0, last.at)
    const isAlone = othersFailing(business, last.at, at) === 0 && othersServed(business, first, at)
    if (!isAlone) return false
    if (looks.every(({ reply }) => reply?.is === 'refused')) {
      if (found.revoked && first <= at - lateMs - 3 * MINUTE) return true
      if (found.update && first <= at - lateMs - HOUR - 35 * MINUTE) return true
    }
    return (
      looks.every(({ reply }) => reply?.is === 'nothing') &&
      found.missing &&
      first <= at - lateMs - 3 * MINUTE
    )
  }

  /** An uninstall or an update that counts as evidence was acknowledged after the last read that showed the record. */
  function firstEventAfterEnd(business: string, lastAt: number): number {
    const events = announcedTo(business).filter(
      ({ pair, takenAt }) => takenAt >= lastAt && (pair.endsWith(' uninstalled') || pair.endsWith(' update')),
    )
    return Math.min(Number.POSITIVE_INFINITY, ...events.map(({ takenAt }) => takenAt))
  }

  function othersFailing(business: string, from: number, at: number) {
    return [...known].filter((other) => {
      if (other === business) return false
      return looksOf(other).some(
        ({ at: own, reply }) => own >= from - 24 * HOUR && own <= at && reply?.is !== 'record',
      )
    }).length
  }

  function othersServed(business: string, from: number, at: number) {
    const others = [...known].filter((other) => other !== business)
    return others.every((other) =>
      looksOf(other).some((each) => each.at >= from && each.at <= at && each.reply?.is === 'record'),
    )
  }

  const cache = new Map<string, Call[]>()
  /** Everything about the business and its subscriptions, in the order of time, but tokens that it got. */
  function looksOf(business: string): readonly Call[] {
    let looks = cache.get(business)
    if (!looks) {
      const uids = new Set(shownOf(business).map(({ uid }) => uid))
      looks = [...uids].flatMap((uid) => [...history.looksAt(uid)])
      looks.push(...history.tokensOf(business).filter(({ reply }) => reply?.is === 'refused'))
      looks.sort((a, b) => a.at - b.at)
      cache.set(business, looks)
    }
    return looks
  }

  return { whyNot, isOver, isOwed }
}

/** A 404 is a refusal, or the answer that there is no such record. */
const isNotFound = (reply: Call['reply']) => reply?.is === 'refused' && reply.status === 404
