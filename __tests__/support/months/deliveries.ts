import type { VirtualClock } from '../machine/virtual-clock.js'
import type { Random } from '../simulation/random.js'
import type { App } from './app.js'
import { HOUR, MINUTE, SECOND } from './durations.js'
import { OUR_ITEM, type Subscription } from './platform.js'

/** The platform's deliveries to the app, and the faults on their way. */
export function createDeliveries(options: { time: VirtualClock; app: App; random: Random }) {
  const { time, app, random } = options
  /** Whether the platform sends a refused delivery again; it does not promise to. */
  const isStubborn = random.chance(0.7)
  const now = { lost: 0, doubled: 0, lateMs: 0 }
  const known = new Set<string>()
  const namedAt = new Map<string, number>()
  /** When each delivery was lost or refused. The platform may repeat a refused one, after the app has read its change. */
  const missedAt: number[] = []
  /** How often each business has installed or uninstalled. */
  const installs = new Map<string, number>()
  const nameOf = (business: string) => `install ${installs.get(business) ?? 0} of ${business}`

  async function send(names: Names, body: object): Promise<boolean> {
    const isLost = random.chance(now.lost)
    const copies = random.chance(now.doubled) ? 3 : 1
    let isTaken = false
    for (let copy = 0; copy < copies && !isLost; copy++) {
      if (now.lateMs > 0) await time.sleep(random.between(0, now.lateMs))
      time.lookClosely()
      isTaken = (await attempt(names, body, copy === 0 && isStubborn ? 10 * MINUTE : 0)) || isTaken
    }
    if (!isTaken) missedAt.push(time.passed())
    return isTaken
  }

  /** `againMs`: when the platform repeats a refused delivery; 0 means never. */
  async function attempt(names: Names, body: object, againMs: number): Promise<boolean> {
    const status = await time.follow(app.deliver(body))
    if (status === 200) {
      if (names.uid) known.add(names.uid)
      for (const name of [names.uid, names.business]) if (name) namedAt.set(name, time.passed())
      return true
    }
    const nextMs = Math.min(3 * HOUR, 2 * againMs)
    if (againMs > 0) time.after(againMs, () => void attempt(names, body, nextMs))
    return false
  }

  return {
    now,
    /** Whether a delivery that names the subscription was acknowledged. */
    isKnown: (uid: string) => known.has(uid),
    /** Whether the last uninstall of the business was acknowledged, or the app has found its end without one. */
    isEndKnown: (business: string) => known.has(nameOf(business)),
    learn: (uid: string) => void known.add(uid),
    learnEnd: (business: string) => void known.add(nameOf(business)),
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

    /** A delivery about a purchase, or about a change of its state. */
    purchase({ uid, business }: Pick<Subscription, 'uid' | 'business'>, event_type: 'created' | 'update') {
      const data = { subscription_uid: uid, business_id: business, purchasable_uid: OUR_ITEM }
      return send({ uid, business }, { entity_name: 'purchasable_subscription', event_type, data })
    },
    /** A delivery with the full record, which the platform sends for every subscription of a business. */
    record({ uid, business }: Pick<Subscription, 'uid' | 'business'>, record: Record<string, unknown>) {
      return send(
        { uid, business },
        { entity_name: 'purchasable_subscription', event_type: 'update', data: record },
      )
    },
    install(business: string, event_type: 'installed' | 'uninstalled') {
      const event_time = new Date(time.now()).toISOString()
      const data = { business_id: business, app_code_name: 'ours', event_time }
      installs.set(business, (installs.get(business) ?? 0) + 1)
      return send({ uid: nameOf(business), business }, { entity_name: 'application', event_type, data })
    },
  }
}

/** The subject of a delivery. */
interface Names {
  uid?: string
  business: string
}

export type Deliveries = ReturnType<typeof createDeliveries>
export const ANSWER_WITHIN_MS = 10 * SECOND
