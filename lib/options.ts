import { z } from 'zod'
import { type Clock, DAY, HOUR, MINUTE, SECOND, systemClock, withMonotonic } from './base/clock.js'
import { ConfigError } from './base/errors.js'
import { type EntitledWhen, ruleFaults } from './entitlement/own-rule.js'
import type { EventDefinitions } from './events/define-event.js'
import { eventFaults } from './events/registry.js'
import { secretFaults } from './express/delivery-secret.js'
import type { VerifyDelivery } from './express/take-delivery.js'
import {
  count,
  duration,
  group,
  isClock,
  isObject,
  oneOrMore,
  platformAddress,
  publishedSecrets,
  sentences,
  without,
} from './option-checks.js'
import type { FindSubscriptions } from './platform/find-subscriptions.js'
import { type PostgresStore, storeFaults } from './store-option.js'
import { isLogger, type Logger } from './telemetry/logger.js'

/**
 * The options of `createMarketplace`. Times are milliseconds. Every default stands here, and every bound is checked
 * at construction.
 *
 * @example
 * const options: MarketplaceOptions = {
 *   app: { clientId: 'my-app', clientSecret, purchasableUid: ['pro', 'team'] },
 *   platform: { baseUrl: 'https://api.platform.example', authUrl: 'https://auth.platform.example' },
 *   deliverySecrets: [secret, secretBefore],
 *   store: 'postgres://app@db/app',
 *   entitledWhen: ({ purchase_state, payment_type }) => purchase_state === 'purchased' || payment_type === 'invoice',
 *   logger: pino(),
 * }
 */
export interface MarketplaceOptions<Custom extends EventDefinitions = Record<never, never>> {
  /** The app as the platform knows it. */
  app: {
    /** Its identifier at the token endpoint. */
    clientId: string
    /** Its secret at the token endpoint. */
    clientSecret: string
    /** The app's own item or items. Without it every subscription named by a notice or `track` counts. */
    purchasableUid?: string | string[] | undefined
    /** The app's unique name or names. Without it every install and uninstall counts as this app's. */
    codeName?: string | string[] | undefined
  }
  /** Where the platform is, and how it is called. */
  platform: {
    /** `{base_url}` of the platform's interface: https, or http for a platform on this machine. */
    baseUrl: string
    /** `{auth_url}` of its token endpoint: https, or http for a platform on this machine. */
    authUrl: string
    /** Makes the calls, in place of the global `fetch`: for a proxy, or an agent of your own. */
    fetch?: typeof globalThis.fetch | undefined
    /**
     * Returns the uids of all subscriptions of a business, for a platform that can list them: then a purchase is found whose
     * webhook was lost. It is called once for all processes, for a business of which no subscription to the app was read: at
     * the first question about it, at an install, at each reconcile, and again by `waitForEntitlement` and
     * `businesses.refresh`. Until it has answered, the reason is `not_read_yet`. Per call 10 s, at most 1,000 uids.
     */
    findSubscriptions?: FindSubscriptions | undefined
  }
  /**
   * The last path segment of the address the platform delivers to: one, or several while rotating. Those of the pages and
   * examples are refused, unless the platform is on this machine.
   */
  deliverySecrets: string | string[]
  /**
   * `sqlite:<path>`, `sqlite::memory:`, `postgres://…`, or `postgresStore(…)` for a pool of your own or another schema.
   * Default `sqlite:marketplace.db`.
   */
  store?: string | PostgresStore | undefined
  /** Takes over the store of another app, after you changed `clientId` or `baseUrl` on purpose. Default false. */
  adoptStore?: boolean | undefined
  /**
   * Which records let a business in, and until when. Default: `purchase_state` is exactly `purchased`. It answers at once:
   * true, false, or `{ entitled, until }`. If it throws or returns anything else, the reason is `entitled_when_failed`: access
   * is denied, and the gate replies 503. `paidThrough()` and `gracePeriod(ms)` are ready rules.
   */
  entitledWhen?: EntitledWhen | undefined
  /** How old an answer may be. */
  freshness?:
    | {
        /** How long `isEntitled` waits for a requested read, counted from the first request without an answer. Default 2 s. */
        waitMs?: number | undefined
        /** Interval of the regular read of every subscription. Default 24 h. */
        reconcileEveryMs?: number | undefined
        /** How long an answer stays valid that the platform does not confirm. Default 72 h. */
        maxStaleMs?: number | undefined
      }
    | undefined
  /** `false`: this process only receives and answers; other processes read and handle. Default true. */
  worker?: boolean | undefined
  /** How subscriptions are read from the platform. */
  reads?:
    | {
        /** Concurrent reads. Default 4. */
        concurrency?: number | undefined
      }
    | undefined
  /** How handlers are called. */
  handlers?:
    | {
        /**
         * The most subscriptions, or businesses with changes, whose handlers run at once. Of two or more, one is left to
         * changes if the app handles them. Default 8.
         */
        concurrency?: number | undefined
        /** Deadline of one call of a handler. Default 30 s. */
        timeoutMs?: number | undefined
        /**
         * Pauses between tries of a handler; after the last one the entry is dead. Default: 12 pauses from 5 s to 24
         * h.
         */
        retryDelaysMs?: number[] | undefined
      }
    | undefined
  /** Largest body of a delivery, counted after decoding. Default 64 KiB. */
  bodyLimitBytes?: number | undefined
  /** Retention of finished entries: 7 d for events, 90 d for changes, 1,095 d for actions. Dead entries are kept for 30 d. */
  retention?:
    | {
        /** Events and unrecognised deliveries. Default 7 d. */
        eventsMs?: number | undefined
        /** Changes, which the history of a business is made of. Default 90 d. */
        changesMs?: number | undefined
        /** Actions of people: exports, replays, erasures and others. No erasure ends it. Default 1,095 d. */
        actionsMs?: number | undefined
      }
    | undefined
  /** A further check of a delivery with a right secret. Anything but true refuses it with 403. */
  verifyDelivery?: VerifyDelivery | undefined
  /** Events of a later version of the platform, by registration name. */
  events?: Custom | undefined
  /** How long `close()` waits for work under way. Default 10 s. */
  closeTimeoutMs?: number | undefined
  /**
   * pino, `console`, or another logger of that shape. Gets warnings, failures and changes of health as `(fields,
   * message)`.
   */
  logger?: Logger | undefined
  /** The time source, for tests. */
  clock?: Clock | undefined
}

