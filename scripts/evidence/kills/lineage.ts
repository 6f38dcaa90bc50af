import { createRandom, type Random } from '../../../__tests__/support/world/random.js'
import { type Market, openMarket } from './market.js'
import { createServers, type Entry, type Handled, type ServerProcess } from './processes.js'

const LEASE_MS = 1_000
/** How long the app may take at the end, when nothing happens any more. */
const PATIENCE_MS = 60_000

export interface Lineage {
  kills: number
  acknowledged: number
  lost: number
  wrong: number
  /** The calls of handlers, and the answers during the work, that were checked. */
  handled: number
  answers: number
  broken: string[]
}

/**
 * A lineage of processes on one database: each but the last is killed at a random moment of its work, and the next goes on.
 * The moments depend on the seed, but not what the processes do until then.
 */
export async function liveAndDie(options: { store: string; seed: number; kills: number }): Promise<Lineage> {
  const { store, seed, kills } = options
  const random = createRandom(seed)
  const market = await openMarket(seed, random.fork())
  const calls: Handled[] = []
  const settings = { ...market.settings, store, leaseMs: LEASE_MS, handlersTakeMs: random.pick([0, 5, 30]) }
  const servers = createServers(settings, (call) => void calls.push(call))
  const broken: string[] = []
  let answers = 0

  const timing = random.fork()
  /** How much the businesses do: some for each process, so that a busy machine has no more of it. */
  let toDo = 0
  const acting = everySome(timing, () => {
    if (toDo-- > 0) market.act()
  })
  try {
    for (let killed = 0; killed < kills; killed++) {
      toDo = timing.between(2, 14)
      const server = await servers.begin()
      const listening = server.listening.then(
        (port) => market.deliverTo(port),
        () => {},
      )
      // Some are killed while they open the database.
      const isEarly = timing.chance(0.15)
      const asking = everySome(timing, () => void ask(server))
      if (!isEarly) {
        await listening
        await taken(timing.between(0, 16))
      }
      await sleep(timing.between(0, isEarly ? 60 : 10))
      asking.stop()
      const died = server.diedOf()
      if (died !== undefined) broken.push(`a process ended by itself: ${died}`)
      await server.kill()
      market.deliverTo(0)
    }
    acting.stop()
    const last = await servers.begin()
    market.deliverTo(await last.listening)
    await market.settled()
    const entries = await quiet(last, market, calls)
    const lost = lostOf(market, entries)
    const wrong = [...broken, ...(await wrongOf(last, market, calls, entries))]
    await last.kill()
    const acknowledged = market.acknowledged.size
    const all = [...lost, ...wrong]
    return {
      kills,
      acknowledged,
      lost: lost.length,
      wrong: wrong.length,
      handled: calls.length,
      answers,
      broken: all,
    }
  } finally {
    acting.stop()
    await servers.close()
    await market.close()
  }

  /** Resolves after so many more acknowledged deliveries, so that a busy machine kills no process before its work. */
  async function taken(count: number) {
    const until = Date.now() + 1_000
    const target = market.acknowledged.size + count
    while (market.acknowledged.size < target && Date.now() < until) await sleep(1)
  }

  /** A yes for a business that the platform has never allowed is wrong at any time. */
  async function ask(server: ServerProcess) {
    const business = timing.pick(market.businesses)
    const entitled = await server.isEntitled(business).catch(() => null)
    if (entitled === null) return
    answers++
    if (entitled && !market.wasAllowed(business))
      broken.push(`${business} was let in, and the platform had never allowed it`)
  }
}

/** Waits until nothing is wrong any more, at most for the patience; returns the journal of then. */
async function quiet(last: ServerProcess, market: Market, calls: readonly Handled[]): Promise<Entry[]> {
  const until = Date.now() + PATIENCE_MS
  for (;;) {
    const entries = await last.entries()
    if ((await wrongOf(last, market, calls, entries)).length === 0 || Date.now() > until) return entries
    await sleep(100)
  }
}

function lostOf(market: Market, entries: readonly Entry[]): string[] {
  const kept = new Set(entries.map(({ id }) => id))
  return [...market.acknowledged]
    .filter((id) => !kept.has(id))
    .map((id) => `the delivery ${id} was acknowledged, and is lost`)
}

/** What is wrong once the platform is quiet: answers, and changes and events that no handler got. */
async function wrongOf(
  last: ServerProcess,
  market: Market,
  calls: readonly Handled[],
  entries: readonly Entry[],
) {
  const wrong: string[] = []
  for (const business of market.businesses) {
    const entitled = await last.isEntitled(business)
    if ((entitled ?? false) !== market.isAllowed(business))
      wrong.push(`the answer for ${business} is ${entitled}, on the platform ${market.isAllowed(business)}`)
  }
  const got = gotOf(entries, calls)
  for (const { id, kind, status, error } of entries)
    if (status !== 'done' || !got.has(id))
      wrong.push(`the ${kind} ${id} is ${status}${got.has(id) ? '' : ', and no handler got it'} (${error})`)
  const told = new Map<string, string | undefined>()
  for (const { subscription_uid, to } of calls) if (subscription_uid) told.set(subscription_uid, to)
  for (const [uid, state] of market.states())
    if (told.get(uid) !== state)
      wrong.push(`the last change of ${uid} was to ${told.get(uid)}, on the platform it is ${state}`)
  return wrong
}

/**
 * The entries that handlers got: each by its id, and an entitlement also with a later one of its business, because one call
 * tells what is true after several.
 */
function gotOf(entries: readonly Entry[], calls: readonly Handled[]): ReadonlySet<string> {
  const called = new Set(calls.map(({ id }) => id))
  const got = new Set(called)
  const told = new Set<string | null>()
  for (const { id, kind, business_uid } of [...entries].reverse()) {
    if (kind !== 'entitlement') continue
    if (called.has(id)) told.add(business_uid)
    if (told.has(business_uid)) got.add(id)
  }
  return got
}

/** Calls `act` again and again, after 5 to 35 ms each. */
function everySome(random: Random, act: () => void) {
  let timer: NodeJS.Timeout
  const next = () => {
    timer = setTimeout(
      () => {
        act()
        next()
      },
      random.between(5, 35),
    )
  }
  next()
  return { stop: () => clearTimeout(timer) }
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
