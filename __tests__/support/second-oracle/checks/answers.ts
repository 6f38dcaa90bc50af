import type { Answer, Finding } from '../log.js'
import type { Belief, Sight } from './belief.js'
import { createEnds } from './ends.js'
import type { Asked, History } from './history.js'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** How long a process of these worlds is frozen at most. */
const FROZEN_MS = 100 * SECOND

/** The table "Reasons" of docs/gate.md, for apps without `entitledWhen`. */
const REASONS: Record<string, { entitled: boolean; known: boolean }> = {
  purchased: { entitled: true, known: true },
  not_read_yet: { entitled: false, known: false },
  stale: { entitled: false, known: false },
  store_unavailable: { entitled: false, known: false },
  not_purchased: { entitled: false, known: true },
  revoked: { entitled: false, known: true },
  ended: { entitled: false, known: true },
  missing: { entitled: false, known: true },
  unreadable: { entitled: false, known: true },
  other_app: { entitled: false, known: true },
  other_item: { entitled: false, known: true },
  unknown_business: { entitled: false, known: true },
  invalid_business_uid: { entitled: false, known: true },
  item_unknown: { entitled: false, known: true },
}

/** Judges every answer: of `isEntitled`, `explain`, the gate and the route. */
export function judgeAnswers(history: History, belief: Belief): Finding[] {
  const findings: Finding[] = []
  const ends = createEnds(history, belief)
  for (const asked of history.asked) {
    const fail = (heading: string, message: string) => {
      const words = `${asked.by} for ${asked.business || 'nobody'} in ${asked.process.name}: ${message}`
      findings.push({
        at: asked.at === Number.POSITIVE_INFINITY ? asked.from : asked.at,
        heading,
        message: words,
      })
    }
    const { answer } = asked
    if (!answer) judgeSilence(asked, fail)
    else if (asked.by === 'nobody') judgeNobody(answer, fail)
    else {
      judgeShape(asked, answer, fail)
      judgeTime(asked, fail)
      if (answer.entitled) judgeYes(asked, answer, fail)
      else judgeNo(asked, answer, fail)
    }
  }
  return findings

  type Fail = (heading: string, message: string) => void

  /** How long a question may take: it waits for a read, and for the database. */
  function longestMs({ process, by }: Asked): number {
    const { lateMs, storeMs } = history.exactness
    // Time goes on in leaps while nothing but these doors waits.
    const isAside = by === 'gate' || by === 'route'
    return process.rules.waitMs + 5 * SECOND + 10 * storeMs + (isAside ? 2 * lateMs : 0)
  }

  function judgeSilence(asked: Asked, fail: Fail) {
    const until = asked.from + longestMs(asked)
    if (until < history.endAt && history.isSteady(asked.process, asked.from, until))
      fail('Everything is bounded', `no answer within ${longestMs(asked)} ms`)
  }

  function judgeTime(asked: Asked, fail: Fail) {
    if (asked.at - asked.from <= longestMs(asked) || !history.isSteady(asked.process, asked.from, asked.at))
      return
    fail('Everything is bounded', `answered after ${asked.at - asked.from} ms`)
  }

  function judgeNobody({ status, cacheControl }: Answer, fail: Fail) {
    if (status !== 401) fail('The gate: the guard', `a request without a business gets ${status}`)
    if (!cacheControl?.includes('no-store')) fail('The gate: caches', 'a refusal may be stored')
  }

  function judgeShape({ by, process, business }: Asked, answer: Answer, fail: Fail) {
    const { entitled, known, reason, accessUntil, status, items, retryAfter } = answer
    if (answer.isRejected) return fail('The gate', 'isEntitled and explain never reject')
    if (entitled && known === false) fail('Reasons', 'entitled, and not known')
    if (accessUntil) fail('The gate', `accessUntil is ${accessUntil} without entitledWhen`)
    const isSecondsLater = /^[1-9]\d*$/.test(retryAfter ?? '')
    if (by === 'explain') {
      const row = REASONS[reason ?? '']
      if (!row) fail('Reasons', `${reason} is not a reason`)
      else if (row.entitled !== entitled || row.known !== known)
        fail('Reasons', `${reason} with entitled ${entitled} and known ${known}`)
      if (!answer.explanation) fail('The gate', 'no explanation')
    }
    if (by === 'gate') {
      if (!entitled && status !== 402 && status !== 503) fail('The guard', `a reply ${status}`)
      if (status === 503 && !isSecondsLater) fail('The guard', `a 503 with Retry-After ${retryAfter}`)
      if (!entitled && !answer.cacheControl?.includes('no-store')) fail('Caches', 'a refusal may be stored')
    }
    if (by === 'route') {
      if (status !== 200) fail('A front end', `a reply ${status}`)
      if (!known && !isSecondsLater) fail('A front end', `not known, with Retry-After ${retryAfter}`)
      if (!answer.cacheControl?.includes('no-store')) fail('Caches', 'a reply of the route may be stored')
    }
    if (items && entitled !== items.length > 0)
      fail('Several items', `entitled ${entitled}, with ${items.length} items`)
    const wrong = items?.filter(
      (item) => !shownItems(business).has(item) || !isOurs(process.rules.items, item),
    )
    if (wrong?.length) fail('Several items', `gives access by ${wrong.join()}, which no read has shown`)
  }

  function shownItems(business: string) {
    return new Set(history.shownOf(business).map(({ reply }) => (reply as Sight['reply']).item))
  }

  /** A process that is cut off from the database answers from memory, of any age that `maxStaleMs` allows. */
  function clearFrom({ process, from, at }: Asked): number {
    const isCut = process.troubles.some((each) => each.from <= at && each.until >= from - 10 * SECOND)
    return isCut ? Number.NEGATIVE_INFINITY : from
  }

  function judgeYes(asked: Asked, { items }: Answer, fail: Fail) {
    const { business, process, at } = asked
    const from = clearFrom(asked)
    const uids = [...belief.uidsOf(business)]
    const granting = uids.filter((uid) =>
      belief.mayBe(uid, from, at, process).all.some((each) => belief.gives(each, business, process)),
    )
    if (granting.length === 0) {
      const isEver = uids.some((uid) =>
        belief.sightsOf(uid).some((each) => each.at <= at && belief.gives(each, business, process)),
      )
      if (isEver)
        return fail(
          'When the platform answers, the database becomes equal to it',
          'yes, but the last read shows no purchase',
        )
      return fail('A payload never grants access', 'yes, but no read has shown a purchase')
    }
    const oldest = asked.from - process.rules.maxStaleMs - belief.slackMs
    const fresh = granting.filter((uid) => {
      const last = belief
        .sightsOf(uid)
        .filter((each) => each.at <= at)
        .at(-1)
      // A reader that was frozen may have stored its reply later.
      return last && last.at >= oldest - (belief.isSettled(last) ? 0 : FROZEN_MS)
    })
    if (fresh.length === 0 && history.isEven(oldest, at))
      return fail(
        'While the platform is down, the last answer stands',
        'yes, but no read has confirmed it for too long',
      )
    if (fresh.length > 0 && fresh.every((uid) => ends.isOver(uid, business, from)))
      return fail(
        'A subscription that the platform no longer shows ends',
        `yes, but ${fresh.join()} has ended`,
      )
    const none = items?.filter(
      (item) =>
        !granting.some((uid) =>
          belief
            .mayBe(uid, from, at, process)
            .all.some((each) => belief.gives(each, business, process) && each.reply.item === item),
        ),
    )
    if (none?.length) fail('Several items', `${none.join()} is not what the business has`)
  }

  function judgeNo(asked: Asked, answer: Answer, fail: Fail) {
    const { business, process, from, at } = asked
    const { known, reason } = answer
    const isSteady = history.isSteady(process, from - 10 * SECOND, at)
    if (!isSteady || !isPlain(asked)) return
    for (const uid of belief.uidsOf(business)) {
      const { certain, all } = belief.mayBe(uid, from, at, process)
      if (!certain || !all.every((each) => belief.gives(each, business, process))) continue
      // Whoever reads with other items stores another meaning of the record.
      if (!isSame(certain.process.rules.items, process.rules.items)) continue
      // A read that lags shows an older record, which confirms nothing. Of one whose process was frozen it is not certain
      // that it was stored, or as of when.
      const isStored = (each: Sight) => each.at + belief.lagMs <= from && belief.isSettled(each)
      const last = all.filter(isStored).at(-1) ?? certain
      if (last.at < at - process.rules.maxStaleMs + belief.slackMs) continue
      if (!history.isEven(last.at - HOUR, at)) continue
      const why = ends.whyNot(uid, business, last, at, answer)
      if (why)
        fail(
          why.heading,
          `${uid} is purchased, and the answer is ${reason ?? (known ? 'no' : 'not known')}: ${why.message}`,
        )
    }
    if (known) judgeDefiniteNo(asked, answer, fail)
    else judgeWait(asked, answer, fail)
  }

  /** "After a delivery they wait up to `freshness.waitMs` for the read that it requested." */
  function judgeWait({ business, process, from, at }: Asked, { reason }: Answer, fail: Fail) {
    const { waitMs } = process.rules
    if (reason !== 'not_read_yet' || waitMs < SECOND || history.exactness.isForged) return
    const events = history.announcedTo(business).filter((each) => each.uid !== '' && each.takenAt <= from)
    const first = events[0]
    // The wait is counted from the first request without an answer.
    if (!first || events.length > 1 || first.process !== process || isEarlier(business, first.at)) return
    const isRead =
      history.looksAt(first.uid).some((each) => each.at <= at) ||
      history.tokensOf(business).some((each) => each.at <= at && each.reply?.is !== 'token')
    // Clocks that differ by less than a second count as equal.
    const isEarly = at < first.at + waitMs - 200 - Math.min(history.exactness.skewMs, SECOND)
    if (isEarly && !isRead && isOurs(process.rules.items, first.item))
      fail(
        'The gate: after a delivery they wait',
        `not known ${at - first.takenAt} ms after the delivery, and no read has ended`,
      )
  }

  function isEarlier(business: string, at: number) {
    return (
      history.announcedTo(business).some((each) => each.at < at) ||
      history.of('requested').some((each) => each.business === business)
    )
  }

  /** A definite no needs a reason: "not known yet" is never a no. */
  function judgeDefiniteNo({ business, process, from, at }: Asked, { reason }: Answer, fail: Fail) {
    const heading = 'Reasons'
    const named = history
      .announcedTo(business)
      .filter(
        (each) =>
          each.uid !== '' && each.takenAt + belief.lagMs <= from && isOurs(process.rules.items, each.item),
      )
      .filter(({ uid, takenAt }) => history.isEven(takenAt - MINUTE, at) && isFirstName(uid, business))
    if (named.length > 0 && reason === 'unknown_business') fail(heading, `${named[0]?.uid} was announced`)
    if (history.exactness.isForged) return
    for (const { uid } of named) {
      const done = [...history.looksAt(uid), ...history.tokensOf(business)].filter(
        (look) =>
          look.at <= at &&
          look.reply?.is !== 'token' &&
          look.reply?.is !== 'failed' &&
          look.reply?.is !== 'throttled',
      )
      const first = named.find((each) => each.uid === uid)?.takenAt as number
      if (done.length === 0 && at - first < 70 * HOUR)
        return fail(heading, `${uid} was announced, and no read has ended`)
      const isUnread = !done.some(({ reply }) => reply?.is === 'record')
      if (isUnread && at - first < 9 * MINUTE)
        return fail(
          heading,
          `${uid} was announced ${(at - first) / SECOND} s ago, and its verifications are not over`,
        )
    }
    const sights = history.shownOf(business).filter((each) => each.at <= at)
    if (
      reason === 'not_purchased' &&
      !sights.some(({ reply }) => reply?.is === 'record' && reply.state !== 'purchased')
    )
      fail(heading, 'no read has shown another state than purchased')
    const isUninstalled = history
      .announcedTo(business)
      .some((each) => each.pair.endsWith(' uninstalled') && each.at <= at)
    if (reason === 'revoked' && !isUninstalled) fail(heading, 'revoked without an uninstall')
  }

  /** Until a subscription has been read, the first event that names it decides its business. */
  function isFirstName(uid: string, business: string) {
    return history.announcedOf(uid).every((each) => each.business === business)
  }

  /** Whether all processes since an hour have had the same right options, and nothing was erased. */
  function isPlain({ process, business, at }: Asked) {
    const erased = history.of('erased').some((each) => each.business === business && each.at <= at)
    const others = history.processes.filter((each) => each.from <= at && each.until >= at - HOUR)
    return !erased && others.every(({ rules }) => rules.isRight && isSame(rules.items, process.rules.items))
  }
}

const isOurs = (items: readonly string[], item: string) => items.length === 0 || items.includes(item)
const isSame = (a: readonly string[], b: readonly string[]) => a.join() === b.join()
