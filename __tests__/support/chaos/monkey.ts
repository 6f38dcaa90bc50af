import type { FaultHandle, Simulator } from '../../../lib/testing/index.js'
import type { Seeded } from '../../../lib/testing/random.js'
import type { PostgresServer } from '../engines/postgres.js'
import { now, type Window } from './clock.js'
import type { Instance } from './instances.js'

/** The target of a fault: the number of an instance, or a part that all instances need. */
export type Target = number | 'database' | 'platform'

export interface Trouble extends Window {
  what: keyof typeof WEIGHTS
  /** Details: the kind of outage, or how long the process was frozen. */
  how: string
  target: Target
}

/** The relative frequency of each fault. */
const WEIGHTS = {
  kill: 4,
  freeze: 4,
  'database restart': 2,
  cut: 2,
  'black hole': 3,
  'half open': 2,
  'slow wire': 1,
  outage: 5,
}

/** Injects random faults from a seed: several at once, but never two into one target. */
export function createMonkey(options: {
  instances: readonly Instance[]
  database: PostgresServer
  platform: Simulator
  seeded: Seeded
  hands: number
  leaseMs: number
}) {
  const { instances, database, platform, seeded, hands, leaseMs } = options
  const troubles: Trouble[] = []
  const struck = new Set<Target>()
  const streams = Array.from({ length: hands }, (_, hand) => seeded.stream(`hand ${hand}`))
  let resting = Promise.resolve()
  let rest = () => {}
  let playing: Promise<unknown> = Promise.resolve()

  /** Waits; resolves early when the storm ends. */
  function hold(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      resting.then(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }

  async function play(random: () => number, isOver: () => boolean) {
    while (!isOver()) {
      // Every random number is drawn before the state is read. So a seed always gives the same schedule, however long
      // each step takes.
      const what = draw(random())
      const number = Math.floor(random() * instances.length)
      const [length, detail, gap] = [random(), random(), random()]
      const target = what === 'outage' ? 'platform' : what === 'database restart' ? 'database' : number
      if (!struck.has(target)) {
        struck.add(target)
        const trouble: Trouble = { what, how: '', target, from: now(), to: Number.POSITIVE_INFINITY }
        troubles.push(trouble)
        trouble.how = await strike(what, instances[number] as Instance, length, detail)
        trouble.to = now()
        struck.delete(target)
      }
      await hold(200 + gap * 1_300)
    }
  }

  async function strike(what: Trouble['what'], instance: Instance, length: number, detail: number) {
    const { wire } = instance
    const between = (least: number, most: number) => least + length * (most - least)
    switch (what) {
      case 'kill':
        await instance.kill()
        await hold(between(0, 1_500))
        await instance.begin()
        return ''
      case 'freeze': {
        const ms = detail < 0.3 ? between(200, leaseMs / 2) : between(leaseMs + 300, leaseMs * 2 + 500)
        instance.freeze()
        await hold(ms)
        instance.thaw()
        return `for ${Math.round(ms)} ms`
      }
      case 'database restart':
        await database.stop('immediate')
        await hold(between(0, 1_500))
        await database.start()
        return ''
      case 'cut':
        await wire.cut()
        await hold(between(200, 4_000))
        await wire.heal()
        return ''
      case 'black hole':
        wire.blackHole()
        await hold(between(500, 9_000))
        // In half of the cases the data under way are lost.
        if (detail < 0.5) await wire.cut()
        await wire.heal()
        return detail < 0.5 ? 'and all connections are lost' : 'and the data arrive late'
      case 'half open':
        wire.halfOpen()
        await hold(between(2_000, 6_000))
        return ''
      case 'slow wire':
        wire.delay(Math.round(between(50, 500)))
        await hold(between(1_000, 3_000))
        await wire.heal()
        return ''
      case 'outage': {
        const [how, begin] = OUTAGES[Math.floor(detail * OUTAGES.length)] as (typeof OUTAGES)[number]
        const fault = begin(platform)
        await hold(between(300, 3_500))
        fault?.remove()
        return how
      }
    }
  }

  return {
    troubles: troubles as readonly Trouble[],

    /** Injects faults until `calm` is called. */
    storm() {
      let isOver = false
      resting = new Promise((resolve) => {
        rest = () => {
          isOver = true
          resolve()
        }
      })
      playing = Promise.all(streams.map((random) => play(random, () => isOver)))
    },

    /** Ends every fault; resolves when all parts work again. */
    async calm() {
      rest()
      await playing
      for (const { wire } of instances) await wire.heal()
    },

    /**
     * The periods in which this instance, or a part that it needs, had a fault. Faults of other instances are not
     * included.
     */
    around: (instance: number) =>
      troubles.filter(({ target }) => typeof target === 'string' || target === instance),
  }
}

export type Monkey = ReturnType<typeof createMonkey>

function draw(chance: number): Trouble['what'] {
  const all = Object.values(WEIGHTS).reduce((sum, weight) => sum + weight)
  let left = chance * all
  for (const [what, weight] of Object.entries(WEIGHTS)) {
    left -= weight
    if (left < 0) return what as Trouble['what']
  }
  return 'outage'
}

const OUTAGES: readonly (readonly [how: string, begin: (platform: Simulator) => FaultHandle | undefined])[] =
  [
    ['503', ({ faults }) => faults.add({ on: 'platform', kind: 'status', status: 503 })],
    ['hang', ({ faults }) => faults.add({ on: 'platform', kind: 'hang' })],
    ['429', ({ faults }) => faults.add({ on: 'platform', kind: 'status', status: 429, retryAfter: 1 })],
    ['refused', ({ faults }) => faults.add({ on: 'platform', kind: 'down' })],
    ['slow', ({ faults }) => faults.add({ on: 'platform', kind: 'slow', ms: [100, 1_500] })],
    ['reset', ({ faults }) => faults.add({ on: 'platform', kind: 'reset', probability: 0.5 })],
    [
      'tokens end',
      ({ faults }) => {
        faults.expireTokens()
        return undefined
      },
    ],
  ]
