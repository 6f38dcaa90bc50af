import type { Clock } from '../clock.js'
import {
  canonicalState,
  type PurchaseState,
  type Trigger,
  transition,
} from '../entitlement/purchase-state.js'
import { Businesses } from './businesses.js'
import { cannot } from './cannot.js'
import type { Happening } from './envelopes.js'
import { type FullSubscription, newSubscription } from './full-subscription.js'
import { type Lag, Versions } from './versions.js'

/** An app that is sold on the simulated platform. */
export interface SimulatedApp {
  /** Identifier of the purchased item; drawn from the seed when left out. */
  purchasableUid?: string
  /** The app's unique name, as install events carry it: `app` unless told. */
  codeName?: string
  /** Decimal amount with two decimals, `'9.99'` unless told. */
  price?: string
  /** `'USD'` unless told. */
  currency?: string
}

/** A purchase to make. */
export interface Purchase {
  business_uid: string
  /** Which app; the first one unless told. */
  purchasable_uid?: string
  payment: 'succeeded' | 'failed'
  /** Drawn from the seed when left out. */
  subscription_uid?: string
}

/** A main platform subscription to make. */
export interface MainSubscription {
  business_uid: string
  /** `purchased` unless told. */
  purchase_state?: string
  subscription_uid?: string
}
interface Kept {
  versions: Versions
  /** The app that was bought; undefined for a main platform subscription, of which only `updated` tells. */
  app: Required<SimulatedApp> | undefined
}

/**
 * The platform's state. Only `set` and `remove` go beyond the transition table of the interface document. Each change is
 * given to `tell` as the events it emits, in their order.
 */
export class World {
  readonly businesses = new Businesses()
  readonly #subscriptions = new Map<string, Kept>()
  readonly #apps: readonly Required<SimulatedApp>[]
  readonly #clock: Clock
  readonly #newUid: () => string
  readonly #tell: (happening: Happening) => void

