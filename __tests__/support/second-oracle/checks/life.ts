import type { Finding } from '../log.js'
import type { Belief } from './belief.js'
import { createEnds } from './ends.js'
import type { Call, History, Life } from './history.js'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Judges deliveries, the end of processes, and erasures. */
export function judgeLife(history: History): Finding[] {
  const findings: Finding[] = []
  const { isSteady, exactness, endAt } = history
  const { storeMs, lateMs } = exactness
  const fail = (at: number, heading: string, message: string) => void findings.push({ at, heading, message })
  for (const delivery of history.deliveries) judgeDelivery(delivery)
  for (const process of history.processes) judgeClose(process)
  for (const { at, business, left } of history.of('erased'))
    if (left.length > 0)
      fail(at, 'An erasure leaves no uid, and keeps who did what', `${business}: ${left.join('; ')}`)
  return findings

  /** A delivery gets 200 when it is on disk; it waits 3 s for the disk before the reply is 503: docs/options.md. */
  function judgeDelivery({
    process,
    at,
    repliedAt,
    status,
    isWhole,
    isOrdinary,
  }: History['deliveries'][number]) {
    if (!isWhole) {
      if (status === 200) fail(at, 'Acknowledged means on disk', 'a body that broke off was acknowledged')
      return
    }
    const by = at + 4 * SECOND + 4 * storeMs
    const until = Math.min(by, repliedAt)
    if (until > endAt || !isSteady(process, at - 30 * SECOND, until)) return
    if (repliedAt > by)
      fail(by, 'Options: durations that are no option', `no reply to a delivery within ${by - at} ms`)
    // A slow database takes the 3 s by itself.
    if (exactness.isForged || storeMs > SECOND || !isOrdinary || !Number.isFinite(repliedAt)) return
    if (status !== 200)
      fail(repliedAt, 'Acknowledged means on disk', `a delivery got ${status}, and nothing was wrong`)
  }

  /** "`close()` waits up to `closeTimeoutMs` for work under way, and not much longer for a handler that hangs." */
  function judgeClose({ name, rules, closingAt, closedAt, until, troubles }: Life) {
    const by = closingAt + rules.closeTimeoutMs + 5 * SECOND + 5 * storeMs + lateMs
    if (!Number.isFinite(closingAt)) return
    const isDisturbed =
      troubles.some((each) => each.until >= closingAt && each.from <= by) ||
      !history.isEven(closingAt - MINUTE, by)
    if (closedAt > by && until > by && by < endAt && !isDisturbed)
      fail(by, 'Closing lets work finish', `${name} has not closed after ${by - closingAt} ms`)
    const call = history.calls.find(({ process, from }) => process.name === name && from > closedAt)
    if (call) fail(call.from, 'Closing lets work finish', `${name} calls the platform after it has closed`)
    const run = history.runs.find(({ process, from }) => process.name === name && from > closedAt)
    if (run) fail(run.from, 'Closing lets work finish', `${name} calls a handler after it has closed`)
    // Work under way may end by itself.
    for (const { process, from, abortedAt, until: end } of history.runs) {
      if (process.name !== name || from >= closingAt || end <= closingAt || abortedAt <= closingAt) continue
      if (
        abortedAt < closingAt + rules.closeTimeoutMs - SECOND &&
        abortedAt - from < rules.timeoutMs - SECOND &&
        !isDisturbed
      )
        fail(
          abortedAt,
          'Closing lets work finish',
          `${name} aborts a handler ${abortedAt - closingAt} ms after it began to close`,
        )
    }
  }
}

