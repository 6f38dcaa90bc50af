import type { Finding } from '../log.js'
import type { Belief, Sight } from './belief.js'
import type { Call, History } from './history.js'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** "at most 4 reads of a subscription a second" */
const CLOSELY_MS = SECOND / 4

/** Judges the calls of the platform: when they must come, and how many may come. */
export function judgeReads(history: History, belief: Belief): Finding[] {
  const findings: Finding[] = []
  const { exactness, calls, isSteady, isWorkedOn } = history
  const { lateMs, storeMs } = exactness
  const reads = calls.filter(({ of }) => of === 'read')
  const fail = (at: number, heading: string, message: string) => void findings.push({ at, heading, message })
  const requests = history.of('requested')
  const throttled = calls.filter(({ reply }) => reply?.is === 'throttled')
  const disturbedAt = calls
    .filter(({ reply }) => reply && reply.is !== 'record' && reply.is !== 'token')
    .map(({ at }) => at)
  const isThrottled = (from: number, until: number) =>
    throttled.some(({ at }) => at >= from - HOUR && at <= until)

  judgeAtOnce()
  judgePauses()
  judgeRate()
  judgeTokens()
  judgeNotices()
  judgeRepetitions()
  judgeReconciles()
  return findings

  /** "Concurrent reads; never two of one business": docs/options.md, `reads.concurrency`. */
  function judgeAtOnce() {
    const running = new Set<Call>()
    for (const read of reads) {
      for (const other of running) if (other.at <= read.from) running.delete(other)
      const alive = [...running].filter(({ process, from }) => isSteady(process, from, read.from))
      // A read whose lease has ended is given up; the leases of some worlds are short.
      const young = alive.filter(({ from }) => read.from - from < 4 * SECOND)
      // A process that wakes up goes on with a read that another one has taken over.
      const isAwake = isSteady(read.process, read.from - SECOND, read.from)
      const twin = isAwake && young.find(({ uid }) => uid === read.uid)
      if (twin) fail(read.from, 'Options: reads.concurrency', `two reads of ${read.uid} at once`)
      const own = young.filter(({ process }) => process === read.process).length + 1
      const most = read.process.rules.readsAtOnce
      if (own > most) fail(read.from, 'Options: reads.concurrency', `${own} reads at once, of ${most}`)
      running.add(read)
    }
  }

  /** "waits after 429 as long as Retry-After demands, 1 s to 1 h": docs/platform-interface.md. */
  function judgePauses() {
    for (const { process, from, at, reply } of throttled) {
      if (reply?.is !== 'throttled') continue
      const until = at + Math.min(Math.max(reply.afterMs, SECOND), HOUR)
      // A process that was frozen gets an old answer.
      if (!history.isSteady(process, from, until)) continue
      const early = calls.find((each) => each.process === process && each.from > at && each.from < until)
      if (early)
        fail(
          early.from,
          'The document is silent on: rate limits',
          `a call ${early.from - at} ms after a 429 that asks for ${reply.afterMs} ms`,
        )
    }
  }

  /** "Deliveries cause at most 4 reads of a subscription a second, and one in five seconds while they follow each other closely." */
  function judgeRate() {
    const byUid = new Map<string, Call[]>()
    for (const read of reads) byUid.set(read.uid, [...(byUid.get(read.uid) ?? []), read])
    for (const [uid, own] of byUid) {
      for (const [i, { from }] of own.entries()) {
        const asked = requests.filter((each) => each.at >= from - MINUTE && each.at <= from + MINUTE).length
        const second = own.slice(i).filter((each) => each.from < from + SECOND).length
        const minute = own.slice(i).filter((each) => each.from < from + MINUTE).length
        // A refused token costs one more read, and a request ends the wait.
        const again = own.filter(
          (each) => each.from >= from && each.from < from + MINUTE && each.reply?.is !== 'record',
        ).length
        if (second > 5 + again + asked)
          fail(from, 'A payload never grants access', `${second} reads of ${uid} in a second`)
        const apart = eventsApart(uid, from, from + MINUTE)
        if (minute > 25 + apart + 2 * again + 3 * asked)
          fail(from, 'A payload never grants access', `${minute} reads of ${uid} in a minute`)
      }
    }
  }

  /** How many events of a subscription came alone: only those that follow each other closely share a read. */
  function eventsApart(uid: string, from: number, until: number) {
    return history
      .announcedOf(uid)
      .filter(({ at }, i, all) => at >= from && at < until && at - (all[i - 1]?.at ?? -SECOND) >= CLOSELY_MS)
      .length
  }

  /** "caches a token for 5 min without `expires_in`, and gets a new one after a 401": docs/platform-interface.md. */
  function judgeTokens() {
    const heading = 'The document is silent on: lifetime and scope of tokens'
    const last = new Map<string, Call>()
    const ended = new Map<string, number>()
    for (const call of [...calls].sort((a, b) => a.from - b.from)) {
      const key = `${call.process.name} ${call.business}`
      const got = last.get(key)
      if (call.of === 'token') {
        const isKept = got && call.from > got.at && call.from - got.at < 5 * MINUTE - 30 * SECOND
        const isBroken = disturbances(call.process.name, got?.at ?? 0, call.from)
        if (isKept && !isBroken && history.isEven(got.at, call.from))
          fail(
            call.from,
            heading,
            `a second token for ${call.business} after ${(call.from - got.at) / SECOND} s`,
          )
        if (call.reply?.is === 'token') last.set(key, call)
        continue
      }
      const isOwn = got?.reply?.is === 'token' && got.reply.token === call.token
      if (isOwn && call.from - got.at > 5 * MINUTE + 30 * SECOND && isSteady(call.process, got.at, call.from))
        fail(
          call.from,
          heading,
          `a token of ${call.business} is used after ${(call.from - got.at) / MINUTE} min`,
        )
      const endedAt = ended.get(`${key} ${call.token}`)
      if (endedAt !== undefined && call.from > endedAt + SECOND)
        fail(call.from, heading, `a token of ${call.business} is used again after a 401`)
      if (call.reply?.is === 'refused' && call.reply.status === 401)
        ended.set(`${key} ${call.token}`, call.at)
    }
  }

  /** A call that failed may have ended a token. */
  function disturbances(process: string, from: number, until: number) {
    return calls.some(
      (each) =>
        each.process.name === process &&
        ((each.at >= from && each.at <= until && each.reply?.is !== 'record' && each.reply?.is !== 'token') ||
          (each.from <= until && each.at > until)),
    )
  }

  /** "After a purchase event the app reads the subscription": the receiver rule. */
  function judgeNotices() {
    // Who sends forged events has half of the reads, and delays others who are not known.
    for (const event of history.announced) {
      const { uid, process, takenAt, item } = event
      if (!uid || !Number.isFinite(takenAt) || !event.pair.startsWith('purchasable_subscription')) continue
      const isKnown = belief.sightsOf(uid).some((each) => each.at < event.at)
      const { items } = process.rules
      if (items.length > 0 && !items.includes(item) && !isKnown) continue
      if (exactness.isForged && !isKnown) continue
      const until = takenAt + 20 * SECOND + lateMs + 10 * storeMs
      if (until > history.endAt || isThrottled(takenAt, until) || !isWorkedOn(takenAt - 10 * SECOND, until))
        continue
      if (!isSteady(process, event.at, until)) continue
      if (isBusy(takenAt, until)) continue
      // While the first read of a business fails, others of the business wait.
      const isFailing = disturbedAt.some((at) => at >= takenAt - HOUR && at <= until)
      if (isFailing) continue
      const isRead = calls.some(
        (each) =>
          each.from >= event.at &&
          each.from <= until &&
          (each.of === 'read' ? each.uid === uid : each.business === event.business),
      )
      if (!isRead)
        fail(until, 'The receiver rule', `${uid} was announced at ${takenAt}, and no read followed`)
    }
  }

  /** Whether the calls of all processes took most of the time, so that reads waited for each other. */
  function isBusy(from: number, until: number) {
    const taken = calls.reduce(
      (sum, call) => sum + Math.max(0, Math.min(call.at, until) - Math.max(call.from, from)),
      0,
    )
    const most = Math.min(...history.processes.map(({ rules }) => rules.readsAtOnce))
    return taken > 0.4 * most * (until - from)
  }

  /** "A read that lags behind its event is repeated: after 5 s, 30 s, 2 min, 10 min, until it has shown as many changes as there were events." */
  function judgeRepetitions() {
    const truths = history.of('truth')
    for (const event of history.announced) {
      const { uid, takenAt, process } = event
      if (event.pair !== 'purchasable_subscription update' || !Number.isFinite(takenAt)) continue
      const sights = belief.sightsOf(uid)
      const before = sights.filter((each) => each.at < event.at).at(-1)
      const truth = truths.filter((each) => each.uid === uid && each.at <= event.at).at(-1)
      if (!before || !truth || truth.updatedAt <= before.reply.updatedAt) continue
      const isAlone = history
        .announcedOf(uid)
        .every(
          (each) => each === event || each.at < event.at - 15 * MINUTE || each.at > event.at + 15 * MINUTE,
        )
      if (!isAlone || !history.isEven(before.at, event.at + 15 * MINUTE)) continue
      let after = event.at
      let firstAt: number | undefined
      let last: Call | Sight | undefined
      for (const pauseMs of [0, 5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE]) {
        const by = after + pauseMs * 1.3 + 15 * SECOND + lateMs + 10 * storeMs
        if (by > history.endAt || isThrottled(takenAt, by) || !isWorkedOn(takenAt - SECOND, by)) break
        if (
          disturbedAt.some((at) => at >= takenAt - HOUR && at <= by) ||
          !isSteady(process, event.at, takenAt)
        )
          break
        const look = sights.find((each) => each !== last && each.from >= after && each.from <= by)
        if (!look) {
          fail(
            by,
            'A read that lags behind its event is repeated',
            `${uid} was not read again within ${pauseMs / SECOND} s of ${after}`,
          )
          break
        }
        if (look.reply.updatedAt > before.reply.updatedAt) break
        // "An older record never replaces a newer one, unless the platform repeats it for an hour."
        firstAt ??= look.at
        if (look.at - firstAt >= HOUR) break
        after = look.at
        last = look
      }
    }
  }

  /** "Interval of the regular read of every subscription, ± 20 %": docs/options.md, `freshness.reconcileEveryMs`. */
  function judgeReconciles() {
    const heading = 'Options: freshness.reconcileEveryMs'
    const uids = new Set(reads.map(({ uid }) => uid))
    for (const uid of uids) {
      const looks = history.looksAt(uid)
      for (const [i, look] of looks.entries()) {
        if (look.reply?.is !== 'record' || look.reply.business !== look.business) continue
        const { rules } = look.process
        const isOurs = rules.items.length === 0 || rules.items.includes(look.reply.item)
        const next = looks[i + 1]
        const by = look.at + 1.2 * rules.reconcileEveryMs + 2 * lateMs + 5 * MINUTE
        const until = Math.min(next?.from ?? history.endAt, by + SECOND)
        if (!isOurs || !history.isEven(look.at, until)) continue
        if (!next || next.from > by) {
          const isRefused = history
            .tokensOf(look.business)
            .some((each) => each.at >= look.at && each.at <= by && each.reply?.is !== 'token')
          const isErased = history.of('erased').some(({ business }) => business === look.business)
          if (until >= by && !isRefused && !isErased && !isThrottled(look.at, by) && isLong(look.at, by))
            fail(by, heading, `${uid} was not read for ${((next?.from ?? history.endAt) - look.at) / HOUR} h`)
        } else judgeNeedless(uid, look, next)
      }
    }
  }

  /** Whether the app ran all the time, with the same options. */
  function isLong(from: number, until: number) {
    const workers = history.processes.filter(
      ({ rules, from: own, until: end }) => rules.isWorker && own <= until && end >= from,
    )
    if (
      workers.some(({ rules }) => !rules.isRight) ||
      workers.some(({ troubles }) => troubles.some((each) => each.until >= from && each.from <= until))
    )
      return false
    let at = from
    for (const worker of [...workers].sort((a, b) => a.from - b.from)) {
      if (worker.from > at + MINUTE) return false
      at = Math.max(at, Math.min(worker.until, worker.closingAt))
    }
    return at >= until
  }

  /** "The first read that shows a subscription again is repeated too": whether that read, before `look`, came after `from`. */
  function isShownAgain(uid: string, look: Call, from: number) {
    const before = calls.filter(
      (each) =>
        each.at <= look.at && (each.of === 'read' ? each.uid === uid : each.business === look.business),
    )
    const refused = before.findLast(({ reply }) => reply?.is !== 'record' && reply?.is !== 'token')
    const first = refused && before.find(({ of, at }) => of === 'read' && at > refused.at)
    return first !== undefined && first.at >= from - lateMs
  }

  /** A read without any reason comes no sooner than the interval allows. */
  function judgeNeedless(uid: string, look: Call, next: Call) {
    const { rules } = look.process
    const least = 0.8 * rules.reconcileEveryMs - MINUTE
    if (look.reply?.is !== 'record' || next.from - look.at >= least || next.from - look.at < MINUTE) return
    const from = look.at - 20 * MINUTE - 3 * lateMs
    const isAlone =
      !requests.some(({ at }) => at >= from && at <= next.from) &&
      // A failure makes reads of others due, which a world that dozes makes late.
      !disturbedAt.some((at) => at >= next.from - HOUR - lateMs && at <= next.from) &&
      !isShownAgain(uid, look, from) &&
      ![...history.announcedOf(uid), ...history.announcedTo(look.business)].some(
        (each) => each.at >= from - 3 * 24 * HOUR && each.at <= next.from,
      ) &&
      !history.processes.some((each) => each.from >= from && each.from <= next.from) &&
      history.isEven(from, next.from)
    if (isAlone)
      fail(
        next.from,
        'Options: freshness.reconcileEveryMs',
        `${uid} was read again after ${(next.from - look.at) / HOUR} h`,
      )
  }
}
