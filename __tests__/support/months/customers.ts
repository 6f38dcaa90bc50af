import { DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { VirtualClock } from '../machine/virtual-clock.js'
import { nextAct, PAID_AT_ONCE, standingOf } from '../world/commerce.js'
import type { Random } from '../world/random.js'
import type { Deliveries } from './deliveries.js'
import type { Platform, Subscription } from './platform.js'

/** The ordinary ways of a platform, which differ from world to world. */
export interface Customs {
  /**
   * What the app gets when it reads a cancelled subscription. After an uninstall, or the end of the whole platform
   * subscription, it gets no token.
   */
  afterEnd: 'its record' | 'nothing' | '403' | 'no token'
  /** For how long after an end the platform still shows its record. */
  graceMs: number
  /** Whether the platform sends `purchasable_subscription/updated`, with full records, and install events. */
  sendsRecords: boolean
  sendsInstalls: boolean
}

/** How long after the last event of a business its answer may be wrong, by what the app can know. */
const WITHIN_MS = {
  /** A read shows it. */
  shown: MINUTE,
  /** The record in the event shows the end, and the platform refuses. */
  recordOfEnd: 90 * SECOND,
  /** An uninstall and a refused token, or a record that has disappeared: seen twice over a minute. */
  twice: 3 * MINUTE,
  /** An event without a record, and refusals for an hour. */
  hour: 90 * MINUTE,
  /** No event. The next reconcile shows it, perhaps in three reads, each of which a doze may delay. */
  reconcile: 1.2 * DAY + 9 * HOUR,
  /** No event, and refusals for 72 h after the next reconcile. */
  stale: 4.2 * DAY + 9 * HOUR,
  /** The app cannot know the purchase, because no delivery has named it. */
  never: Number.POSITIVE_INFINITY,
}
type Evidence = keyof typeof WITHIN_MS

export interface Customer {
  business: string
  /** The last subscription. */
  uid?: string
  /** When the last act has to show. */
  dueAt: number
  /** When the end of each subscription has to show. Until then it may still give access, beside a new one. */
  ends: Map<string, number>
  /** What the customer did last, for people, and how often it has done anything. */
  did: string
  acts: number
}

/** When the answer has to be right. */
export function answerDueAt({ uid, dueAt, ends }: Customer): number {
  const ofOthers = [...ends].filter(([ended]) => ended !== uid).map(([, endAt]) => endAt)
  return Math.max(dueAt, ...ofOthers)
}

/** The kinds of deliveries that were taken. */
type Taken = { update: boolean; record: boolean; uninstall: boolean }

export type Customers = ReturnType<typeof createCustomers>

interface Surroundings {
  time: VirtualClock
  platform: Platform
  deliveries: Deliveries
  random: Random
  customs: Customs
}

/** The businesses of a world without faults, and when the app's answer for each has to be right. */
export function createCustomers(
  options: Surroundings & {
    note(line: string): void
    /** Called when the answer for the customer has to be right. */
    onDue(customer: Customer): void
  },
) {
  const { time, platform, random, note, onDue } = options
  const customers: Customer[] = []
  const acts = createActs(options)

  async function act(customer: Customer) {
    const last = customer.uid ? platform.subscriptions.get(customer.uid) : undefined
    const what = nextAct(random.next, standingOf(last?.state), acts)
    customer.did = what
    customer.dueAt = Number.POSITIVE_INFINITY
    const own = ++customer.acts
    const evidence = await acts[what](customer, last as Subscription)
    note(`${customer.business} ${customer.did} (${evidence})`)
    if (customer.acts !== own) return
    const within = WITHIN_MS[evidence]
    customer.dueAt = time.passed() + within
    if (within <= WITHIN_MS.hour) time.attend(within)
    if (evidence !== 'never') time.after(within, () => onDue(customer))
  }

  function live(customer: Customer) {
    const isHasty = random.chance(0.1)
    const inMs = isHasty ? random.between(SECOND, 100 * SECOND) : random.between(2 * HOUR, 30 * DAY)
    time.after(inMs, () => {
      void act(customer)
      live(customer)
    })
  }

  return {
    all: customers as readonly Customer[],
    arrive() {
      const business = `b${customers.length}`
      const customer = { business, dueAt: Number.POSITIVE_INFINITY, ends: new Map(), did: '', acts: 0 }
      customers.push(customer)
      time.after(random.between(0, DAY), () => {
        void act(customer)
        live(customer)
      })
    },
  }
}

/** Each changes what the platform has, sends what the platform sends, and returns what the app can know from it. */
function createActs({ time, platform, deliveries, random, customs }: Surroundings) {
  const { sendsRecords, sendsInstalls, graceMs, afterEnd } = customs
  let made = 0
  /** Subscriptions whose last change was lost. A read that lags behind the next event shows that change instead. */
  const unseen = new Set<string>()

  /** Whether the app cannot tell the change before from the one that these deliveries announced. */
  function isMistaken(uid: string, isTaken: boolean): boolean {
    const isUnseen = unseen.has(uid)
    if (isTaken) unseen.delete(uid)
    else unseen.add(uid)
    return isUnseen && platform.now.lagMs > 0
  }

  async function buys(customer: Customer): Promise<Evidence> {
    const { business } = customer
    if (platform.isRefused(business) || customer.uid === undefined) {
      platform.refuse(business, 0)
      if (sendsInstalls) await deliveries.install(business, 'installed')
    }
    customer.uid = `s${made++}-${business}`
    const isPaid = random.of(customer.uid).chance(PAID_AT_ONCE)
    const bought = platform.set(customer.uid, business, isPaid ? 'purchased' : 'suspended')
    return (await deliveries.purchase(bought, 'created')) ? 'shown' : 'never'
  }

  /** Sends the events of a change, in any order. */
  async function tell(changed: Subscription, isUninstall = false): Promise<Taken> {
    const own = random.of(`${changed.uid} ${changed.updatedAt}`)
    const taken: Taken = { update: false, record: false, uninstall: false }
    const events = (['update', 'record', 'uninstall'] as const).filter(
      (event) => event === 'update' || (event === 'record' ? sendsRecords : isUninstall && sendsInstalls),
    )
    if (own.chance(0.5)) events.reverse()
    for (const event of events) {
      if (event === 'update') taken.update = await deliveries.purchase(changed, 'update')
      else if (event === 'record') {
        taken.record = await deliveries.record(changed, platform.recordOf(changed))
      } else taken.uninstall = await deliveries.install(changed.business, 'uninstalled')
      await time.sleep(own.between(0, 2 * SECOND))
    }
    return taken
  }

  async function changes(uid: string, business: string, state: Subscription['state']): Promise<Evidence> {
    const isFirst = !deliveries.isKnown(uid)
    const { update, record } = await tell(platform.set(uid, business, state))
    const isTaken = update || record
    if (isMistaken(uid, isTaken)) return isFirst ? 'never' : 'reconcile'
    if (isTaken) return 'shown'
    return isFirst ? 'never' : 'reconcile'
  }

  /** Ends a subscription; `after` is what the app gets from then on. */
  async function ends(
    customer: Customer,
    ...given: [last: Subscription, after: Customs['afterEnd'], isUninstall?: boolean]
  ): Promise<Evidence> {
    const [{ uid }] = given
    customer.ends.set(uid, Number.POSITIVE_INFINITY)
    const evidence = await end(...given)
    customer.ends.set(uid, time.passed() + WITHIN_MS[evidence])
    return evidence
  }

  async function end(last: Subscription, after: Customs['afterEnd'], isUninstall = false): Promise<Evidence> {
    const { uid, business } = last
    const isKnown = deliveries.isKnown(uid)
    const ended = platform.set(uid, business, 'canceled')
    const vanish = () => {
      if (platform.subscriptions.get(uid) !== ended) return
      if (after === 'no token') {
        if (platform.of(business).at(-1) === ended) platform.refuse(business)
      } else if (after !== 'its record') platform.hide(uid, after)
    }
    if (graceMs === 0) vanish()
    else time.after(graceMs, vanish)
    const taken = await tell(ended, isUninstall)
    const isTaken = taken.update || taken.record || taken.uninstall
    // The answer for a subscription that the app never knew is a no all the time, unless its first read lags.
    if (!isKnown && (platform.now.lagMs === 0 || !isTaken)) return 'shown'
    const isShown = after === 'its record' || (graceMs >= MINUTE && isTaken)
    if (isMistaken(uid, isTaken)) return isShown || after === 'nothing' ? 'reconcile' : 'stale'
    if (isShown) return isTaken ? 'shown' : 'reconcile'
    if (after === 'nothing') return isTaken ? 'twice' : 'reconcile'
    if (after === 'no token' && taken.uninstall) return 'twice'
    return taken.record && isKnown ? 'recordOfEnd' : isTaken ? 'hour' : 'stale'
  }

  return {
    buys,
    'misses a payment': (_customer: Customer, { uid, business }: Subscription) =>
      changes(uid, business, 'suspended'),
    pays: (_customer: Customer, { uid, business }: Subscription) => changes(uid, business, 'purchased'),
    /** The same subscription goes on. */
    async resumes({ business }: Customer, { uid }: Subscription): Promise<Evidence> {
      if (platform.isRefused(business) && sendsInstalls) await deliveries.install(business, 'installed')
      platform.refuse(business, 0)
      return changes(uid, business, 'purchased')
    },
    cancels: (customer: Customer, last: Subscription) => ends(customer, last, afterEnd),
    uninstalls: (customer: Customer, last: Subscription) => ends(customer, last, 'no token', true),
    /** The whole platform subscription ends, and every other with it. */
    async leaves(customer: Customer, last: Subscription): Promise<Evidence> {
      const { business } = customer
      const main = { uid: `main-${business}`, business }
      const record = {
        ...platform.recordOf({ ...last, ...main, state: 'canceled' }),
        purchasable_uid: 'platform',
      }
      if (sendsRecords) await deliveries.record(main, record)
      return ends(customer, last, 'no token')
    },
    /** A second subscription begins, and then the first ends. */
    async upgrades(customer: Customer, last: Subscription): Promise<Evidence> {
      const evidence = await buysPaid(customer)
      await time.sleep(MINUTE)
      await ends(customer, last, afterEnd === 'no token' ? 'its record' : afterEnd)
      return evidence
    },
  }

  async function buysPaid(customer: Customer): Promise<Evidence> {
    customer.uid = `s${made++}-${customer.business}`
    const bought = platform.set(customer.uid, customer.business, 'purchased')
    return (await deliveries.purchase(bought, 'created')) ? 'shown' : 'never'
  }
}
