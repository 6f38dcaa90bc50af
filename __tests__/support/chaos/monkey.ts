import type { PostgresServer } from '../engines/postgres.js'
import type { Random } from '../world/random.js'
import { now, type Window } from './clock.js'
import type { Instance } from './instances.js'
import { OUTAGES_OF_CHAOS, type Outage, type Platform } from './platform.js'

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
  platform: Platform
  random: Random
  hands: number
  leaseMs: number
}) {
  const { instances, database, platform, random, hands, leaseMs } = options
  const troubles: Trouble[] = []
  const struck = new Set<Target>()
  const streams = Array.from({ length: hands }, (_, hand) => random.of(`hand ${hand}`))
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

  async function play(hand: Random, isOver: () => boolean) {
    while (!isOver()) {
      // Every random number is drawn before the state is read. So a seed always gives the same schedule, however long
      // each step takes.
      const what = hand.choose(WEIGHTS)
      const number = hand.between(0, instances.length - 1)
      const [length, detail, gap] = [hand.next(), hand.next(), hand.next()]
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
        const how = OUTAGES_OF_CHAOS[Math.floor(detail * OUTAGES_OF_CHAOS.length)] as Outage
        platform.begin(how)
        await hold(between(300, 3_500))
        platform.end()
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
      playing = Promise.all(streams.map((hand) => play(hand, () => isOver)))
    },

    /** Ends every fault; resolves when all parts work again. */
    async calm() {
      rest()
      await playing
      for (const { wire } of instances) await wire.heal()
    },

    /** How often each fault struck. */
    counts(): Record<string, number> {
      const names = Object.keys(WEIGHTS) as Trouble['what'][]
      return Object.fromEntries(
        names.map((name) => [name, troubles.filter(({ what }) => what === name).length]),
      )
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
