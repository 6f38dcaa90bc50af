import { setTimeout as pause } from 'node:timers/promises'
import { seeded } from '../../../lib/testing/random.js'
import { startPostgres } from '../engines/postgres.js'
import { startPlatform } from '../scene.js'
import { disagreements, noticesWithoutRead, unhandled, wrongLastChanges } from './agreement.js'
import { type Audit, audit, type Finding } from './audit.js'
import { createBooks } from './books.js'
import { callsOf } from './calls.js'
import { now, seconds } from './clock.js'
import { createCommerce } from './commerce.js'
import { evidenceFor } from './evidence.js'
import { figuresOf } from './figures.js'
import { startInstances } from './instances.js'
import { createMonkey } from './monkey.js'
import { startSender } from './sender.js'
import { createVisitors } from './visitors.js'
import { watchUpdatedAt } from './watch-updated-at.js'

const LEASE_MS = 3_000
const BUSINESSES = 50
/** The pause between two actions of any businesses. Each action causes one to five deliveries. */
const MOVE_EVERY_MS = 90
/**
 * From the last fault until all agree. Pauses between reads grow during an outage (full jitter over 2 s, 4 s, 8 s ...):
 * a read that has failed six times, which is rare, waits up to a minute.
 */
export const AGREE_WITHIN_MS = 150_000

/** From the last fault until every instance takes deliveries. Their health says that the last ones failed until then. */
const TAKE_WITHIN_MS = 60_000

/** One more lease and one more poll. The first verification comes later: it would hide that a notice was forgotten. */
const READ_WITHIN_MS = LEASE_MS + 1_500

export interface ChaosOptions {
  instances: number
  /** Storms begin until this time has passed. */
  forMs: number
  /** The run alternates: a storm of this length, then calm until all agree. */
  stormMs: number
  seed: number
  /** How long `purchased` counts without a read; scheduled reads come four times as often. */
  maxStaleMs: number
  onProgress?(line: string): void
}

export interface ChaosReport {
  /** The figures as a small table. */
  figures: string
  /** The violations with their evidence; empty when every promise was kept. */
  wrong: string
}

