import type { Clock } from '../base/clock.js'
import { canonicalState, type PurchaseState } from '../entitlement/purchase-state.js'
import { cannot } from './cannot.js'
import { type FullSubscription, type Happening, type NewSubscription, newSubscription } from './envelopes.js'
import { type Trigger, transition } from './transitions.js'

interface Simulated {
  versions: Versions
  /** The purchased app; undefined for a main platform subscription, which emits only `updated`. */
  app: Required<SimulatedApp> | undefined
}

/**
 * The platform's state: apps, businesses and subscriptions. A subscription of an app follows the transition table of the
 * interface document, except for `set` and `remove`, which make any other change. Each change calls `emit` with its
 * events, in their order.
 */
export class World {
  readonly businesses = new Businesses()
  readonly #subscriptions = new Map<string, Simulated>()
  readonly #apps: readonly Required<SimulatedApp>[]
  readonly #clock: Clock
  readonly #newUid: () => string
  readonly #emit: (happening: Happening) => void

  constructor(options: {
    apps: readonly SimulatedApp[]
    clock: Clock
    newUid: () => string
    emit: (happening: Happening) => void
  }) {
    this.#clock = options.clock
    this.#newUid = options.newUid
    this.#emit = options.emit
    this.#apps = options.apps.map((app) => withDefaults(app, options.newUid))
  }

  /** At least one: `resolveOptions` has checked it. */
  get apps(): readonly [Required<SimulatedApp>, ...Required<SimulatedApp>[]] {
    return this.#apps as [Required<SimulatedApp>, ...Required<SimulatedApp>[]]
  }

