import { SECOND } from '../../../lib/base/clock.js'
import { startPostgres } from '../engines/postgres.js'
import { createCommerce } from '../world/commerce.js'
import { createDeliverer } from '../world/deliverer.js'
import { checkChanges } from '../world/journal.js'
import { createVerdict, tallyLines } from '../world/promises.js'
import { createRandom } from '../world/random.js'
import type { EntryRow } from '../world/rows.js'
import { createBooks, disagreements, noticesWithoutRead, watchUpdatedAt } from './agreement.js'
import { audit } from './audit.js'
import { callsOf } from './calls.js'
import { now, realTime, seconds } from './clock.js'
import { type Instance, startInstances } from './instances.js'
import { createMonkey } from './monkey.js'
import { startPlatform } from './platform.js'
import { evidenceOf, tableOf } from './report.js'
import { createVisitors } from './visitors.js'

const LEASE_MS = 3 * SECOND
const BUSINESSES = 50
/** The pause between two actions of any businesses. Each action causes one to five deliveries. */
const MOVE_EVERY_MS = 90
/** Several businesses act each second, so few of them go: many ends within a minute would look like an outage. */
const WEIGHTS = { uninstalls: 0.05, cancels: 0.06, upgrades: 0.03, 'buys another item': 0.03 }
/**
 * From the last fault until all agree. Pauses between reads grow during an outage (full jitter over 2 s, 4 s, 8 s ...):
 * a read that has failed six times, which is rare, waits up to a minute.
 */
const AGREE_WITHIN_MS = 150 * SECOND
/** From the last fault until every instance takes deliveries. Their health says that the last ones failed until then. */
const TAKE_WITHIN_MS = 60 * SECOND
/** One more lease and one more poll. The first verification comes later: it would hide that a notice was forgotten. */
const READ_WITHIN_MS = LEASE_MS + 1.5 * SECOND

export interface ChaosOptions {
  instances: number
  /** Storms begin until this time has passed. */
  forMs: number
  /** The run alternates: a storm of this length, then calm until all agree. */
  stormMs: number
  seed: number
  /** How long `purchased` counts without a read; scheduled reads come four times as often. */
  maxStaleMs: number
}

export interface ChaosReport {
  /** The figures as a small table. */
  figures: string
  /** The violations with their evidence; empty when every promise was kept. */
  wrong: string
}

