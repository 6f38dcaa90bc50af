import { randomInt } from 'node:crypto'
import { validateHeaderValue } from 'node:http'
import { type Clock, HOUR, SECOND, systemClock } from '../base/clock.js'
import { MarketplaceError } from '../base/errors.js'
import type { DeliveryStyle } from './envelopes.js'
import type { SimulatedApp } from './world.js'

/**
 * Options of `createSimulator`. Only the app's credentials are required.
 *
 * @example createSimulator({ clientId: 'my-app', clientSecret: 'my-client-secret', seed: 7, retries: 3 })
 */
export interface SimulatorOptions {
  /** As in the option `app` of the marketplace. */
  clientId: string
  /** As in the option `app` of the marketplace. */
  clientSecret: string
  /** Decides identifiers, tokens and faults. Default: random; `simulator.seed` is the chosen one. */
  seed?: number | string
  /** The apps on sale, by default one. All belong to `clientId`. */
  apps?: readonly SimulatedApp[]
  /** Where `baseUrl` and `authUrl` listen on 127.0.0.1. Default: free ports. */
  port?: number
  /** The same for `authUrl`. */
  authPort?: number
  /** The time of records, tokens, delays and timeouts. Default: the system's clock. */
  clock?: Clock
  /** The form of deliveries where the interface document leaves it open. Default: as documented. */
  deliveryStyle?: DeliveryStyle
  /** How often a delivery without a 2xx reply is sent again. Default 0, because the platform promises no retries. */
  retries?: number
  /** The pause before each retry, default 1,000 ms. */
  retryDelayMs?: number
  /** How long a target may take to answer, default 10,000 ms. */
  deliveryTimeoutMs?: number
  /** Deliveries to one target at a time: default 1, which preserves their order. */
  deliveryConcurrency?: number
  /**
   * The read call also lists the subscriptions of the token's business, with `filter[business_uid]`. The interface document has
   * no such call, so the default is false.
   */
  listsSubscriptions?: boolean
  /** Lifetime of tokens. By default they do not expire. */
  tokenLifetimeMs?: number
}

/** Options with all defaults. */
export type ResolvedOptions = Required<Omit<SimulatorOptions, 'tokenLifetimeMs' | 'seed'>> & {
  seed: number | string
  tokenLifetimeMs: number | undefined
}

/** The options with their defaults. Throws `config_invalid` with every fault at once. */
export function resolveOptions(options: SimulatorOptions): ResolvedOptions {
  const { clientId, clientSecret, seed = randomInt(2 ** 32), apps = [{}], port = 0, authPort = 0 } = options
  const { clock = systemClock, deliveryStyle = {}, retries = 0, retryDelayMs = SECOND } = options
  const { deliveryTimeoutMs = 10 * SECOND, deliveryConcurrency = 1, tokenLifetimeMs } = options
  const { listsSubscriptions = false } = options
  const numbers = {
    port,
    authPort,
    retries,
    retryDelayMs,
    deliveryTimeoutMs,
    deliveryConcurrency,
    tokenLifetimeMs,
  }
  const faults = [
    ...(isText(clientId) ? [] : ['clientId must be a string']),
    ...(isText(clientSecret) ? [] : ['clientSecret must be a string']),
    ...(apps.length > 0 ? [] : ['apps must name at least one']),
    ...(twice(apps.map(({ codeName = 'app' }) => codeName))
      ? ['two apps have the same codeName: give each its own, also two items of one app']
      : []),
    ...(twice(apps.map(({ purchasableUid }) => purchasableUid))
      ? ['two apps have the same purchasableUid']
      : []),
    ...(isHeader(deliveryStyle.contentType) ? [] : ['deliveryStyle.contentType cannot be a header']),
    ...Object.entries(BOUNDS).flatMap(([name, [least, most]]) => {
      const value = numbers[name as keyof typeof numbers]
      const fits = value === undefined || (Number.isInteger(value) && value >= least && value <= most)
      return fits ? [] : [`${name} must be a whole number from ${least} to ${most}`]
    }),
  ]
  if (faults.length > 0) {
    throw new MarketplaceError('config_invalid', `Cannot create the simulator: ${faults.join('; ')}`)
  }
  return { clientId, clientSecret, seed, apps, clock, deliveryStyle, listsSubscriptions, ...numbers }
}

const BOUNDS = {
  port: [0, 65_535],
  authPort: [0, 65_535],
  retries: [0, 1_000],
  retryDelayMs: [0, HOUR],
  deliveryTimeoutMs: [1, HOUR],
  deliveryConcurrency: [1, 1_000],
  tokenLifetimeMs: [0, Number.MAX_SAFE_INTEGER],
} as const

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

function twice(values: readonly (string | undefined)[]): boolean {
  const given = values.filter((value) => value !== undefined)
  return new Set(given).size < given.length
}

function isHeader(value: string | null | undefined): boolean {
  if (value === null || value === undefined) return true
  try {
    validateHeaderValue('Content-Type', value)
    return true
  } catch {
    return false
  }
}