  purchase({ business_uid, purchasable_uid, payment, subscription_uid }: Purchase): FullSubscription {
    const app =
      purchasable_uid === undefined
        ? this.#apps[0]
        : this.#apps.find((one) => one.purchasableUid === purchasable_uid)
    if (app === undefined) throw cannot('purchase', `no app has the purchasable_uid ${purchasable_uid}`)
    const condition = payment === 'succeeded' ? 'Payment succeeded' : 'Payment failed'
    const row = transition('none', 'User purchases an app', condition)
    if (row === undefined) throw cannot('purchase', 'the transition table has no such row')
    const uid = this.#fresh(subscription_uid)
    this.businesses.buy(business_uid, app.codeName)
    const known = { uid, business_uid, purchase_state: row.next, price: app.price, currency: app.currency }
    return this.#create(
      { ...known, display_name: app.codeName, purchasable_uid: app.purchasableUid },
      app,
      row.emits,
    )
  }

  mainSubscription({
    business_uid,
    purchase_state = 'purchased',
    subscription_uid,
  }: MainSubscription): FullSubscription {
    const uid = this.#fresh(subscription_uid)
    this.businesses.add(business_uid)
    const known = { uid, business_uid, purchase_state, price: '49.00', currency: 'USD' }
    return this.#create({ ...known, display_name: 'main', purchasable_uid: this.#newUid() }, undefined, null)
  }

  /** One step along the transition table. A row without an event changes nothing and emits nothing. */
  move(uid: string, trigger: Exclude<Trigger, 'User purchases an app'>): FullSubscription {
    const record = this.get(uid)
    if (record === undefined) throw cannot(`play "${trigger}"`, `there is no subscription ${uid}`)
    const row = transition(canonicalState(record.purchase_state) as PurchaseState, trigger)
    if (row === undefined) {
      throw cannot(
        `play "${trigger}"`,
        `subscription ${uid} is ${record.purchase_state}, and the transition table has no such step from there`,
      )
    }
    if (row.emits === null) return record
    const ended =
      row.next === 'canceled' ? { cancellation_date: new Date(this.#clock.now()).toISOString() } : {}
    return this.set(uid, { purchase_state: row.next, ...ended })
  }

  /** Any change of any field, also one that the transition table does not contain. */
  set(uid: string, fields: Partial<FullSubscription>): FullSubscription {
    const { record: before, simulated } = this.#simulated(uid, 'change')
    const purchase_state = fields.purchase_state ?? before.purchase_state
    const computed = {
      updated_at: new Date(this.#clock.now()).toISOString(),
      is_active: purchase_state === 'purchased',
    }
    const record = { ...before, ...computed, ...fields, uid } as FullSubscription
    const changed = canonicalState(record.purchase_state) !== canonicalState(before.purchase_state)
    return this.#change(
      simulated,
      record,
      changed && simulated.app ? 'purchasable_subscription/update' : null,
    )
  }

  /** The platform no longer shows the subscription. No event is emitted. */
  remove(uid: string): void {
    this.#simulated(uid, 'remove').simulated.versions.add(undefined, this.#clock.now())
  }

  install(businessUid: string, codeName?: string): void {
    const app = this.#app(codeName)
    this.businesses.install(businessUid, app)
    this.#emitInstall('installed', businessUid, app)
  }

  /** First cancels the app's subscriptions of that business, as the transition table states. */
  uninstall(businessUid: string, codeName?: string): void {
    const app = this.#app(codeName)
    this.businesses.uninstall(businessUid, app)
    this.#cancelAll(businessUid, (simulated) => simulated.app?.codeName === app)
    this.#emitInstall('uninstalled', businessUid, app)
  }

  cancelPlatform(businessUid: string): void {
    if (!this.businesses.has(businessUid)) throw cannot('cancel', `there is no business ${businessUid}`)
    this.#cancelAll(businessUid, () => true)
  }

  get(uid: string): FullSubscription | undefined {
    return structuredClone(this.#subscriptions.get(uid)?.versions.latest)
  }

  all(): FullSubscription[] {
    return [...this.#subscriptions.keys()].flatMap((uid) => this.get(uid) ?? [])
  }

  /** The record that a lagging read sees. */
  seen(uid: string, lag: Lag): FullSubscription | undefined {
    return structuredClone(this.#subscriptions.get(uid)?.versions.seen(lag, this.#clock.now()))
  }

  #cancelAll(businessUid: string, which: (simulated: Simulated) => boolean): void {
    for (const [uid, simulated] of this.#subscriptions) {
      const record = simulated.versions.latest
      if (record?.business_uid !== businessUid || !which(simulated)) continue
      if (canonicalState(record.purchase_state) === 'canceled') continue
      this.set(uid, {
        purchase_state: 'canceled',
        cancellation_date: new Date(this.#clock.now()).toISOString(),
      })
    }
  }

  #create(
    known: Omit<NewSubscription, 'buyer_uid' | 'now'>,
    app: Required<SimulatedApp> | undefined,
    emits: UpdateName | null,
  ): FullSubscription {
    const now = new Date(this.#clock.now()).toISOString()
    const record = newSubscription({ ...known, buyer_uid: this.#newUid(), now })
    const simulated = { versions: new Versions(), app }
    this.#subscriptions.set(record.uid, simulated)
    return this.#change(simulated, record, emits)
  }

  #change(simulated: Simulated, record: FullSubscription, emits: UpdateName | null): FullSubscription {
    const at = this.#clock.now()
    simulated.versions.add(record, at)
    if (emits) this.#emit({ name: emits, record: structuredClone(record), at })
    this.#emit({ name: 'purchasable_subscription/updated', record: structuredClone(record), at })
    return structuredClone(record)
  }

  #emitInstall(what: 'installed' | 'uninstalled', businessUid: string, app: string): void {
    const at = this.#clock.now()
    this.#emit({ name: `application/${what}`, businessUid, app, at })
    this.#emit({ name: `app_subscription/${what}`, businessUid, app, at })
  }

  #fresh(uid = this.#newUid()): string {
    if (this.#subscriptions.has(uid)) throw cannot('purchase', `there is a subscription ${uid}`)
    return uid
  }

  #simulated(uid: string, what: string): { simulated: Simulated; record: FullSubscription } {
    const simulated = this.#subscriptions.get(uid)
    const record = simulated?.versions.latest
    if (simulated === undefined || record === undefined) throw cannot(what, `there is no subscription ${uid}`)
    return { simulated, record }
  }

  #app(codeName = this.#apps[0]?.codeName): string {
    if (this.#apps.some((app) => app.codeName === codeName)) return codeName as string
    throw cannot('install or uninstall', `no app has the code name "${codeName}"`)
  }
}

type UpdateName = 'purchasable_subscription/create' | 'purchasable_subscription/update'

/** Which versions a read does not see yet: those younger than `ms`, or followed by fewer than `reads` reads. */
export interface Lag {
  reads?: number
  ms?: number
}

/** One state of a subscription; `record` is undefined once the platform no longer shows it. */
interface Version {
  record: FullSubscription | undefined
  at: number
  /** How many reads did not see it. */
  missed: number
}

/** How many versions are stored. No lag reaches further back. */
const MAX_VERSIONS = 20

/** The history of one subscription, so that a read can lag behind it. */
export class Versions {
  readonly #versions: Version[] = []
  #forgotten = false

  add(record: FullSubscription | undefined, at: number): void {
    this.#versions.push({ record, at, missed: 0 })
    if (this.#versions.length <= MAX_VERSIONS) return
    this.#versions.shift()
    this.#forgotten = true
  }

  get latest(): FullSubscription | undefined {
    return this.#versions.at(-1)?.record
  }

  /** The version that a lagging read sees. Without `reads` and `ms`, the one before the newest. */
  seen({ reads, ms }: Lag, now: number): FullSubscription | undefined {
    for (const version of [...this.#versions].reverse()) {
      const bare = reads === undefined && ms === undefined && version !== this.#versions.at(-1)
      const oldEnough = ms !== undefined && now - version.at >= ms
      const readEnough = reads !== undefined && version.missed >= reads
      if (bare || oldEnough || readEnough) return version.record
      version.missed += 1
    }
    return this.#forgotten ? this.#versions[0]?.record : undefined
  }
}

interface Business {
  /** By code name: `installed` after an install, `bought` after a purchase alone. */
  apps: Map<string, 'installed' | 'bought'>
  refused: boolean
}

/** Which businesses the platform knows, which apps they have, and for which it refuses tokens. */
export class Businesses {
  readonly #all = new Map<string, Business>()

  has(uid: string): boolean {
    return this.#all.has(uid)
  }

  /** Adds a business, unless it is known already. */
  add(uid: string): Business {
    const business = this.#all.get(uid) ?? { apps: new Map(), refused: false }
    this.#all.set(uid, business)
    return business
  }

  /** Whether the token endpoint and the read call serve this business: it is known and not refused. */
  serves(uid: string): boolean {
    return this.#all.get(uid)?.refused === false
  }

  refuse(uid: string, refused: boolean): void {
    this.add(uid).refused = refused
  }

  /** A purchase adds the app without an install event. Purchase and install come in either order. */
  buy(uid: string, app: string): void {
    const business = this.add(uid)
    if (!business.apps.has(app)) business.apps.set(app, 'bought')
    business.refused = false
  }

  install(uid: string, app: string): void {
    const business = this.add(uid)
    if (business.apps.get(app) === 'installed') throw cannot('install', `"${app}" is installed at ${uid}`)
    business.apps.set(app, 'installed')
    business.refused = false
  }

  /** A business without apps is refused tokens. */
  uninstall(uid: string, app: string): void {
    const business = this.#all.get(uid)
    if (!business?.apps.delete(app)) throw cannot('uninstall', `"${app}" is not installed at ${uid}`)
    business.refused = business.apps.size === 0
  }
}

/** An app on sale on the simulated platform. */
export interface SimulatedApp {
  /** Identifier of the purchased item. Default: drawn from the seed. */
  purchasableUid?: string
  /** The app's unique name in install events, default `app`. */
  codeName?: string
  /** Decimal amount with two decimals, default `'9.99'`. */
  price?: string
  /** Default `'USD'`. */
  currency?: string
}

/** A purchase to make. */
export interface Purchase {
  /** The business that buys. */
  business_uid: string
  /** Which app, default the first one. */
  purchasable_uid?: string
  /** Whether the payment succeeds: then the subscription is `purchased`, else `suspended`. */
  payment: 'succeeded' | 'failed'
  /** Default: drawn from the seed. */
  subscription_uid?: string
}

/** A main platform subscription to make. */
export interface MainSubscription {
  /** The business that has it. */
  business_uid: string
  /** Default `purchased`. */
  purchase_state?: string
  /** Default: drawn from the seed. */
  subscription_uid?: string
}

export function withDefaults(app: SimulatedApp, newUid: () => string): Required<SimulatedApp> {
  return {
    purchasableUid: app.purchasableUid ?? newUid(),
    codeName: app.codeName ?? 'app',
    price: app.price ?? '9.99',
    currency: app.currency ?? 'USD',
  }
}