/** Runs several instances on one database, with a platform, customers, visitors and faults. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { instances: count, forMs, stormMs, seed, maxStaleMs } = options
  const random = createRandom(seed)
  // A decision that becomes stale and then recovers is not a change of purchase_state, so the last change does not
  // show it.
  const canGoStale = maxStaleMs < forMs
  const began = now()
  const verdict = createVerdict(() => `after ${seconds(now() - began)}`)
  const isWhole = () => verdict.broken.length === 0

  const database = await startPostgres({ settings: { max_connections: '120' } })
  const address = await database.createDatabase()
  const books = createBooks(database, address)
  const platform = await startPlatform(random.of('platform'), (changed) => {
    void deliverer.record(changed, platform.recordOf(changed))
  })
  const { baseUrl, authUrl } = platform
  const { instances, lives, acknowledged, tries } = await startInstances({
    count,
    databasePort: database.port,
    store: address,
    seed,
    settings: { baseUrl, authUrl, leaseMs: LEASE_MS, maxStaleMs, reconcileEveryMs: maxStaleMs / 4 },
  })

  let isOver = false
  const network = random.of('network')
  let turn = 0
  const deliverer = createDeliverer({
    time: realTime,
    random: network,
    network: {
      ...{ lost: 0, held: 0.1, doubled: 0.1, copies: 2 },
      delayMs: () => (network.chance(0.3) ? network.between(0, 1_500) : 0),
      againMs: () => (isOver ? undefined : 100),
    },
    reach: (body) => (instances[turn++ % count] as Instance).deliver(body),
  })
  const own = random.of('businesses')
  const businesses = Array.from({ length: BUSINESSES }, (_, i) => `business-${i}`)
  const customers = createCommerce({
    ...{ platform, deliverer, random: own, weights: WEIGHTS },
    also: ['upgrades', 'buys another item', 'edits', 'installs'],
  })
  let moves = 0
  function move(business = own.pick(businesses)) {
    moves++
    customers.act(business)
    // Two identical deliveries at once that mean two changes.
    if (own.chance(0.1)) customers.pay(business)
  }

  const hands = Math.min(count, 3)
  const monkey = createMonkey({ instances, database, platform, random, hands, leaseMs: LEASE_MS })
  const visitors = createVisitors({
    ...{ instances, businesses, platform, monkey, verdict, maxStaleMs },
    random: random.of('visitors'),
  })

  for (const business of businesses) if (own.chance(0.7)) move(business)
  // Processes start slowly on a busy machine, and a storm before their start would strike nothing.
  await until(() => acknowledged.length > 0, TAKE_WITHIN_MS)

  const firstStorm = now()
  const recoveries: number[] = []
  let audited: ReturnType<typeof audit> | undefined
  const beside = Promise.all([visitors.come(() => isOver), watchUpdatedAt(books, verdict, () => isOver)])

  try {
    while (now() - firstStorm < forMs && isWhole()) {
      const stormEnds = Math.min(now() + stormMs, firstStorm + forMs)
      monkey.storm()
      while (now() < stormEnds) {
        move()
        await realTime.sleep(MOVE_EVERY_MS)
      }
      await monkey.calm()
      deliverer.release()
      await comeToRest()
    }
    if (canGoStale && isWhole()) await stayRight()
  } finally {
    isOver = true
  }
  await beside

  verdict.close(['entitled', 'follow', 'stored'])
  const { answers, grants, slowestMs } = visitors.counts
  const figures = tableOf({
    [`${count} instances, seed ${seed}`]: seconds(now() - firstStorm),
    'actions on the platform': moves,
    'attempts to deliver': tries(),
    acknowledged: acknowledged.length,
    'reads of the platform': platform.reads(),
    'questions answered': answers,
    '  with yes': grants,
    '  slowest of a healthy instance': seconds(slowestMs),
    'processes begun': lives.length,
    ...monkey.counts(),
    recoveries: recoveries.length,
    'slowest recovery': seconds(Math.max(0, ...recoveries)),
    ...audited,
  }).concat('\n', tallyLines(verdict.tally).join('\n'))
  const { broken } = verdict
  const { troubles } = monkey
  return { figures, wrong: evidenceOf({ broken, seed, journal: await books.journal(), lives, troubles }) }

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
    for (const text of left)
      verdict.fail('equal', `${seconds(AGREE_WITHIN_MS)} after the last fault: ${text}`)

    let unread: ReturnType<typeof noticesWithoutRead> = []
    await until(async () => {
      unread = noticesWithoutRead(platform, acknowledged, await books.journal())
      return unread.length === 0
    }, READ_WITHIN_MS)
    for (const { id, text } of unread) verdict.fail('read', text, id)
    const { journal, calls } = await atOneMoment()
    if (left.length === 0 && !canGoStale) checkLastChanges(journal)
    const { troubles } = monkey
    audited = audit({ journal, calls, acknowledged, lives, troubles, leaseMs: LEASE_MS, verdict })
  }

  /** Waits until all agree. Resolves with the differences that remain after AGREE_WITHIN_MS. */
  async function untilAllAgree(): Promise<string[]> {
    let left: string[] = []
    await until(async () => {
      left = await differences().catch((error) => [String(error)])
      return left.length === 0
    }, AGREE_WITHIN_MS)
    return left
  }

  async function differences(): Promise<string[]> {
    if (deliverer.underWay() > 0) return [`${deliverer.underWay()} deliveries are not acknowledged`]
    const found = await disagreements({ instances, businesses, platform, books })
    if (found.length > 0) return found
    const pending = (await books.journal()).filter(({ status }) => status === 'pending')
    return pending.slice(0, 1).map((row) => `${pending.length} entries are pending: ${JSON.stringify(row)}`)
  }

  /** The last changes of all subscriptions of a business together give the right answer. */
  function checkLastChanges(journal: readonly EntryRow[]) {
    const paid = new Map<string, string[]>()
    for (const { uid, state, rows } of checkChanges(journal, verdict).values()) {
      const { business_uid: business } = rows[0] as EntryRow
      const isPaid = state === 'purchased' && platform.isOurs(uid)
      paid.set(String(business), [...(paid.get(String(business)) ?? []), ...(isPaid ? [uid] : [])])
    }
    for (const [business, uids] of paid) {
      if (uids.length > 0 === platform.isPaying(business)) continue
      verdict.fail('open', `the changes of ${business} end with ${uids.join() || 'nothing'} purchased`)
    }
  }

  /**
   * Compares the journal with the calls between two changes, because scheduled reads go on. Pending entries count only
   * if they stay pending.
   */
  async function atOneMoment() {
    let journal = await books.journal()
    let calls = callsOf(lives)
    await until(async () => {
      calls = callsOf(lives)
      const before = JSON.stringify(journal)
      journal = await books.journal()
      return JSON.stringify(journal) === before && journal.every(({ status }) => status !== 'pending')
    }, READ_WITHIN_MS)
    return { journal, calls }
  }

  /**
   * Without faults and without events, scheduled reads alone must keep the answers fresh. First come the deliveries
   * that were sent again: some of their handlers fail at the first try on purpose.
   */
  async function stayRight() {
    for (const text of await untilAllAgree()) verdict.fail('equal', text)
    const end = now() + maxStaleMs * 1.5
    while (now() < end && isWhole()) {
      for (const text of await disagreements({ instances, businesses, platform, books })) {
        verdict.fail('right', `without a fault and an event: ${text}`)
      }
      await realTime.sleep(500)
    }
  }

  /** Gives an instance an event again, until it has taken two. */
  async function takesDeliveries(instance: Instance, event: string, from: number) {
    let taken = 0
    await until(
      async () => {
        if ((await instance.deliver(event)).status === 200) taken++
        return taken >= 2
      },
      from + TAKE_WITHIN_MS - now(),
    )
    if (taken < 2) verdict.fail('up', `instance ${instance.number} does not take deliveries again`)
  }
}

/** Looks until it is so, or the time has passed. */
async function until(isSo: () => boolean | Promise<boolean>, withinMs: number): Promise<void> {
  const end = now() + withinMs
  while (!(await isSo()) && now() < end) await realTime.sleep(50)
}