/** Judges `health()`: `ok` means that the app works, and without a fault it is `ok`. */
export function judgeHealth(history: History, belief: Belief): Finding[] {
  const heading = 'Health that is ok means that the app works'
  const findings: Finding[] = []
  const { exactness, looks, isSteady } = history
  const ends = createEnds(history, belief)
  const bad = looks.filter(({ reply }) => reply && reply.is !== 'record' && reply.is !== 'token')
  const failed = looks.filter(({ reply }) => reply?.is === 'failed' || reply?.is === 'throttled')
  const errors = history.of('handler error')
  const replays = history.of('requested').filter(({ what }) => what === 'replay')
  for (const { at, process, status, problems } of history.of('health')) {
    const fail = (message: string) => void findings.push({ at, heading, message: `${process}: ${message}` })
    if ((status === 'ok') !== (problems.length === 0)) fail(`${status} with ${problems.length} problems`)
    if (new Set(problems).size < problems.length) fail('a problem occurs twice')
    const life = history.processes.find(({ name }) => name === process)
    if (!life || !isSteady(life, at - 65 * SECOND, at)) continue
    judgeRefused(at, life, problems, fail)
    if (status === 'ok') judgeOk(at, life, fail)
    else judgeNotOk(at, status, problems, fail)
  }
  return findings

  function judgeOk(at: number, life: Life, fail: (message: string) => void) {
    const lastReplay = replays.filter((each) => each.at <= at).at(-1)?.at ?? -1
    const since = errors.filter((each) => each.at <= at && each.at > lastReplay)
    const isDone = (id: string, after: number) =>
      history.runs.some((run) => run.entry.id === id && run.from >= after && run.isDone && run.until <= at)
    const dead = since.find(
      (each) =>
        each.retryInMs === null &&
        each.at < at - MINUTE &&
        each.at > at - 29 * 24 * HOUR &&
        !isDone(each.id, each.at),
    )
    if (dead && history.isEven(dead.at, at)) fail(`${dead.id} is dead`)
    const failing = since.filter(
      (each) =>
        each.retryInMs !== null &&
        each.at < at - MINUTE &&
        !since.some((other) => other.id === each.id && other.at > each.at),
    )
    const open = failing.find(({ id, at: from }) => !isDone(id, from - 1) && at < from + 24 * HOUR)
    if (
      open &&
      history.isEven(open.at, at) &&
      !since.some((each) => each.id === open.id && each.retryInMs === null)
    )
      fail(`a handler of ${open.id} fails`)
    judgeReads(at, life, fail)
    judgeStale(at, life, fail)
  }

  /** "While a room is full, health is degraded", and while most of the last deliveries cannot be stored. */
  function judgeRefused(
    at: number,
    life: Life,
    problems: readonly string[],
    fail: (message: string) => void,
  ) {
    const own = history.deliveries.filter(
      (each) => each.process === life && each.at > at - 3 * MINUTE && each.repliedAt <= at && each.isWhole,
    )
    const refused = own.filter((each) => each.status === 503)
    const isSaid = problems.some((code) => /^(deliveries|store|worker|closed|transaction)/.test(code))
    if (refused.length >= 5 && refused.length > own.length / 3 && !isSaid)
      fail(
        `${refused.length} of the last ${own.length} deliveries were refused, and no problem names them: ${problems.join()}`,
      )
  }

  /** "while an entry or a read is overdue, while most reads fail or are refused": a requested read is overdue after 1 min. */
  function judgeReads(at: number, life: Life, fail: (message: string) => void) {
    const all = looks.filter(
      (each) =>
        each.at > at - 2 * HOUR && each.at <= at && each.process === life && each.reply?.is !== 'token',
    )
    const lastGood = all.findLastIndex(({ reply }) => reply?.is !== 'failed' && reply?.is !== 'refused')
    const recent = all.slice(lastGood + 1)
    const since = (ms: number) => (recent[0]?.at ?? at) < at - ms
    const businesses = new Set(recent.map(({ business }) => business))
    const isFailing =
      recent.length >= 6 && businesses.size >= 2 && recent.every(({ reply }) => reply?.is === 'failed')
    if (isFailing && since(70 * SECOND)) fail(`the last ${recent.length} reads have failed`)
    // Those that have ended are refused without a problem, also beside another subscription of the business.
    const isOwed = ({ of: kind, business, uid }: Call) =>
      (kind === 'read' ? [uid] : [...belief.uidsOf(business)]).some((each) => ends.isOwed(each, business, at))
    const isRefused =
      businesses.size >= 3 &&
      recent.every(({ reply }) => reply?.is === 'refused') &&
      new Set(recent.filter(isOwed).map(({ business }) => business)).size >= 3
    if (isRefused && since(15 * MINUTE)) fail(`the last ${recent.length} reads were refused`)
  }

  function judgeStale(at: number, { rules }: Life, fail: (message: string) => void) {
    const last = new Map<string, number>()
    for (const look of looks) {
      if (look.at > at) break
      if (
        look.reply?.is === 'record' &&
        look.reply.state === 'purchased' &&
        look.reply.business === look.business
      )
        last.set(look.uid, look.at)
      else if (look.reply?.is === 'record') last.delete(look.uid)
    }
    const stale = [...last.values()].filter((own) => own < at - rules.maxStaleMs - HOUR)
    const isFailing = failed.some((each) => each.at > at - HOUR && each.at <= at)
    if (isFailing && last.size >= 4 && stale.length > 0.9 * last.size)
      fail(`${stale.length} of ${last.size} answers are stale`)
  }

  /** Without any fault so far, health has no problem. */
  function judgeNotOk(
    at: number,
    status: string,
    problems: readonly string[],
    fail: (message: string) => void,
  ) {
    if (exactness.isForged || problems.includes('closed')) return
    const from = at - 10 * 24 * HOUR
    const isDisturbed =
      bad.some((each) => each.at >= from && each.at <= at) ||
      errors.some((each) => each.at <= at) ||
      history.processes.some(({ rules, troubles }) => !rules.isRight || troubles.length > 0) ||
      new Set(history.processes.map(({ rules }) => rules.items.join())).size > 1 ||
      history.deliveries.some((each) => each.at <= at && each.status !== 200) ||
      !history.isEven(0, at)
    if (!isDisturbed) fail(`health is ${status} (${problems.join()}), and nothing was ever wrong`)
  }
}
