import type { Subscription } from '../platform/platform.js'
import type { DoorReply } from './door.js'
import type { Random } from './random.js'

/** A delivery of the platform. */
export interface Delivery {
  business: string
  /** The subscription that it makes known to the app. */
  uid?: string
  body: { entity_name: string; event_type: string; data: object }
}

/** What happens to deliveries on their way. A world changes it while it runs. */
export interface Network {
  /** The probability that a delivery is lost. */
  lost: number
  /** The probability that it waits, and comes together with the next one. */
  held: number
  /** The probability that it comes several times, and how often. */
  doubled: number
  copies: number
  /** How long a copy is under way. */
  delayMs(): number
  /** How long after a refused try the platform tries again; undefined: it gives up. */
  againMs(tries: number): number | undefined
}

/** The platform's deliveries to the app, with the faults on their way. */
export function createDeliverer(options: {
  time: { now(): number; sleep(ms: number): Promise<unknown> }
  random: Random
  network: Network
  /** Makes a request to an instance of the app. */
  reach(body: string): Promise<DoorReply>
  /** Called for each acknowledged request. */
  onTaken?(deliveries: readonly Delivery[]): void
  /** Called for each delivery that was lost, or whose first tries were refused. */
  onMissed?(): void
}) {
  const { time, random, network, reach, onTaken = () => {}, onMissed = () => {} } = options
  let held: Waiting[] = []
  let underWay = 0

  /** Resolves with whether the app took one of its copies at the first try. */
  async function send(delivery: Delivery): Promise<boolean> {
    const isTaken =
      !random.chance(network.lost) &&
      (await new Promise<boolean>((resolve) => {
        const waiting = [...held, { delivery, resolve }]
        held = []
        if (network.held > 0 && random.chance(network.held)) held = waiting
        else void bringAll(waiting)
      }))
    if (!isTaken) onMissed()
    return isTaken
  }

  async function bringAll(waiting: readonly Waiting[]) {
    const deliveries = waiting.map(({ delivery }) => delivery)
    const copies = random.chance(network.doubled) ? network.copies : 1
    const taken = await Promise.all(Array.from({ length: copies }, () => bring(deliveries)))
    for (const { resolve } of waiting) resolve(taken.includes(true))
  }

  async function bring(deliveries: readonly Delivery[]): Promise<boolean> {
    underWay++
    const delayMs = network.delayMs()
    if (delayMs > 0) await time.sleep(delayMs)
    const isTaken = await attempt(deliveries)
    if (isTaken) underWay--
    else void bringAgain(deliveries)
    return isTaken
  }

  async function bringAgain(deliveries: readonly Delivery[]) {
    for (let tries = 1; ; tries++) {
      const inMs = network.againMs(tries)
      if (inMs === undefined) break
      await time.sleep(inMs)
      if (await attempt(deliveries)) break
    }
    underWay--
  }

  async function attempt(deliveries: readonly Delivery[]): Promise<boolean> {
    const bodies = deliveries.map(({ body }) => body)
    const { status } = await reach(JSON.stringify(bodies.length === 1 ? bodies[0] : bodies))
    if (status === 200) onTaken(deliveries)
    return status === 200
  }

  return {
    send,
    /** The deliveries that the app has not taken yet, and that still come. */
    underWay: () => underWay,
    /** Sends the deliveries that wait for another one. */
    release() {
      if (held.length > 0) void bringAll(held.splice(0))
    },

    /** A delivery about a purchase, or about a change of its state. */
    purchase({ uid, business, item }: Named, event_type: 'created' | 'update') {
      const data = { subscription_uid: uid, business_id: business, purchasable_uid: item }
      return send({ uid, business, body: { entity_name: 'purchasable_subscription', event_type, data } })
    },
    /** A delivery with a full record. */
    record(
      { uid, business }: Omit<Named, 'item'>,
      data: object,
      event_type: 'created' | 'update' = 'update',
    ) {
      return send({ uid, business, body: { entity_name: 'purchasable_subscription', event_type, data } })
    },
    install(business: string, event_type: 'installed' | 'uninstalled') {
      const event_time = new Date(time.now()).toISOString()
      const data = { business_id: business, app_code_name: 'ours', event_time }
      return send({ business, body: { entity_name: 'application', event_type, data } })
    },
  }
}

export type Deliverer = ReturnType<typeof createDeliverer>
type Named = Pick<Subscription, 'uid' | 'business' | 'item'>

interface Waiting {
  delivery: Delivery
  resolve(isTaken: boolean): void
}
