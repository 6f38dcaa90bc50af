import type { Finding } from '../log.js'
import type { Belief, Sight } from './belief.js'
import { grouped } from './handling.js'
import type { Announced, History, Life, Run } from './history.js'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

const ONCE = 'Every observed change reaches every handler at least once'

/** Judges whether what was acknowledged, and what reads have shown, reaches the handlers, and how soon. */
export function judgeReaching(history: History, belief: Belief): Finding[] {
  const findings: Finding[] = []
  const { exactness, endAt, processes } = history
  const { lateMs, storeMs, skewMs } = exactness
  const fail = (at: number, heading: string, message: string) => void findings.push({ at, heading, message })
  const errors = history.of('handler error')
  const restoredAt = history
    .of('machine')
    .filter(({ what }) => what === 'restored')
    .map(({ at }) => at)
  const eventRuns = grouped(
    history.runs.filter(({ topic }) => topic === 'event'),
    ({ entry }) => contentOf(entry.data),
  )
  const changeRuns = grouped(
    history.runs.filter(({ topic }) => topic === 'change'),
    ({ entry }) => entry.uid,
  )

  judgeEvents()
  judgeChanges()
  judgeIds()
  judgeEntitled()
  judgeCauses()
  return findings

  /** Whether all processes from then on have a handler of the topic, and one of them had time for it. */
  function isHandled(topic: 'event' | 'change', from: number, withinMs: number) {
    const later = processes.filter(({ until }) => until >= from)
    if (!later.every(({ topics }) => topics.has(topic))) return false
    return later.some((each) => {
      const began = Math.max(each.from, from)
      return (
        Math.min(each.closingAt, each.until, endAt) - began >= withinMs &&
        history.isEven(began, began + withinMs) &&
        isWell(each, began, began + withinMs)
      )
    })
  }

  function isWell({ troubles, rules }: Life, from: number, until: number) {
    return rules.isWorker && !troubles.some((each) => each.from <= until && each.until >= from)
  }

  /** Whether a handler of the business has failed within days, which delays others of its line. */
  function isFailing(business: string, uid: string, from: number) {
    return history.runs.some(({ entry, isDone, until, abortedAt, from: began }) => {
      const isOfLine = entry.business === business || (uid !== '' && entry.uid === uid)
      return isOfLine && began >= from - 4 * 24 * HOUR && (!isDone || abortedAt <= until)
    })
  }

  /** "A delivery gets 200 after its commit and sync, so neither a killed process nor a power failure loses it." */
  function judgeEvents() {
    const boundMs = HOUR + 2 * lateMs
    const taken = history.announced.filter(
      ({ takenAt, pair, business }) => takenAt < endAt - boundMs && isOurs(pair) && business !== '',
    )
    for (const [content, events] of grouped(taken, ({ data }) => contentOf(data))) {
      const runs = eventRuns.get(content) ?? []
      for (const event of events) judgeSoon(event, runs)
      const first = events[0] as Announced
      const count = new Set(runs.map(({ entry }) => entry.id)).size
      if (
        count >= events.length ||
        restoredAt.some((at) => at >= first.at) ||
        !isHandled('event', events.at(-1)?.takenAt ?? 0, boundMs)
      )
        continue
      if (errors.some(({ at }) => at >= first.at) && isFailing(first.business, first.uid, first.at)) continue
      fail(
        endAt,
        'Acknowledged means on disk',
        `${events.length} events were acknowledged, ${count} were handled: ${content}`,
      )
    }
  }

  /** "Changes, and events of what a read has shown before, go first: in the store, at the reads and at the handlers." */
  function judgeSoon({ uid, business, takenAt, at, process }: Announced, runs: readonly Run[]) {
    const until = takenAt + 4 * SECOND
    if (
      !exactness.isForged ||
      storeMs > 0 ||
      uid === '' ||
      !belief.sightsOf(uid).some((each) => each.at < at - MINUTE)
    )
      return
    if (
      !process.topics.has('event') ||
      !process.rules.isWorker ||
      !history.isSteady(process, at - MINUTE, until)
    )
      return
    if (isFailing(business, uid, at) || errors.some((each) => each.at >= at - HOUR && each.at <= until))
      return
    if (!runs.some(({ from }) => from >= at && from <= until))
      fail(
        until,
        'Whoever has the delivery secret delays no customer',
        `the event of ${uid} at ${at} waits for its handler`,
      )
  }

  /** A read that shows another state than the one before makes a change. */
  function judgeChanges() {
    const boundMs = HOUR + 2 * lateMs
    for (const uid of new Set(history.looks.map((look) => look.uid))) {
      let newest: Sight | undefined
      for (const sight of belief.sightsOf(uid)) {
        if (newest && sight.reply.updatedAt <= newest.reply.updatedAt) continue
        const before = newest
        newest = sight
        const { business, state, item } = sight.reply
        const { rules } = sight.process
        if (before && (before.reply.state === state || before.reply.business !== business)) continue
        if (!belief.isSettled(sight) || !rules.isRight || !rules.items.includes(item)) continue
        if (
          !isHandled('change', sight.at, boundMs) ||
          isFailing(business, uid, sight.at) ||
          restoredAt.length > 0
        )
          continue
        const reached = changeRuns.get(uid) ?? []
        if (!reached.some(({ entry, from }) => from >= sight.at && entry.to === state)) {
          if (!isImported(uid, business, sight.at))
            fail(
              sight.at + boundMs,
              ONCE,
              `a read of ${uid} shows ${state} at ${sight.at}, and no handler got it`,
            )
        }
      }
    }
  }

  /** A quiet import makes no change. */
  function isImported(uid: string, business: string, at: number) {
    return history
      .of('requested')
      .some(
        (each) =>
          each.at <= at &&
          (each.uid === uid || (each.uid === '' && each.business === business) || each.what === 'all'),
      )
  }

  /** "Each try has the same `id`." */
  function judgeIds() {
    const changes = history.runs.filter(
      ({ topic, entry }) =>
        topic === 'change' && entry.from !== null && entry.to !== null && entry.updatedAt !== null,
    )
    for (const [key, runs] of grouped(
      changes,
      ({ entry }) => `${entry.uid} from ${entry.from} to ${entry.to} at ${entry.updatedAt}`,
    )) {
      const ids = new Set(runs.map(({ entry }) => entry.id))
      const [first, last] = [runs[0] as Run, runs.at(-1) as Run]
      if (ids.size > 1 && !isSeenAgain(first, last) && !restoredAt.some((at) => at >= first.from))
        fail(last.from, ONCE, `the change of ${key} has ${ids.size} ids`)
    }
  }

  /** Whether other records came between, so that the same record may have made two changes. */
  function isSeenAgain({ entry, from }: Run, last: Run) {
    return belief
      .sightsOf(entry.uid)
      .some(
        (each) =>
          each.at <= last.from &&
          each.at >= from - HOUR &&
          each.reply.state !== entry.to &&
          each.reply.updatedAt >= (entry.updatedAt ?? 0),
      )
  }

  /** Whether reads had begun when the event came: one of its subscription may have waited among them for its turn. */
  function areUnderWay(takenAt: number) {
    return history.calls.some((each) => each.from <= takenAt && each.at >= takenAt)
  }

  /** "`cause` is why the subscription was read." */
  function judgeCauses() {
    const requests = history.of('requested')
    for (const { topic, entry, from } of history.runs) {
      const { uid, business, cause, updatedAt } = entry
      if (topic !== 'change' || restoredAt.length > 0) continue
      const events = [...history.announcedOf(uid), ...history.announcedTo(business)].filter(
        (each) => each.at <= from,
      )
      const named = events.some((each) => each.takenAt <= from)
      if (cause === 'event' && events.length === 0)
        fail(from, 'Changes: cause', `a change of ${uid} has the cause event, and none named it`)
      const isRequested = requests.some(
        (each) => each.at <= from && (each.what === 'all' || each.uid === uid || each.business === business),
      )
      if (cause === 'request' && !isRequested)
        fail(from, 'Changes: cause', `a change of ${uid} has the cause request, and nobody asked for it`)
      const sight = belief.sightsOf(uid).find((each) => each.reply.updatedAt === updatedAt)
      const before =
        belief
          .sightsOf(uid)
          .filter((each) => sight && each.at < sight.at)
          .at(-1)?.at ?? 0
      const isAnnounced =
        named &&
        entry.to !== null &&
        sight &&
        history
          .announcedOf(uid)
          .some(
            ({ takenAt, at }) =>
              at > before && takenAt <= sight.from && sight.from <= at + MINUTE && !areUnderWay(takenAt),
          )
      if (cause === 'reconcile' && isAnnounced && storeMs === 0)
        fail(from, 'Changes: cause', `a change of ${uid} has the cause reconcile, and an event announced it`)
    }
  }

  /** "`entitled` says whether the business may use the app now, with all subscriptions and items." */
  function judgeEntitled() {
    for (const { topic, entry, from, process } of history.runs) {
      const { business, entitled } = entry
      if (topic !== 'change' || entitled === null) continue
      const uids = [...belief.uidsOf(business)]
      const isPossible = uids.some((uid) =>
        belief.mayBe(uid, from - 2 * SECOND, from).all.some((each) => belief.gives(each, business, process)),
      )
      if (entitled && !isPossible)
        fail(from, 'Changes', `a change of ${business} says that it is entitled, and no read shows that`)
      if (entitled) continue
      const sure = uids.find((uid) => belief.surelyGives(uid, business, from, process))
      const last =
        sure === undefined
          ? undefined
          : belief
              .sightsOf(sure)
              .filter((each) => each.at <= from)
              .at(-1)
      if (
        last &&
        last.at > from - process.rules.maxStaleMs + belief.slackMs + skewMs &&
        restoredAt.length === 0
      )
        fail(
          from,
          'Changes',
          `a change of ${business} says that it is not entitled, and ${sure} is purchased`,
        )
    }
  }
}

const isOurs = (pair: string) => /^(purchasable_subscription|application|app_subscription) /.test(pair)

/** The identifiers of an event, which a handler gets as they were sent. */
function contentOf(data: string): string {
  const { subscription_uid, uid, business_id, business_uid, event_time, updated_at } = JSON.parse(
    data || '{}',
  )
  return JSON.stringify([subscription_uid ?? uid, business_id ?? business_uid, event_time, updated_at])
}