/** Runs several instances on one database, with a platform, customers, visitors and faults. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { instances: count, forMs, stormMs, seed, maxStaleMs, onProgress = () => {} } = options
  const chance = seeded(seed)
  // A decision that becomes stale and then recovers is not a change of purchase_state, so the last change does not
  // show it.
  const canGoStale = maxStaleMs < forMs
  const findings: Finding[] = []
  const find = (promise: string, text: string, ...ids: string[]) => findings.push({ promise, text, ids })

  const database = await startPostgres({ settings: { max_connections: '120' } })
  const address = await database.createDatabase()
  const books = createBooks(database, address)
  const platform = await startPlatform({ seed, deliveryConcurrency: 20 })
  const { baseUrl, authUrl } = platform
  const { instances, lives } = await startInstances({
    count,
    databasePort: database.port,
    store: address,
    seed,
    settings: { baseUrl, authUrl, leaseMs: LEASE_MS, maxStaleMs, reconcileEveryMs: maxStaleMs / 4 },
  })
  const sender = await startSender(instances)
  for (const event of REGISTERED) await platform.register(event, sender.url)
  // Slow reads make it likely that events arrive while their subscription is being read.
  platform.faults.add({ on: 'read', kind: 'slow', ms: [20, 400], probability: 0.5 })
  platform.faults.add({ on: 'delivery', kind: 'delay', ms: [0, 1_500], probability: 0.3 })
  platform.faults.add({ on: 'delivery', kind: 'duplicate', probability: 0.1 })
  platform.faults.add({ on: 'delivery', kind: 'reorder', hold: 3, probability: 0.1 })

  const hands = Math.min(count, 3)
  const monkey = createMonkey({ instances, database, platform, seeded: chance, hands, leaseMs: LEASE_MS })
  const commerce = createCommerce({ platform, businesses: BUSINESSES, random: chance.stream('commerce') })
  const visitors = createVisitors({
    instances,
    commerce,
    monkey,
    random: chance.stream('visitors'),
    maxStaleMs,
    onWrong: (text) => find('no business is let in wrongly', text),
  })

  commerce.begin()
  // Processes start slowly on a busy machine, and a storm before their start would strike nothing.
  for (const from = now(); sender.acknowledged.length === 0 && now() - from < TAKE_WITHIN_MS; )
    await pause(100)

  const began = now()
  const recoveries: number[] = []
  let last: Audit | undefined
  let isOver = false
  const going = () => !isOver
  const beside = Promise.all([
    visitors.come(() => isOver),
    watchUpdatedAt({ books, isGoing: going, find }),
    reportProgress(going),
  ])

  try {
    while (now() - began < forMs && findings.length === 0) {
      const stormEnds = Math.min(now() + stormMs, began + forMs)
      monkey.storm()
      while (now() < stormEnds) {
        commerce.step()
        await pause(MOVE_EVERY_MS)
      }
      await monkey.calm()
      await platform.settled()
      await comeToRest()
    }
    if (canGoStale && findings.length === 0) await stayRight()
  } finally {
    isOver = true
  }
  await beside

  const figures = figuresOf({
    seed,
    count,
    ranMs: now() - began,
    sender,
    monkey,
    visitors,
    recoveries,
    lives,
    commerce,
    audit: last,
    platform,
  })
  const journal = await books.journal()
  const wrong = evidenceFor({ findings, seed, journal, lives, troubles: monkey.troubles, began })
  return { figures, wrong }

  /**
   * Checks that every instance takes deliveries again, that all agree within a limit, and that the journal and the
   * calls are correct.
   */
  async function comeToRest() {
    const from = now()
    const event = (await books.journal()).find(({ kind }) => kind === 'event')?.payload
    for (const instance of instances) if (event) await takesDeliveries(instance, event, from)
    const left = await untilAllAgree()
    recoveries.push(now() - from)
    for (const text of left) find(`all agree within ${seconds(AGREE_WITHIN_MS)}`, text)

    const agreedAt = now()
    let unread: ReturnType<typeof noticesWithoutRead>
    do {
      unread = noticesWithoutRead(platform, sender.acknowledged, await books.journal())
      if (unread.length > 0) await pause(50)
    } while (unread.length > 0 && now() - agreedAt < READ_WITHIN_MS)
    for (const { id, text } of unread) {
      find('a read follows each notice', text, id)
    }
    const { journal, calls } = await atOneMoment()
    for (const { id, text } of left.length > 0 || canGoStale ? [] : wrongLastChanges(commerce, journal)) {
      find('the last change has the right answer', text, id)
    }
    last = audit({
      journal,
      calls,
      acknowledged: sender.acknowledged,
      lives,
      troubles: monkey.troubles,
      leaseMs: LEASE_MS,
    })
    findings.push(...last.findings)
  }

  /** Waits until all agree. Resolves with the differences that remain after AGREE_WITHIN_MS. */
  async function untilAllAgree(): Promise<string[]> {
    const from = now()
    let reportedAt = from
    for (;;) {
      const left = await differences().catch((error) => [String(error)])
      if (left.length === 0 || now() - from >= AGREE_WITHIN_MS) return left
      await pause(100)
      if (now() - reportedAt < 2_000) continue
      reportedAt = now()
      onProgress(
        `after ${seconds(reportedAt - from)} of calm: ${left.length} differences, such as ${left[0]?.slice(0, 160)}`,
      )
    }
  }

  async function differences(): Promise<string[]> {
    const found = await disagreements({ instances, commerce, platform, sender, books })
    return found.length > 0 ? found : unhandled(books)
  }

  /**
   * Compares the journal with the calls between two changes, because scheduled reads go on. Pending entries count only
   * if they stay pending.
   */
  async function atOneMoment() {
    const deadline = now() + READ_WITHIN_MS
    for (;;) {
      const journal = await books.journal()
      const calls = callsOf(lives)
      const isSame = JSON.stringify(await books.journal()) === JSON.stringify(journal)
      const isHandled = journal.every(({ status }) => status !== 'pending')
      if ((isSame && isHandled) || now() > deadline) return { journal, calls }
      await pause(50)
    }
  }

  /**
   * Without faults and without events, scheduled reads alone must keep the answers fresh. First come the deliveries
   * that were sent again: some of their handlers fail at the first try on purpose.
   */
  async function stayRight() {
    for (const text of await untilAllAgree()) find('all agree again', text)
    const until = now() + maxStaleMs * 1.5
    while (now() < until && findings.length === 0) {
      for (const text of await disagreements({ instances, commerce, platform, sender, books }))
        find('correct answers stay correct', text)
      await pause(500)
    }
  }

  /** Gives an instance an event again, until it has taken two. */
  async function takesDeliveries(instance: (typeof instances)[number], event: string, from: number) {
    for (let taken = 0; taken < 2; ) {
      if (await sender.give(instance, event)) taken++
      else if (now() - from < TAKE_WITHIN_MS) await pause(100)
      else return find('every instance takes deliveries again', `instance ${instance.number} does not`)
    }
  }

  async function reportProgress(isGoing: () => boolean) {
    for (let next = 10_000; isGoing(); await pause(200)) {
      if (now() - began < next) continue
      next += 10_000
      const strikes = `${monkey.troubles.length} faults, ${recoveries.length} recoveries`
      const { answers } = visitors.counts()
      onProgress(
        `${seconds(now() - began)}: ${sender.taken()} deliveries, ${sender.acknowledged.length} acknowledged, ${answers} answers, ${strikes}, ${findings.length} findings`,
      )
    }
  }
}

/** All events of a business, but only one form of install, because both forms announce the same. */
const REGISTERED = [
  'purchasable_subscription/create',
  'purchasable_subscription/update',
  'purchasable_subscription/updated',
  'application/installed',
  'application/uninstalled',
] as const