/** The key of settings that no app needs to choose. The package's own tests and the demo shorten them. */
export const INTERNALS: unique symbol = Symbol.for('marketplace-webhooks internals')

const DEFAULT_INTERNALS = {
  /** Deadline of one call to the platform: connecting, headers and body together. */
  callTimeoutMs: 10 * SECOND,
  /** How long a lease lasts. After it another process takes over the work of a process that died. */
  leaseMs: MINUTE,
  /** Polling interval when no notification arrives. */
  pollMs: SECOND,
  /** How long a body may take to arrive. */
  bodyTimeoutMs: 10 * SECOND,
  /** How long a delivery waits for the disk; after that the reply is 503. */
  acceptTimeoutMs: 3 * SECOND,
  /** Retention of dead entries, and of changes that nobody handled. */
  deadMs: 30 * DAY,
}

export type Internals = typeof DEFAULT_INTERNALS

const text = z.string().min(1, 'expected a text that is not empty')
const fn = z.custom<(...args: never[]) => unknown>(
  (value) => typeof value === 'function',
  'expected a function',
)

const RETRY_DELAYS_MS = [
  5 * SECOND,
  30 * SECOND,
  2 * MINUTE,
  10 * MINUTE,
  30 * MINUTE,
  ...[1, 2, 4, 8, 12, 24, 24].map((hours) => hours * HOUR),
]

const OPTIONS = z.strictObject({
  app: z.strictObject({
    clientId: text,
    clientSecret: text,
    purchasableUid: oneOrMore(text).default([]),
    codeName: oneOrMore(text).default([]),
  }),
  platform: z.strictObject({
    baseUrl: platformAddress,
    authUrl: platformAddress,
    fetch: fn.optional(),
    findSubscriptions: fn.optional(),
  }),
  deliverySecrets: oneOrMore(z.string().superRefine(without(secretFaults))),
  store: z
    .custom<string | PostgresStore>()
    .superRefine(without(storeFaults))
    .default('sqlite:marketplace.db'),
  adoptStore: z.boolean('expected true or false').default(false),
  entitledWhen: fn.superRefine(without(ruleFaults)).optional(),
  freshness: group({
    waitMs: duration(2 * SECOND, 0, MINUTE),
    reconcileEveryMs: duration(DAY, SECOND, 30 * DAY),
    maxStaleMs: duration(72 * HOUR, SECOND, 365 * DAY),
  }),
  worker: z.boolean('expected true or false').default(true),
  reads: group({ concurrency: count(4, 1, 100) }),
  handlers: group({
    concurrency: count(8, 1, 1_000),
    timeoutMs: duration(30 * SECOND, 10, HOUR),
    retryDelaysMs: z
      .array(
        z
          .number()
          .min(0)
          .max(30 * DAY),
      )
      .max(100)
      .default(RETRY_DELAYS_MS),
  }),
  bodyLimitBytes: count(64 * 1024, 1_024, 16 * 1024 * 1024, ' bytes'),
  retention: group({
    eventsMs: duration(7 * DAY, MINUTE, 3_650 * DAY),
    changesMs: duration(90 * DAY, MINUTE, 3_650 * DAY),
    actionsMs: duration(1_095 * DAY, MINUTE, 3_650 * DAY),
  }),
  verifyDelivery: fn.optional(),
  events: z
    .custom<EventDefinitions>(
      (value) => isObject(value) && !Array.isArray(value),
      "expected definitions by name, such as { 'invoice/paid': defineEvent({ … }) }",
    )
    .superRefine(without(eventFaults))
    .optional(),
  closeTimeoutMs: duration(10 * SECOND, 0, 10 * MINUTE),
  logger: z.custom<Logger>(isLogger, 'expected a logger with warn(fields, message) and error').optional(),
  clock: z
    .custom<Clock>(isClock, 'expected a Clock: now, setTimeout and clearTimeout')
    .transform(withMonotonic)
    .default(systemClock),
})

/** The options with every default in place. Throws a `ConfigError` that names all faults at once. */
export function readOptions(options: unknown) {
  const { data, error } = OPTIONS.safeParse(options)
  // A fault has a path and a rule, never the value, which may be a secret.
  const faults = [...sentences(error?.issues ?? []), ...publishedSecrets(options)]
  if (!data || faults.length > 0) throw new ConfigError(faults)
  return { ...data, internals: internalsOf(options as object) }
}

function internalsOf(options: { [INTERNALS]?: Partial<Internals> }): Internals {
  return { ...DEFAULT_INTERNALS, ...options[INTERNALS] }
}

export type ResolvedOptions = ReturnType<typeof readOptions>
