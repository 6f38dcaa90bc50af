import type { Answer, Door, Entry, Exactness, Observation, Reply, Rules, Topic } from '../log.js'

/** A log, arranged by what its observations are about. */
export type History = ReturnType<typeof historyOf>

export interface Life {
  name: string
  rules: Rules
  /** What it handles. */
  topics: Set<Topic>
  from: number
  /** When none of its code runs any more. */
  until: number
  closingAt: number
  closedAt: number
  troubles: { from: number; until: number }[]
}

/** One call of the platform, and its reply, if one came. */
export interface Call {
  call: number
  process: Life
  of: 'token' | 'read'
  business: string
  uid: string
  token: string
  from: number
  at: number
  reply: Reply | undefined
}

/** One event of a delivery. */
export interface Announced {
  at: number
  /** When it was acknowledged; infinite if it was not. */
  takenAt: number
  process: Life
  delivery: number
  pair: string
  business: string
  uid: string
  item: string
  /** Of a full record. */
  state: string
  data: string
}

export interface Asked {
  process: Life
  by: Door
  business: string
  from: number
  at: number
  answer: Answer | undefined
}

export interface Run {
  process: Life
  run: number
  handler: string
  topic: Topic
  entry: Entry
  attempt: number
  from: number
  until: number
  abortedAt: number
  isDone: boolean
}

export interface Delivery {
  process: Life
  delivery: number
  at: number
  repliedAt: number
  status: number
  isWhole: boolean
  /** Whether its body is one event of the interface, or an array of such events. */
  isOrdinary: boolean
}

/** "After 60 s another process takes over the work of one that died": docs/options.md. */
const NOTICED_MS = 90_000
const NEVER = Number.POSITIVE_INFINITY

