import { HOUR, MINUTE } from '../../../lib/base/clock.js'
import type { VirtualClock } from '../machine/virtual-clock.js'
import { createDeliverer } from '../world/deliverer.js'
import type { Random } from '../world/random.js'
import type { App } from './app.js'

/** The platform's deliveries to the app, and what the app can know from those that it took. */
export function createDeliveries(options: {
  time: VirtualClock
  app: App
  random: Random
  isStubborn?: boolean | undefined
}) {
  const { time, app, random } = options
  /** Whether the platform sends a refused delivery again; it does not promise to. */
  const drawn = random.chance(0.7)
  const { isStubborn = drawn } = options
  const now = {
    ...{ lost: 0, held: 0, doubled: 0, copies: 3, lateMs: 0 },
    delayMs: () => (now.lateMs > 0 ? random.between(0, now.lateMs) : 0),
    againMs: (tries: number) => (isStubborn ? Math.min(3 * HOUR, 10 * MINUTE * 2 ** (tries - 1)) : undefined),
  }
  /** Subscriptions and installs, by name. */
  const known = new Set<string>()
  const namedAt = new Map<string, number>()
  /** When each delivery was lost or refused. The platform may repeat a refused one, after the app has read its change. */
  const missedAt: number[] = []
  const lastInstalls = new Map<string, string>()
  const endOf = (business: string) => lastInstalls.get(business) ?? business

  const deliverer = createDeliverer({
    ...{ time, random, network: now },
    reach(body) {
      time.lookClosely()
      return time.follow(app.deliver(body))
    },
    onTaken(deliveries) {
      for (const { uid, business, body } of deliveries) {
        const { event_time } = body.data as { event_time?: string }
        known.add(uid ?? `${business} ${event_time}`)
        for (const name of [uid, business]) if (name) namedAt.set(name, time.passed())
      }
    },
    onMissed: () => void missedAt.push(time.passed()),
  })

  return {
    ...deliverer,
    now,
    install(business: string, event_type: 'installed' | 'uninstalled') {
      lastInstalls.set(business, `${business} ${new Date(time.now()).toISOString()}`)
      return deliverer.install(business, event_type)
    },
    /** Whether a delivery that names the subscription was acknowledged. */
    isKnown: (uid: string) => known.has(uid),
    /** Whether the last uninstall of the business was acknowledged, or the app has found its end without one. */
    isEndKnown: (business: string) => known.has(endOf(business)),
    learn: (uid: string) => void known.add(uid),
    learnEnd: (business: string) => void known.add(endOf(business)),
    /** What the app knows now; `recall` makes it forget everything that came later. */
    snapshot: () => [...known],
    recall(names: readonly string[]) {
      known.clear()
      for (const name of names) known.add(name)
    },
    /** How many deliveries were lost or refused since then. */
    missedSince: (at: number) => missedAt.filter((each) => each >= at).length,
    /** When a delivery last named this subscription or business. */
    namedAt: (name: string) => namedAt.get(name) ?? 0,
  }
}

export type Deliveries = ReturnType<typeof createDeliveries>
