import type { EventName } from '../events/registry.js'
import type { Delivery } from './deliverer.js'
import type { FullSubscription } from './envelopes.js'
import type { Fault, FaultHandle } from './faults.js'
import type { PlatformRequest } from './platform-server.js'
import type { MainSubscription, Purchase, SimulatedApp } from './world.js'

/**
 * Simulated faults. A fault applies to requests and deliveries that begin after it was added.
 *
 * @example
 * const fault = platform.faults.add({ on: 'platform', kind: 'down' })
 * fault.remove()
 */
export interface Faults {
  /** Adds a fault and returns a handle to end it. Throws `argument_invalid` for an invalid fault. */
  add(fault: Fault): FaultHandle
  /** Ends all faults, releases held deliveries, and resets the two token fields below to their values at the start. */
  clear(): void
  /** Lifetime of tokens issued from now on; undefined: they do not expire. */
  tokenLifetimeMs: number | undefined
  /** Sent as `expires_in`, as it is. If undefined, the lifetime in seconds is sent, or nothing without a lifetime. */
  expiresIn: unknown
  /** Every token issued so far is answered with 401 from now on. */
  expireTokens(): void
}

/**
 * The marketplace platform on your own machine: HTTP servers for its three calls, methods for purchases and installs, and
 * real deliveries of its events. Methods throw `argument_invalid` for an unknown name, or for a transition that the
 * interface document does not define. All methods throw `closed` after `close()`.
 *
 * @example
 * await platform.registerAll(marketplace.webhooks.targetUrl('http://localhost:3000/webhooks'))
 * const { uid } = platform.purchase({ business_uid: 'bakery', payment: 'succeeded' })
 * await platform.settled() // delivered
 * platform.paymentIssue(uid)
 */
export interface Simulator {
  /** Listens; resolves to the two base addresses. A second call returns the same addresses. */
  start(): Promise<{
    /** For the option `platform.baseUrl`. */
    baseUrl: string
    /** For the option `platform.authUrl`. */
    authUrl: string
  }>
  /** Stops at once, drops deliveries under way, and leaves no socket or timer open. */
  close(): Promise<void>
  /** Address of the platform API: the register and read calls. Throws `argument_invalid` before `start()`. */
  readonly baseUrl: string
  /** Address of the token endpoint. Throws `argument_invalid` before `start()`. */
  readonly authUrl: string
  /** Pass it as `seed` to repeat the run. */
  readonly seed: number | string
  /** The apps on sale, with every field. */
  readonly apps: readonly [Required<SimulatedApp>, ...Required<SimulatedApp>[]]

  /** Tokens to register webhooks with. An unknown business is added. */
  appToken(businessUid: string): string
  /** A token of the business itself. */
  businessToken(businessUid: string): string
  /** A token of the directory. */
  directoryToken(): string
  /** Registers a target without a request, for any token kind. A second call changes nothing. */
  register(event: EventName, targetUrl: string): Promise<void>
  /** Registers a target for all seven events. */
  registerAll(targetUrl: string): Promise<void>

  /** Adds a business, so that tokens for it are issued. */
  addBusiness(businessUid: string): void
  /** A business buys an app: `purchased`, or `suspended` when the payment failed. Emits create (and updated). */
  purchase(purchase: Purchase): FullSubscription
  /** suspended → purchased, emits update. A purchased subscription stays as it is and emits nothing. */
  confirmPayment(subscriptionUid: string): FullSubscription
  /** purchased → suspended, emits update. A suspended subscription stays as it is and emits nothing. */
  paymentIssue(subscriptionUid: string): FullSubscription
  /** suspended or purchased → canceled, emits update. */
  cancel(subscriptionUid: string): FullSubscription
  /** A business installs an app (by code name, default the first one): two installed events. */
  install(businessUid: string, codeName?: string): void
  /**
   * Cancels the app's subscriptions of that business, then emits the two uninstalled events. If it was the last app of
   * the business, tokens for the business are refused until the next install or purchase.
   */
  uninstall(businessUid: string, codeName?: string): void
  /** The business cancels its entire platform subscription: each of its subscriptions is canceled. */
  cancelPlatform(businessUid: string): void
  /** A business's main platform subscription. It emits only updated, and does not concern the app. */
  mainSubscription(main: MainSubscription): FullSubscription
  /** An update without a change of state: `updated_at` moves, and only updated is emitted. */
  touch(subscriptionUid: string): FullSubscription
  /** Sets any fields, undocumented states included; emits update when the state changed, and updated. */
  set(subscriptionUid: string, fields: Partial<FullSubscription>): FullSubscription
  /** Makes a subscription unreadable without an event. */
  remove(subscriptionUid: string): void
  /** Refuses tokens for a business (403), without an uninstall; with false, issues them again. */
  refuseTokens(businessUid: string, refused?: boolean): void
  /** Whether tokens for the business are issued and accepted. */
  servesTokens(businessUid: string): boolean

  /** The platform's present record, as a copy; undefined for an unknown one. */
  subscription(subscriptionUid: string): FullSubscription | undefined
  /** All of them, as copies. */
  subscriptions(): FullSubscription[]

  /** Every try to deliver, in the order in which the tries ended. */
  readonly deliveries: readonly Delivery[]
  /** Every request to the platform, in the order in which the replies were decided. */
  readonly requests: readonly PlatformRequest[]
  /** Sends `deliveries[index]` once more. */
  redeliver(index: number): void
  /** Resolves when every delivery was answered, has failed, or was dropped. */
  settled(): Promise<void>
  /** Calls the listener with each delivery that enters the log. Returns a function that stops it. */
  on(kind: 'delivery', listener: (delivery: Delivery) => void): () => void
  /** The same for requests to the platform. */
  on(kind: 'request', listener: (request: PlatformRequest) => void): () => void
  /** The faults on purpose. */
  readonly faults: Faults
}
