import { DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { Allowance } from '../../../lib/store/accepting/allowance.js'
import type { VirtualClock } from '../machine/virtual-clock.js'
import { createSharedDatabase, type SharedDatabase } from '../world/database.js'
import { wordsOf } from '../world/promises.js'
import { createRandom } from '../world/random.js'
import type { Sabotage } from '../world/sabotage.js'
import type { Deployed } from './app.js'
import { answerDueAt, type Customer, type Customs, createCustomers } from './customers.js'
import { hasSender } from './faults.js'
import { isOfSender, SMALL_ALLOWANCE } from './sender.js'
import { createWorld, live, type WorldResult } from './world.js'

export const CALM_DAYS = 200
const CUSTOMERS_AT_FIRST = 25
const CUSTOMERS_AT_MOST = 35
/** Retries of days may be late by this. Those of hours are attended. */
const DOZE_MS = 2 * HOUR

/** The time between two floods of a sender. */
const FLOOD_EVERY_MS = 2 * DAY

/** An app with handlers, or one that only asks, as the first example of the README. */
export type Habit = 'with handlers' | 'only asks'

/**
 * Lives through days without any fault: an ordinary app with one to four instances on one file, a deployment each week,
 * and customers who come, pay, miss payments, leave and return. Each event is delivered once, and in some worlds a few
 * are lost. In every tenth world somebody who has the delivery secret sends floods. The result depends only on the arguments.
 */
export async function liveCalmly(
  seed: number,
  options: {
    days?: number | undefined
    habit?: Habit | undefined
    instances?: number | undefined
    /** Instead of one file, or of a database in memory for several instances. */
    createDatabase?(time: VirtualClock, most?: Allowance): Promise<SharedDatabase>
    sabotage?: Sabotage
  } = {},
): Promise<WorldResult> {
  const { days = CALM_DAYS, createDatabase = createSharedDatabase, sabotage } = options
  const random = createRandom(seed * 7_919)
  const drawn = random.pick<Habit>(['with handlers', 'only asks'])
  const { habit = drawn } = options
  const some = random.pick(['changes', 'all'] as const)
  const handlers = habit === 'only asks' ? 'none' : some
  const customs: Customs = {
    afterEnd: random.pick(['no token', 'no token', 'nothing', '403', 'its record']),
    graceMs: random.pick([0, 0, 2 * SECOND, 5 * MINUTE]),
    sendsRecords: random.chance(0.5),
    sendsInstalls: random.chance(0.8),
  }
  const lost = random.pick([0, 0, 0.03])
  const world = createWorld(seed, { sabotage, dozeMs: DOZE_MS, hasSender: hasSender(seed) })
  const { time, app, platform, deliveries, verdict, probes, ledger, note, sender } = world
  // One instance has a file. Several share a database.
  const drawnCount = random.pick([1, 1, 1, 2, 2, 2, 3, 4])
  const { instances: count = drawnCount } = options
  const database = count > 1 ? await createDatabase(time, sender && SMALL_ALLOWANCE) : undefined
  const instances = Array.from({ length: count }, (_, i): Deployed => {
    const isWorking = i === 0 || random.chance(0.8)
    return {
      handlers,
      ...(isWorking ? {} : { worker: false }),
      ...(database ? { connect: database.connect } : {}),
    }
  })
  deliveries.now.lost = lost
  platform.now.lagMs = random.pick([0, 0, 1_500])
  note(JSON.stringify({ habit, handlers, count, lost, ...customs, ...platform.now }))

  const whyNeverDue =
    lost > 0 || sender
      ? 'no delivery named it, or it is under way, and deliveries are lost or turned away'
      : 'it is under way'

  const anyInstance = () => random.of(String(time.passed())).pick(app.marketplaces())

  async function check(customer: Customer) {
    const { business, did } = customer
    // Nobody knows a customer who has not come yet.
    const dueAt = customer.acts === 0 ? 0 : answerDueAt(customer)
    if (time.passed() < dueAt) {
      return verdict.skipped('right', dueAt < Number.POSITIVE_INFINITY ? 'too early' : whyNeverDue)
    }
    const { acts } = customer
    const expected = platform.isPaying(business)
    const { entitled, reason } = await time.follow(anyInstance().explain(business))
    if (customer.acts !== acts) return verdict.skipped('right', 'too early')
    verdict.made('right')
    const since = ((time.passed() - dueAt) / HOUR).toFixed(1)
    const words = `${business} last ${did}, due for ${since} h, and the answer is ${reason}`
    if (entitled !== expected)
      verdict.fail('right', `${words}, but the customer ${expected ? 'pays' : 'does not pay'}`)
    else if (reason === 'stale') verdict.fail('right', words)
    if (handlers !== 'none') probes.checkOpen(did, business, expected)
  }

  async function checkHealth() {
    time.lookClosely(3 * SECOND)
    await time.advance(3 * SECOND)
    for (const marketplace of app.marketplaces()) {
      verdict.made('calm')
      const { status, problems } = await time.until(marketplace.health())
      const others = problems.filter((problem) => !(sender && isOfSender(problem)))
      if (others.length > 0 || (status !== 'ok' && problems.length === 0))
        verdict.fail('calm', `health is ${status}: ${others.map(wordsOf).join('; ')}`)
    }
  }

  const customers = createCustomers({
    ...{ time, platform, deliveries, random: random.fork(), customs, note },
    onDue: (customer) => void time.follow(check(customer)),
  })

  const result = await live(
    world,
    {
      ...{ seed, faults: [], command: repeatCalm(seed, days, habit, count) },
      expected: [
        ...(['right', 'calm', 'ended'] as const),
        ...(handlers === 'none' ? [] : (['open', 'apart'] as const)),
        ...(sender ? (['harmless'] as const) : []),
      ],
    },
    async () => {
      for (const instance of instances) app.deploy(instance)
      for (let i = 0; i < CUSTOMERS_AT_FIRST; i++) customers.arrive()
      sender?.begin({ everyMs: FLOOD_EVERY_MS })
      for (let day = 1; day <= days; day++) {
        if (day % 3 === 0 && customers.all.length < CUSTOMERS_AT_MOST) customers.arrive()
        await time.advance(random.between(0, DAY / HOUR - 1) * HOUR)
        await checkHealth()
        for (const customer of customers.all) await time.until(check(customer))
        if (day % 7 === 0) {
          if (database) await app.roll(instances, random.pick([SECOND, 30 * SECOND, 5 * MINUTE]))
          else await app.redeploy(instances[0])
          note('deployed')
          await time.advance(MINUTE)
          await checkHealth()
          await world.checkJournal()
        }
        await time.advance(Math.max(0, day * DAY - time.passed()))
      }
      await world.checkJournal()
      if (ledger.dead() > 0) verdict.fail('calm', `${ledger.dead()} entries are dead`)
    },
  )
  await database?.close()
  return result
}

/** The command that repeats this world. */
function repeatCalm(seed: number, days: number, habit: Habit, count: number): string {
  return `npm run simulate -- --months --calm '${habit}' --seed ${seed} --days ${days} --instances ${count}`
}
