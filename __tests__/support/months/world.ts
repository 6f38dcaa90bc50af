import { DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import { createMarketplace } from '../../../lib/index.js'
import { createVirtualClock } from '../machine/virtual-clock.js'
import { judge } from '../second-oracle/judge.js'
import { createWitness } from '../second-oracle/witness.js'
import { ADDRESSES, CLIENT, DELIVERY_SECRET, OUR_ITEM } from '../settings.js'
import { type Broken, createVerdict, type Promised, type Tally } from '../world/promises.js'
import { createRandom, drawingFrom } from '../world/random.js'
import type { Sabotage } from '../world/sabotage.js'
import { type App, createApp } from './app.js'
import { CLOSELY_MS, checkBudget } from './budget.js'
import { createBuyers } from './buyers.js'
import { createDeliveries } from './deliveries.js'
import { createDisk, isAtWork } from './disk.js'
import { FAULT_NAMES, FAULTS, type FaultClass, type FaultName } from './faults.js'
import { createLedger } from './ledger.js'
import { createPlatformOfMonths } from './platform.js'
import { createProbes } from './probes.js'
import { createSender, SMALL_ALLOWANCE } from './sender.js'

/** The longest jump of the clock when no work is under way. */
const DOZE_MS = 30 * MINUTE
/** The longest time between two reconciles, and an hour. */
const HEALED_WITHIN_MS = 1.2 * DAY + HOUR

/** The time between two floods of a sender. */
const FLOOD_EVERY_MS = 7 * HOUR

/** At the end, so that also the customers of the last visit are settled when the budget is checked. */
const QUIET_MS = 1.5 * DAY
/** Any world checks these, whatever its faults. */
const EXPECTED: readonly Promised[] = ['in', 'healed', 'open', 'ended', 'apart', 'budget']

export interface WorldResult {
  seed: number
  faults: readonly FaultName[]
  /** The command that repeats this world. */
  command: string
  broken: readonly Broken[]
  days: number
  calls: number
  handled: number
  /** The events, in order. */
  trace: readonly string[]
  tally: Tally
}

/** Everything that a fault may use. */
export type World = ReturnType<typeof createWorld>

/** The second oracle judges no world with more deliveries. */
const MOST_DELIVERIES = 20_000

export function createWorld(
  seed: number,
  options: {
    isDiskSmall?: boolean
    hasSender?: boolean
    sabotage?: Sabotage | undefined
    dozeMs?: number
    longestMs?: number | undefined
  } = {},
) {
  const {
    isDiskSmall = false,
    hasSender = false,
    sabotage,
    dozeMs = DOZE_MS,
    longestMs = Number.POSITIVE_INFINITY,
  } = options
  const random = createRandom(seed)
  const clock = createVirtualClock({ isBusy: isAtWork, quietTurns: 2, bootedAt: 12 * DAY, dozeMs })
  const witness = createWitness(clock)
  const time = witness.clock(clock)
  const trace: string[] = []
  const verdict = createVerdict(() => `day ${(time.passed() / DAY).toFixed(2)}`)
  const platform = witness.platform(
    createPlatformOfMonths({
      time,
      random: random.fork(),
      manners: {
        wrongSecret: random.pick(['{"error":"unauthorized"}', '', '{"message":"Bad credentials"}']),
        unknownAddress: random.pick([
          { status: 404, text: '<html><body>404 Not Found</body></html>' },
          { status: 404, text: '{"message":"no Route matched with those values"}' },
          { status: 404, text: '' },
        ]),
        movedAway: random.pick(['its record', 'nothing', '403']),
      },
    }),
  )
  const ledger = createLedger(verdict)
  const disk = witness.disk(createDisk({ isSmall: isDiskSmall }))
  const app: App = createApp({
    ...{ time, disk, random: random.fork(), platform, ledger, sabotage, witness },
    allowance: hasSender ? SMALL_ALLOWANCE : undefined,
  })
  // What a sender has crowded out is sent again, so that only few checks are skipped.
  const deliveries = createDeliveries({
    time,
    app,
    random: random.fork(),
    isStubborn: hasSender || undefined,
  })
  const buyers = createBuyers({ time, platform, deliverer: deliveries, random: random.fork() })
  const sender = hasSender ? createSender({ time, app, random: createRandom(seed + 1), verdict }) : undefined
  const probes = createProbes({ time, app, platform, deliveries, buyers, verdict, ledger, sender })
  return {
    ...{ random: random.fork(), fork: random.fork(), time, verdict, platform, ledger, sender, witness },
    /** How exact the second oracle may be. */
    exactness: { lateMs: dozeMs, storeMs: 0, skewMs: 0, isForged: hasSender },
    /** The longest that a fault lasts which may last for hours or for days. */
    longestMs,
    ...{ disk, app, deliveries, buyers, probes, trace },
    note: (line: string) => void trace.push(`day ${(time.passed() / DAY).toFixed(3)} ${line}`),
    async checkJournal() {
      if (!disk.isWell()) return verdict.skipped('ended', 'the disk fails')
      await time.until(ledger.check(app.marketplace().journal))
      if (sender) await time.until(sender.checkRows({ processes: 1 + app.marketplaces().length }))
    },
  }
}

/**
 * Lives through days of a world: one fault after the other, with time to heal after each. The result depends only on
 * the seed.
 */
export async function liveThrough(
  seed: number,
  faults: readonly FaultName[],
  options: { sabotage?: Sabotage; longestMs?: number } = {},
): Promise<WorldResult> {
  const world = createWorld(seed, {
    ...options,
    isDiskSmall: faults.includes('disk'),
    hasSender: faults.includes('sender'),
  })
  const { time, app, buyers, probes, verdict, platform, deliveries, random, note } = world
  const expected = [...EXPECTED, ...faults.flatMap((name) => (FAULTS[name] as FaultClass).checks ?? [])]
  return live(world, { seed, faults, command: repeat(seed, faults), expected }, async () => {
    app.deploy()
    for (let i = 0; i < 6; i++) buyers.settle(`b${i}`)
    world.sender?.begin({ everyMs: FLOOD_EVERY_MS })
    await time.advance(SECOND)
    await probes.visit()
    await time.advance(DAY * (0.4 + 0.6 * random.next()))
    await probes.visit()
    await world.checkJournal()
    let calmFrom = time.passed()
    for (const name of faults) {
      note(`begins: ${name}`)
      // A fault gets the same random numbers alone or among others, in any order.
      await FAULTS[name].live({ ...world, random: createRandom(seed * 31 + FAULT_NAMES.indexOf(name)) })
      note(`is put right: ${name}`)
      buyers.rest(true)
      calmFrom = time.passed()
      await time.advance(HEALED_WITHIN_MS)
      await world.checkJournal()
      await probes.healed(FAULTS[name])
      await probes.visit()
      buyers.rest(name === faults.at(-1))
      await time.advance(DAY / 4)
    }
    buyers.rest(true)
    await time.advance(QUIET_MS)
    // A dozing clock hides how often the app makes calls, so the clock now steps through every timer for a while.
    time.lookClosely(CLOSELY_MS)
    await time.advance(CLOSELY_MS)
    checkBudget({ platform, deliveries, verdict, sender: world.sender, calmFrom, until: time.passed() })
    await world.checkJournal()
  })
}

/** Runs `body` in the world, closes the app and the verdict, and releases everything. */
export async function live(
  world: World,
  names: { seed: number; faults: readonly FaultName[]; command: string; expected: readonly Promised[] },
  body: () => Promise<void>,
): Promise<WorldResult> {
  const { seed, faults, command, expected } = names
  const { time, app, verdict, platform, ledger, disk, trace, witness } = world
  await loadEverything()
  // In one moment the package draws in the order of its real work, which no seed decides. So one moment has one number.
  const stopDrawing = drawingFrom(() => world.fork.of(String(time.passed())).next())
  try {
    await body()
    await app.close()
    witness.note({ kind: 'end' })
    // The judge compares events with calls, so its time grows faster than a flood of months.
    if (witness.log.filter(({ kind }) => kind === 'delivered').length > MOST_DELIVERIES)
      verdict.skipped('documented', 'a flood is too much for the second oracle')
    else {
      verdict.made('documented')
      for (const { at, heading, message } of judge(witness.log, world.exactness))
        verdict.fail('documented', `${heading}: ${message} (on day ${(at / DAY).toFixed(3)})`)
    }
    verdict.close(expected)
  } catch (error) {
    throw new Error(`${command}: ${error instanceof Error ? error.stack : error}`)
  } finally {
    disk.be('well')
    if (app.isUp()) app.kill()
    await app.bury()
    disk.remove()
    stopDrawing()
  }
  const [days, calls, handled] = [time.passed() / DAY, platform.calls.length, ledger.calls()]
  const { broken, tally } = verdict
  return { seed, faults, command, broken, days, calls, handled, trace, tally }
}

/** The command that repeats this world. */
export function repeat(seed: number, faults: readonly FaultName[]): string {
  return `npm run simulate -- --months --seed ${seed} --faults ${faults.join()}`
}

let loading: Promise<void> | undefined

/** Loads the parts of the package that load when the first store opens. The time of a world does not wait for that. */
function loadEverything(): Promise<void> {
  loading ??= (async () => {
    const marketplace = createMarketplace({
      app: { ...CLIENT, purchasableUid: OUR_ITEM },
      platform: ADDRESSES,
      deliverySecrets: DELIVERY_SECRET,
      store: 'sqlite::memory:',
    })
    await marketplace.start()
    await marketplace.close()
  })()
  return loading
}