export function historyOf(log: readonly Observation[], exactness: Exactness) {
  const processes = new Map<string, Life>()
  const calls = new Map<number, Call>()
  const asked = new Map<number, Asked>()
  const runs = new Map<number, Run>()
  const deliveries = new Map<number, Delivery>()
  const announced: Announced[] = []
  const of = <K extends Observation['kind']>(kind: K) =>
    log.filter((each): each is Extract<Observation, { kind: K }> => each.kind === kind)
  const lifeOf = (name: string) => processes.get(name) as Life

  for (const each of log) {
    const { at } = each
    switch (each.kind) {
      case 'process began': {
        const { process: name, rules } = each
        const ends = { until: NEVER, closingAt: NEVER, closedAt: NEVER }
        processes.set(name, { name, rules, topics: new Set(), from: at, ...ends, troubles: [] })
        break
      }
      case 'registered':
        lifeOf(each.process).topics.add(each.topic)
        break
      case 'process ended':
        lifeOf(each.process).until = at
        break
      case 'trouble':
        lifeOf(each.process).troubles.push({ from: at, until: at + each.forMs })
        break
      case 'closing':
        lifeOf(each.process).closingAt = Math.min(lifeOf(each.process).closingAt, at)
        break
      case 'closed':
        lifeOf(each.process).closedAt = Math.min(lifeOf(each.process).closedAt, at)
        break
      case 'delivered': {
        const { delivery, isWhole } = each
        const process = lifeOf(each.process)
        const events = isWhole ? eventsOf(each.body) : []
        const isOrdinary = events.every(({ pair }) => pair in NAMES)
        deliveries.set(delivery, { process, delivery, at, repliedAt: NEVER, status: 0, isWhole, isOrdinary })
        for (const event of events) announced.push({ at, takenAt: NEVER, process, delivery, ...event })
        break
      }
      case 'replied': {
        const delivery = deliveries.get(each.delivery)
        if (delivery) Object.assign(delivery, { repliedAt: at, status: each.status })
        break
      }
      case 'called': {
        const { call, of: kind, business, uid, token } = each
        const process = lifeOf(each.process)
        calls.set(call, {
          call,
          process,
          of: kind,
          business,
          uid,
          token,
          from: at,
          at: NEVER,
          reply: undefined,
        })
        break
      }
      case 'answered call':
        Object.assign(calls.get(each.call) as Call, { at, reply: each.reply })
        break
      case 'asked': {
        const { ask, by, business } = each
        asked.set(ask, {
          process: lifeOf(each.process),
          by,
          business,
          from: at,
          at: NEVER,
          answer: undefined,
        })
        break
      }
      case 'answered':
        Object.assign(asked.get(each.ask) as Asked, { at, answer: each.answer })
        break
      case 'handler began': {
        const { run, handler, topic, entry, attempt } = each
        const process = lifeOf(each.process)
        const ends = { until: NEVER, abortedAt: NEVER, isDone: false }
        runs.set(run, { process, run, handler, topic, entry, attempt, from: at, ...ends })
        break
      }
      case 'handler aborted': {
        const run = runs.get(each.run)
        if (run) run.abortedAt = Math.min(run.abortedAt, at)
        break
      }
      case 'handler ended':
        Object.assign(runs.get(each.run) ?? {}, { until: at, isDone: each.isDone })
    }
  }
  for (const each of announced) {
    const { status, repliedAt } = deliveries.get(each.delivery) as Delivery
    if (status === 200) each.takenAt = repliedAt
  }
  const endAt = log.at(-1)?.at ?? 0
  const machine = of('machine')
  const upsets = machine.filter(({ what }) => what !== 'disk is well').map(({ at }) => at)
  const badDisk = spansOf(machine)
  const lives = [...processes.values()]
  const looks = [...calls.values()].filter(({ reply }) => reply !== undefined).sort((a, b) => a.at - b.at)
  const shown = looks.filter(({ reply }) => reply?.is === 'record')

  /** Whether nothing happened to the machine meanwhile. */
  const isEven = (from: number, until: number) =>
    !upsets.some((at) => at >= from && at <= until) &&
    !badDisk.some((span) => span.from <= until && span.until >= from)

  return {
    log,
    exactness,
    of,
    endAt,
    processes: lives,
    deliveries: [...deliveries.values()],
    announced,
    calls: [...calls.values()],
    /** The calls that were answered, in the order of their replies. */
    looks,
    asked: [...asked.values()],
    runs: [...runs.values()],
    isEven,
    /** Whether the process lived all the time, was neither frozen nor cut off, and did not close. */
    isSteady: (process: Life, from: number, until: number) =>
      process.from <= from &&
      process.until >= until &&
      process.closingAt >= until &&
      !process.troubles.some((trouble) => trouble.from <= until && trouble.until >= from) &&
      isEven(from, until),
    /**
     * Whether some process with a worker was steady all the time, and no process is in trouble or has died, which another
     * one would notice after a minute only.
     */
    isWorkedOn: (from: number, until: number) => {
      const noticedFrom = from - NOTICED_MS
      const isUpset = lives.some(
        (life) =>
          (life.until >= noticedFrom && life.until <= until) ||
          life.troubles.some((each) => each.from <= until && each.until >= noticedFrom),
      )
      const isWorker = ({ rules, from: own, closingAt }: Life) =>
        rules.isWorker && rules.isRight && own <= from && closingAt >= until
      return !isUpset && lives.some(isWorker) && isEven(from, until)
    },
    /** The calls about a subscription or its business, in the order of their replies. */
    looksAt: indexed(looks, ({ of: kind, uid }) => (kind === 'read' ? uid : undefined)),
    tokensOf: indexed(looks, ({ of: kind, business }) => (kind === 'token' ? business : undefined)),
    announcedOf: indexed(announced, ({ uid }) => uid || undefined),
    announcedTo: indexed(announced, ({ business }) => business || undefined),
    /** The subscriptions of which a read showed that they belong to the business. */
    shownOf: indexed(shown, ({ reply }) => (reply?.is === 'record' ? reply.business : undefined)),
  }
}

/** The wire pairs of docs/events.md. */
const NAMES: Record<string, true> = {
  'purchasable_subscription created': true,
  'purchasable_subscription update': true,
  'app_subscription installed': true,
  'app_subscription uninstalled': true,
  'application installed': true,
  'application uninstalled': true,
}

function eventsOf(body: string) {
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    return []
  }
  return (Array.isArray(parsed) ? parsed : [parsed]).map((envelope) => {
    const { entity_name, event_type, data = {} } = Object(envelope)
    const text = (value: unknown) => (typeof value === 'string' ? value : '')
    return {
      pair: `${entity_name} ${event_type}`,
      business: text(data.business_id) || text(data.business_uid),
      uid: text(data.subscription_uid) || text(data.uid),
      item: text(data.purchasable_uid),
      state: text(data.purchase_state),
      data: JSON.stringify(data),
    }
  })
}

function spansOf(machine: readonly { at: number; what: string }[]) {
  const spans: { from: number; until: number }[] = []
  for (const { at, what } of machine) {
    if (what === 'disk fails') spans.push({ from: at, until: NEVER })
    const last = spans.at(-1)
    if (what === 'disk is well' && last) last.until = Math.min(last.until, at)
  }
  return spans
}

/** Returns the rows of a key, without walking all rows each time. */
function indexed<T>(
  rows: readonly T[],
  keyOf: (row: T) => string | undefined,
): (key: string) => readonly T[] {
  const index = new Map<string, T[]>()
  for (const row of rows) {
    const key = keyOf(row)
    if (key === undefined) continue
    const own = index.get(key)
    if (own) own.push(row)
    else index.set(key, [row])
  }
  return (key) => index.get(key) ?? []
}