  constructor(options: {
    apps: readonly SimulatedApp[]
    clock: Clock
    newUid: () => string
    tell: (happening: Happening) => void
  }) {
    this.#clock = options.clock
    this.#newUid = options.newUid
    this.#tell = options.tell
    this.#apps = options.apps.map((app) => ({
      purchasableUid: app.purchasableUid ?? options.newUid(),
      codeName: app.codeName ?? 'app',
      price: app.price ?? '9.99',
      currency: app.currency ?? 'USD',
    }))
  }

  /** At least one: the options are checked for it. */
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
    const record = newSubscription({
      uid,
      display_name: app.codeName,
      purchasable_uid: app.purchasableUid,
      buyer_uid: this.#newUid(),
      business_uid,
      purchase_state: row.next,
      price: app.price,
      currency: app.currency,
      now: new Date(this.#clock.now()).toISOString(),
    })
    return this.#create(record, app, row.emits)
  }

  mainSubscription({
    business_uid,
    purchase_state = 'purchased',
    subscription_uid,
  }: MainSubscription): FullSubscription {
    const uid = this.#fresh(subscription_uid)
    this.businesses.add(business_uid)
    const record = newSubscription({
      uid,
      display_name: 'main',
      purchasable_uid: this.#newUid(),
      buyer_uid: this.#newUid(),
      business_uid,
      purchase_state,
      price: '49.00',
      currency: 'USD',
      now: new Date(this.#clock.now()).toISOString(),
    })
    return this.#create(record, undefined, null)
  }

  /** One step along the transition table. A row without an event changes and tells nothing. */
  move(uid: string, trigger: Exclude<Trigger, 'User purchases an app'>): FullSubscription {
    const record = this.get(uid)
    if (record === undefined) throw cannot(`play "${trigger}"`, `there is no subscription ${uid}`)
    const row = transition(canonicalState(record.purchase_state) as PurchaseState, trigger)
    if (row === undefined) {
      throw cannot(
        `play "${trigger}"`,
        `subscription ${uid} is ${record.purchase_state}, and no transition leads on from there`,
      )
    }
    if (row.emits === null) return record
    const ended =
      row.next === 'canceled' ? { cancellation_date: new Date(this.#clock.now()).toISOString() } : {}
    return this.set(uid, { purchase_state: row.next, ...ended })
  }

  /** Any change of any field: what the transition table does not foresee. */
  set(uid: string, fields: Partial<FullSubscription>): FullSubscription {
    const { record: before, kept } = this.#kept(uid, 'change')
    const purchase_state = fields.purchase_state ?? before.purchase_state
    const computed = {
      updated_at: new Date(this.#clock.now()).toISOString(),
      is_active: purchase_state === 'purchased',
    }
    const record = { ...before, ...computed, ...fields, uid } as FullSubscription
    const changed = canonicalState(record.purchase_state) !== canonicalState(before.purchase_state)
    return this.#change(kept, record, changed && kept.app ? 'purchasable_subscription/update' : null)
  }

  /** The platform shows the subscription no longer, and tells nobody. */
  remove(uid: string): void {
    this.#kept(uid, 'remove').kept.versions.add(undefined, this.#clock.now())
  }

  install(businessUid: string, codeName?: string): void {
    const app = this.#app(codeName)
    this.businesses.install(businessUid, app)
    this.#tellInstall('installed', businessUid, app)
  }

  /** Cancels the app's subscriptions of that business first, which is how the transition table words it. */
  uninstall(businessUid: string, codeName?: string): void {
    const app = this.#app(codeName)
    this.businesses.uninstall(businessUid, app)
    this.#cancelAll(businessUid, (kept) => kept.app?.codeName === app)
    this.#tellInstall('uninstalled', businessUid, app)
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

  /** What a read sees that lags behind. */
  seen(uid: string, lag: Lag): FullSubscription | undefined {
    return structuredClone(this.#subscriptions.get(uid)?.versions.seen(lag, this.#clock.now()))
  }

  #cancelAll(businessUid: string, which: (kept: Kept) => boolean): void {
    for (const [uid, kept] of this.#subscriptions) {
      const record = kept.versions.latest
      if (record?.business_uid !== businessUid || !which(kept)) continue
      if (canonicalState(record.purchase_state) === 'canceled') continue
      this.set(uid, {
        purchase_state: 'canceled',
        cancellation_date: new Date(this.#clock.now()).toISOString(),
      })
    }
  }

  #create(
    record: FullSubscription,
    app: Required<SimulatedApp> | undefined,
    emits: UpdateName | null,
  ): FullSubscription {
    const kept = { versions: new Versions(), app }
    this.#subscriptions.set(record.uid, kept)
    return this.#change(kept, record, emits)
  }

  #change(kept: Kept, record: FullSubscription, emits: UpdateName | null): FullSubscription {
    const at = this.#clock.now()
    kept.versions.add(record, at)
    if (emits) this.#tell({ name: emits, record: structuredClone(record), at })
    this.#tell({ name: 'purchasable_subscription/updated', record: structuredClone(record), at })
    return structuredClone(record)
  }

  #tellInstall(what: 'installed' | 'uninstalled', businessUid: string, app: string): void {
    const at = this.#clock.now()
    this.#tell({ name: `application/${what}`, businessUid, app, at })
    this.#tell({ name: `app_subscription/${what}`, businessUid, app, at })
  }

  #fresh(uid = this.#newUid()): string {
    if (this.#subscriptions.has(uid)) throw cannot('purchase', `there is a subscription ${uid}`)
    return uid
  }

  #kept(uid: string, what: string): { kept: Kept; record: FullSubscription } {
    const kept = this.#subscriptions.get(uid)
    const record = kept?.versions.latest
    if (kept === undefined || record === undefined) throw cannot(what, `there is no subscription ${uid}`)
    return { kept, record }
  }

  #app(codeName = this.#apps[0]?.codeName): string {
    if (this.#apps.some((app) => app.codeName === codeName)) return codeName as string
    throw cannot('install or uninstall', `no app has the code name "${codeName}"`)
  }
}

type UpdateName = 'purchasable_subscription/create' | 'purchasable_subscription/update'
