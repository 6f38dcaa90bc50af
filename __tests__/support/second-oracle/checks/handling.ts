import type { Finding, Topic } from '../log.js'
import type { History, Run } from './history.js'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

const ORDER =
  'Events of one subscription, and changes of one business, are handled in order, never two at once'
const ONCE = 'Every observed change reaches every handler at least once'
const RETRIES = 'Handlers: success and retries'

/** Judges the calls of handlers: order, repetition, and that none is left out. */
export function judgeHandling(history: History): Finding[] {
  const findings: Finding[] = []
  const { exactness, isSteady } = history
  const { storeMs, lateMs } = exactness
  const fail = (at: number, heading: string, message: string) => void findings.push({ at, heading, message })
  const restoredAt = history
    .of('machine')
    .filter(({ what }) => what === 'restored')
    .at(-1)?.at
  const deadAt = new Map<string, number>()
  for (const { at, id, retryInMs } of history.of('handler error')) if (retryInMs === null) deadAt.set(id, at)
  /** A database that is slower than the leases of a world takes the work from a process. */
  const mayLoseLeases = storeMs >= SECOND / 2
  const byId = grouped(history.runs, ({ entry }) => entry.id)

  judgeLanes()
  judgeAtOnce()
  judgeTries()
  judgeTimeouts()
  judgeChain()
  judgeErrors()
  judgeAll()
  return findings

  /** The line of a run: changes and entitlements of a business, events of a subscription. */
  function laneOf({ topic, entry }: Run): string {
    const { business, uid, id } = entry
    if (topic === 'change' || topic === 'entitlement') return `${topic} of ${business}`
    return topic === 'event' ? `event of ${uid || business}` : id
  }

  function judgeLanes() {
    for (const [lane, runs] of grouped(history.runs, (run) => `${laneOf(run)} in ${run.handler}`)) {
      const running: Run[] = []
      for (const run of runs) {
        for (const other of running.splice(0)) {
          if (other.until <= run.from) continue
          running.push(other)
          if (!isExcused(other, run.from)) fail(run.from, ORDER, `two handlers at once: ${lane}`)
        }
        running.push(run)
      }
    }
  }

  /** "The most subscriptions, or businesses with changes, whose handlers run at once": docs/options.md. */
  function judgeAtOnce() {
    for (const [process, runs] of grouped(history.runs, (run) => run.process)) {
      let running: Run[] = []
      for (const run of runs) {
        running = running.filter((each) => Math.min(each.until, each.abortedAt) > run.from)
        running.push(run)
        const lanes = new Set(running.map(laneOf))
        if (
          lanes.size > process.rules.handlersAtOnce &&
          isSteady(process, (running[0] as Run).from, run.from)
        )
          fail(run.from, 'Options: handlers.concurrency', `handlers of ${lanes.size} run at once`)
      }
    }
  }

  /** "A handler that exceeds its time may still run; so may one whose process has lost the database, or has closed." */
  function isExcused(run: Run, at: number): boolean {
    const { process, from, abortedAt } = run
    if (!isSteady(process, from - SECOND, at)) return true
    return abortedAt <= at && (at - from >= process.rules.timeoutMs - SECOND || mayLoseLeases)
  }

  /** The same id has the same content at each try, and its tries follow each other by the pauses. */
  function judgeTries() {
    for (const [id, runs] of byId) {
      const [first] = runs
      if (!first) continue
      const { topic } = first
      for (const run of runs) {
        const { entry } = run
        const isSame =
          entry.uid === first.entry.uid &&
          entry.business === first.entry.business &&
          entry.from === first.entry.from &&
          entry.to === first.entry.to &&
          entry.data === first.entry.data
        if (topic !== 'entitlement' && !isSame)
          fail(run.from, ONCE, `the entry ${id} has another content at its try ${run.attempt}`)
      }
      for (const [handler, own] of grouped(runs, (run) => `${run.handler} of ${run.process.name}`))
        judgePauses(id, handler, own)
    }
  }

  function isLost({ from, until, abortedAt, process }: Run) {
    return mayLoseLeases && abortedAt <= until && abortedAt - from < process.rules.timeoutMs
  }

  function judgePauses(id: string, handler: string, runs: readonly Run[]) {
    if (byId.get(id)?.some(isLost)) return
    const most = (runs[0] as Run).process.rules.retryDelaysMs.length + 1
    const isReplayed = history
      .of('requested')
      .some(({ what, at }) => what === 'replay' && at >= (runs[0] as Run).from)
    const last = runs.at(-1) as Run
    if (last.attempt > most + cutOffBefore(last) && !isReplayed)
      fail(last.from, RETRIES, `${id} is tried ${last.attempt} times`)
    for (const [i, run] of runs.entries()) {
      const before = runs[i - 1]
      if (!before || isReplayed || !isSteady(run.process, before.from, run.from)) continue
      const endedAt = Math.min(before.until, before.abortedAt)
      // A handler that returns after its time has failed all the same.
      const isDone = before.isDone && before.until <= before.abortedAt
      const isOnlyHere = isAloneIn(run) && !mayBeTakenElsewhere(run, before.from)
      if (isDone && run.topic !== 'entitlement' && isOnlyHere)
        fail(run.from, RETRIES, `${handler} is called again for ${id} after it has returned`)
      if (isDone || !Number.isFinite(endedAt)) continue
      const pauseMs = run.process.rules.retryDelaysMs[before.attempt - 1] ?? 0
      const isEarly = run.from - endedAt < 0.75 * pauseMs - exactness.skewMs
      if (run.attempt === before.attempt + 1 && isEarly && isAloneIn(run) && run.topic !== 'entitlement')
        fail(
          run.from,
          RETRIES,
          `${handler} is called again for ${id} after ${run.from - endedAt} ms, not ${pauseMs} ms`,
        )
    }
  }

  /** Whether only one process has ever handled the entry. */
  function isAloneIn({ entry, process }: Run) {
    return (byId.get(entry.id) ?? []).every((each) => each.process === process)
  }

  /**
   * "A crash may repeat a call": how many tries of the entry before this one ended with their process, or in its fault. One that
   * ended before it called a handler leaves its number out.
   */
  function cutOffBefore({ entry, topic, attempt }: Run): number {
    const tries = grouped(byId.get(entry.id) ?? [], (run) => run.attempt)
    // A try that was cut off may be repeated with the same number. Its handlers begin at once.
    const isCutOff = (runs: readonly Run[]) =>
      runs.some((run) => run.from === runs.at(-1)?.from && isInFault(run))
    let cutOff = 0
    let last = { number: 0, from: 0, cutOff: 0 }
    for (const [number, runs] of [...tries].sort(([one], [other]) => one - other)) {
      if (number > attempt) break
      const leftOut = number - last.number - 1
      const faults = faultsOf(topic, last.from, runs[0]?.from ?? 0) - last.cutOff
      cutOff += last.cutOff + Math.min(leftOut, Math.max(0, faults))
      last = { number, from: runs.at(-1)?.from ?? 0, cutOff: Number(isCutOff(runs)) }
    }
    return cutOff
  }

  /** How many faults and ends meanwhile the processes with a handler of the topic had. */
  function faultsOf(topic: Topic, from: number, until: number): number {
    return history.processes
      .filter(({ topics }) => topics.has(topic))
      .flatMap((process) => [...process.troubles, { from: process.until, until: process.until }])
      .filter((fault) => fault.from < until && fault.until >= from).length
  }

  /** Whether the process ended or had a fault before it had written the result. */
  function isInFault({ process, from, until, abortedAt }: Run): boolean {
    return !isSteady(process, from, Math.min(until, abortedAt, history.endAt) + 5 * storeMs)
  }

  /**
   * "If another process has taken the entry meanwhile". Most call its handlers (`isAloneIn`), but one that is cut off from the
   * database cannot.
   */
  function mayBeTakenElsewhere({ process, topic, from }: Run, since: number): boolean {
    return history.processes.some(
      (other) =>
        other !== process &&
        other.topics.has(topic) &&
        other.until >= since &&
        other.troubles.some((trouble) => trouble.from <= from && trouble.until >= since),
    )
  }

  /** "`signal` is aborted after `handlers.timeoutMs`." */
  function judgeTimeouts() {
    for (const run of history.runs) {
      const { process, from, until, abortedAt } = run
      const by = from + process.rules.timeoutMs + 2 * SECOND + lateMs
      if (until > by && abortedAt > by && by < history.endAt && isSteady(process, from, by))
        fail(
          by,
          'Handlers: time',
          `a handler runs for ${process.rules.timeoutMs} ms, and its signal is not aborted`,
        )
    }
  }

  /** Each change of a subscription continues from the one before. */
  function judgeChain() {
    const changes = history.runs.filter(({ topic }) => topic === 'change')
    for (const [key, runs] of grouped(changes, (run) => `${run.entry.uid} of ${run.entry.business}`)) {
      const seen = new Set<string>()
      let last: Run | undefined
      for (const run of runs) {
        if (seen.has(run.entry.id)) continue
        seen.add(run.entry.id)
        const { from, to } = run.entry
        // "What is replayed may follow later entries", so the one before may have been replayed too.
        const sinceReplay = (last?.from ?? 0) - 24 * HOUR
        const isReplayed = history
          .of('requested')
          .some((each) => each.what === 'replay' && each.at >= sinceReplay && each.at <= run.from)
        const isWhole = last !== undefined && !isReplayed && !isWithoutHandler(last.from, run.from)
        if (isWhole && last && last.entry.to !== from)
          fail(
            run.from,
            ORDER,
            `a change of ${key} goes from ${from} to ${to}, after one to ${last.entry.to}`,
          )
        if (isWhole && last) judgeAge(last, run)
        judgeShown(run)
        last = run
      }
    }
  }

  /** "An older record never replaces a newer one", unless "the platform shows the same older record for an hour". */
  function judgeAge(last: Run, { entry, from }: Run) {
    if (entry.updatedAt === null || last.entry.updatedAt === null || entry.updatedAt >= last.entry.updatedAt)
      return
    const shown = history
      .looksAt(entry.uid)
      .filter(({ at, reply }) => at <= from && reply?.is === 'record' && reply.updatedAt === entry.updatedAt)
    const isLong = from - (shown[0]?.at ?? from) >= 50 * MINUTE
    if (!isLong)
      fail(
        from,
        'An older record never replaces a newer one',
        `${entry.uid} goes to ${entry.to} by an older record`,
      )
  }

  /** Whether changes may have ended without a handler meanwhile, or the database become an older one. */
  function isWithoutHandler(from: number, until: number) {
    const isOlder = restoredAt !== undefined && restoredAt >= from
    return (
      isOlder ||
      history.processes.some((each) => !each.topics.has('change') && each.from <= until && each.until >= from)
    )
  }

  /** A change was shown by a read, and says why it has ended. */
  function judgeShown({ entry, from }: Run) {
    const { uid, to, gone, business } = entry
    if ((to === null) === (gone === null))
      fail(from, 'Changes', `a change of ${uid} to ${to} has gone ${gone}`)
    if (to === null) return
    const isShown = history
      .looksAt(uid)
      .some(
        ({ at, reply }) =>
          at <= from && reply?.is === 'record' && reply.state === to && reply.business === business,
      )
    if (!isShown)
      fail(from, 'A payload never grants access', `a change of ${uid} to ${to}, which no read has shown`)
  }

  /** "`onHandlerError` is called for every failed try of a handler in this process, and with `retryInMs: null` for each dead entry." */
  function judgeErrors() {
    const errors = grouped(history.of('handler error'), ({ id }) => id)
    for (const run of history.runs) {
      const { process, entry, attempt } = run
      const until = Math.min(run.until, run.abortedAt)
      const isDone = run.isDone && run.until <= run.abortedAt
      const by = until + 15 * SECOND + 5 * storeMs + lateMs
      if (
        isDone ||
        byId.get(entry.id)?.some(isLost) ||
        !Number.isFinite(until) ||
        by > history.endAt ||
        !isSteady(process, run.from, by)
      )
        continue
      const own = errors.get(entry.id)?.filter(({ at }) => at >= run.from && at <= by) ?? []
      if (own.length === 0)
        fail(by, 'Methods: onHandlerError', `the try ${attempt} of ${entry.id} failed, and nobody was called`)
      const isLast = attempt > process.rules.retryDelaysMs.length
      if (own.length > 0 && !isLast && own[0]?.retryInMs === null && isAloneIn(run) && !isOld(run))
        fail(until, RETRIES, `${entry.id} is dead after ${attempt} tries`)
    }
  }

  /** An entry may be dead because its retention has ended. */
  function isOld({ entry, from }: Run) {
    const first = byId.get(entry.id)?.[0]
    return first !== undefined && from - first.from > HOUR
  }

  /** Every acknowledged event, and every change, has reached every handler when all is well again. */
  function judgeAll() {
    const healedAt = history.of('healed').at(-1)?.at
    if (healedAt === undefined) return
    for (const [id, runs] of byId) {
      for (const [handler, own] of grouped(runs, (run) => run.handler)) {
        const isOver = own.some(({ isDone }) => isDone) || deadAt.has(id)
        const last = own.at(-1) as Run
        const by = Math.max(healedAt, last.from) + 10 * MINUTE
        if (!isOver && by < history.endAt)
          fail(history.endAt, ONCE, `the handler ${handler} never finished ${id}`)
      }
    }
  }
}

export function grouped<T, K>(rows: readonly T[], keyOf: (row: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const row of rows) {
    const key = keyOf(row)
    const own = groups.get(key)
    if (own) own.push(row)
    else groups.set(key, [row])
  }
  return groups
}
