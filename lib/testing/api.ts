import type { EventName } from '../events/registry.js'
import type { Delivery } from './deliverer.js'
import type { Fault, FaultHandle } from './faults.js'
import type { FullSubscription } from './full-subscription.js'
import type { PlatformRequest } from './platform-server.js'
import type { MainSubscription, Purchase, SimulatedApp } from './world.js'

/**
 * What can be made to go wrong. Faults act on what begins after they were added.
 *
 * @example
 * const fault = platform.faults.add({ kind: 'down' })
 * fault.remove()
 */
export interface Faults {
  /** Adds one, and gives back the way to end it. Throws `argument_invalid` when it makes no sense. */
  add(fault: Fault): FaultHandle
  /** Ends all, releases held deliveries, and sets the two token fields below as they were at the start. */
  clear(): void
  /** Lifetime of tokens issued from now on; undefined for ever. */
  tokenLifetimeMs: number | undefined
  /** Sent as `expires_in`, whatever it is; when undefined, the lifetime in seconds, and nothing without one. */
  expiresIn: unknown
  /** Every token issued so far is answered with 401 from now on. */
  expireTokens(): void
}

/**
 * The marketplace platform on your own machine: its three calls as real HTTP servers, its purchases and installs as
 * methods, its events as real deliveries. Methods that name something unknown, or a transition that the interface
 * document does not show, throw `argument_invalid`; all throw `closed` after `close()`.
 *
 * @example
 * await platform.registerAll(marketplace.targetUrl('http://localhost:3000/webhooks'))
 * const { uid } = platform.purchase({ business_uid: 'bakery', payment: 'succeeded' })
 * await platform.settled() // delivered
 * platform.paymentIssue(uid)
 */
export interface Simulator {
  /** Listens; resolves to the two base addresses. A second call gives the same ones back. */
  start(): Promise<{ baseUrl: string; authUrl: string }>
  /** Stops at once and drops what is on its way. Nothing of it stays open. */
  close(): Promise<void>
  /** Address of the platform API: the register and read calls. Throws `argument_invalid` before `start()`. */
  readonly baseUrl: string
  /** Address of the token endpoint. Throws `argument_invalid` before `start()`. */
  readonly authUrl: string
  /** Give it as `seed` to have the same run again. */
  readonly seed: number | string
  /** The apps on sale, every field filled in. */
  readonly apps: readonly [Required<SimulatedApp>, ...Required<SimulatedApp>[]]

  /** Tokens to register webhooks with. The business becomes known by asking. */
  appToken(businessUid: string): string
  /** A token of the business itself. */
  businessToken(businessUid: string): string
  /** A token of the directory. */
  directoryToken(): string
  /** Registers a target without a request, whatever the token kind; a second time changes nothing. */
  register(event: EventName, targetUrl: string): Promise<void>
  /** Registers a target for all seven events. */
  registerAll(targetUrl: string): Promise<void>

  /** Makes a business known, so that tokens for it are issued. */
  addBusiness(businessUid: string): void
  /** A business buys an app: `purchased`, or `suspended` when the payment failed. Emits create (and updated). */
  purchase(purchase: Purchase): FullSubscription
  /** suspended → purchased, emits update; purchased stays and emits nothing. */
  confirmPayment(subscriptionUid: string): FullSubscription
  /** purchased → suspended, emits update; suspended stays and emits nothing. */
  paymentIssue(subscriptionUid: string): FullSubscription
  /** suspended or purchased → canceled, emits update. */
  cancel(subscriptionUid: string): FullSubscription
  /** A business installs an app (by code name, the first one unless told): two installed events. */
  install(businessUid: string, codeName?: string): void
  /**
   * Cancels the app's subscriptions of that business, then emits the two uninstalled events. When it was the last of
   * the apps there, tokens for the business are refused until the next install or purchase.
   */
  uninstall(businessUid: string, codeName?: string): void
  /** The business cancels its entire platform subscription: each of its subscriptions is canceled. */
  cancelPlatform(businessUid: string): void
  /** A business's main platform subscription: it emits only updated, and says nothing of the app. */
  mainSubscription(main: MainSubscription): FullSubscription
  /** Any update that is no change of state: `updated_at` moves, only updated is emitted. */
  touch(subscriptionUid: string): FullSubscription
  /** Sets any fields, undocumented states included; emits update when the state changed, and updated. */
  set(subscriptionUid: string, fields: Partial<FullSubscription>): FullSubscription
  /** Makes a subscription unreadable without telling anyone. */
  remove(subscriptionUid: string): void
  /** Refuses (403) or, with false, serves tokens for a business again, without an uninstall. */
  refuseTokens(businessUid: string, refused?: boolean): void
  /** Whether tokens for the business are issued and honoured. */
  servesTokens(businessUid: string): boolean

  /** The truth now: a copy of the record, or undefined. */
  subscription(subscriptionUid: string): FullSubscription | undefined
  /** All of them, as copies. */
  subscriptions(): FullSubscription[]

  /** Every try to deliver, in the order in which they ended. */
  readonly deliveries: readonly Delivery[]
  /** Every request to the platform, in the order in which they were decided. */
  readonly requests: readonly PlatformRequest[]
  /** Sends `deliveries[index]` once more. */
  redeliver(index: number): void
  /** Resolves when every delivery was sent and answered (or failed, or was dropped). */
  settled(): Promise<void>
  /** Tells of each delivery or request as it enters the log; gives back the way to stop. */
  on(what: 'delivery', listener: (delivery: Delivery) => void): () => void
  /** The same for requests to the platform. */
  on(what: 'request', listener: (request: PlatformRequest) => void): () => void
  /** What can be made to go wrong. */
  readonly faults: Faults
}
