import { inspect } from 'node:util'
import { describe, expect, it } from '@jest/globals'
import { z } from 'zod'
import { DAY, HOUR, MINUTE, SECOND, systemClock } from '../../lib/base/clock.js'
import { ConfigError } from '../../lib/base/errors.js'
import { defineEvent } from '../../lib/events/define-event.js'
import { appToken, businessToken, createMarketplace } from '../../lib/index.js'
import { readOptions } from '../../lib/options.js'
import { postgresStore, storeFor } from '../../lib/store-option.js'
import { sampleDelivery } from '../../lib/testing/index.js'
import { internals } from '../support/internals.js'
import { jumpingClock } from '../support/machine/jumping-clock.js'
import { quietWarnings } from '../support/output.js'
import { createScene } from '../support/scene.js'
import { customEvents } from '../support/scenes/own-events.js'
import { buy, track } from '../support/scenes/purchases.js'
import { B1 } from '../support/settings.js'
import { until } from '../support/until.js'

const SECRET = 'Zk3vQ9xT_bL7wMn2RfYc8H'
const MINIMAL = {
  app: { clientId: 'id', clientSecret: 'secret' },
  platform: { baseUrl: 'https://platform.example', authUrl: 'https://auth.example/token' },
  deliverySecrets: SECRET,
}
const KIB = 1_024
const YEARS_10 = 3_650 * DAY

/** The option, its default, its minimum and its maximum; times in ms. */
const NUMBERS: [path: string, usual: number, min: number, max: number, unit: string][] = [
  ['reads.concurrency', 4, 1, 100, ''],
  ['freshness.waitMs', 2 * SECOND, 0, MINUTE, ' ms'],
  ['freshness.reconcileEveryMs', DAY, SECOND, 30 * DAY, ' ms'],
  ['freshness.maxStaleMs', 72 * HOUR, SECOND, 365 * DAY, ' ms'],
  ['handlers.concurrency', 8, 1, 1_000, ''],
  ['handlers.timeoutMs', 30 * SECOND, 10, HOUR, ' ms'],
  ['bodyLimitBytes', 64 * KIB, KIB, 16 * KIB * KIB, ' bytes'],
  ['retention.eventsMs', 7 * DAY, MINUTE, YEARS_10, ' ms'],
  ['retention.changesMs', 90 * DAY, MINUTE, YEARS_10, ' ms'],
  ['retention.actionsMs', 1_095 * DAY, MINUTE, YEARS_10, ' ms'],
  ['closeTimeoutMs', 10 * SECOND, 0, 10 * MINUTE, ' ms'],
]

/** A pool by shape. */
const POOL = { connect() {}, on() {}, off() {} }

describe('options', () => {
  it('are complete with an app, a platform and a delivery secret', () => {
    expect(readOptions(MINIMAL)).toMatchObject({
      app: { ...MINIMAL.app, purchasableUid: [], codeName: [] },
      deliverySecrets: [SECRET],
      store: 'sqlite:marketplace.db',
      adoptStore: false,
      clock: systemClock,
    })
  })

  it('retry a failed handler for four days by default', () => {
    const delays = [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE]
    for (const hours of [1, 2, 4, 8, 12, 24, 24]) delays.push(hours * HOUR)
    expect(readOptions(MINIMAL).handlers).toMatchObject({ retryDelaysMs: delays })
  })

  it.each(NUMBERS)('%s is %d by default', (path, usual) => {
    expect(valueAt(readOptions(MINIMAL), path)).toBe(usual)
  })

  it.each(NUMBERS)('%s has bounds, and %d is within them', (path, _usual, min, max, unit) => {
    for (const fit of [min, max]) expect(valueAt(readOptions(withValue(path, fit)), path)).toBe(fit)
    expect(faultsOf(withValue(path, min - 1))).toEqual([`${path}: expected ${min}${unit} or more`])
    expect(faultsOf(withValue(path, max + 1))).toEqual([`${path}: expected ${max}${unit} or less`])
    for (const odd of [min + 0.5, String(usualOf(path)), null, Number.NaN]) {
      expect(faultsOf(withValue(path, odd))).toEqual([`${path}: expected a whole number`])
    }
  })

  it('may omit each group, or leave it empty or undefined', () => {
    const usual = JSON.stringify(readOptions(MINIMAL))
    const empty = { freshness: {}, reads: {}, handlers: {}, retention: {} }
    const none = { store: undefined, entitledWhen: undefined, worker: undefined, clock: undefined }
    for (const given of [empty, none, { ...none, freshness: undefined, closeTimeoutMs: undefined }])
      expect(JSON.stringify(readOptions({ ...MINIMAL, ...given }))).toBe(usual)
  })

  it.each(['freshness', 'reads', 'handlers', 'retention'])('require an object of settings as %s', (name) => {
    for (const odd of [true, 'fast', 5, null]) {
      expect(faultsOf({ ...MINIMAL, [name]: odd })).toEqual([
        `${name}: expected an object of settings, or nothing for the defaults`,
      ])
    }
    expect(faultsOf({ ...MINIMAL, [name]: { waitMS: 5 } })).toEqual([`${name}: unknown option: "waitMS"`])
  })

  it('may disable the worker', () => {
    expect(readOptions({ ...MINIMAL, worker: false }).worker).toBe(false)
    expect(faultsOf({ ...MINIMAL, worker: {} })).toEqual(['worker: expected true or false'])
  })

  it('accept up to a hundred pauses between tries of a handler, each of at most thirty days', () => {
    const path = 'handlers.retryDelaysMs'
    for (const fit of [[], [0, 0.5, 30 * DAY], Array(100).fill(1)]) {
      expect(valueAt(readOptions(withValue(path, fit)), path)).toEqual(fit)
    }
    expect(valueAt(readOptions(MINIMAL), path)).toHaveLength(12)
    for (const odd of [[-1], [30 * DAY + 1], ['1'], Array(101).fill(1), 5]) {
      expect(faultsOf(withValue(path, odd))).toEqual([expect.stringMatching(/^handlers\.retryDelaysMs/)])
    }
  })

  it.each(['app.purchasableUid', 'app.codeName', 'deliverySecrets'])(
    'accept one or several of %s',
    (path) => {
      const more = 'p5GdXa-1KuEo6NsBjV4tWq'
      expect(valueAt(readOptions(withValue(path, SECRET)), path)).toEqual([SECRET])
      expect(valueAt(readOptions(withValue(path, [SECRET, more])), path)).toEqual([SECRET, more])
      expect(faultsOf(withValue(path, []))).toEqual([`${path}: expected at least one`])
      expect(faultsOf(withValue(path, 5))).toEqual([`${path}: expected a text, or several in an array`])
    },
  )

  it.each(['app.clientId', 'app.clientSecret', 'app.purchasableUid', 'app.codeName'])(
    'refuse an empty %s',
    (path) => {
      const at = path === 'app.purchasableUid' || path === 'app.codeName' ? `${path}.0` : path
      expect(faultsOf(withValue(path, ''))).toEqual([`${at}: expected a text that is not empty`])
    },
  )

  it('pass the faults of a secret on unchanged', () => {
    expect(faultsOf({ ...MINIMAL, deliverySecrets: [SECRET, 'a/b'] })).toEqual([
      expect.stringMatching(/^deliverySecrets\.1: a delivery secret must have at least 16 characters/),
      expect.stringMatching(/^deliverySecrets\.1: a delivery secret may hold only/),
      expect.stringMatching(/^deliverySecrets\.1: a delivery secret must not repeat/),
    ])
  })
})

describe('the addresses of the platform', () => {
  const WORDS = 'expected an absolute http or https URL without credentials, query or fragment'

  it.each([
    'https://platform.example/api/v1/',
    'http://localhost:3000',
    'HTTP://LOCALHOST/',
    'http://127.0.0.1:4010/api',
    'http://127.255.0.9',
    'http://0x7f000001',
    'http://[::1]:4010',
    'http://[::ffff:127.0.0.1]',
  ])('may be %s', (url) => {
    for (const path of ['platform.baseUrl', 'platform.authUrl'])
      expect(valueAt(readOptions(withValue(path, url)), path)).toBe(url)
  })

  it.each([
    'http://platform.example',
    'http://localhost.example',
    'http://app.localhost',
    'http://127.0.0.1.example',
    'http://126.255.255.255',
    'http://10.0.0.1',
    'http://0.0.0.0',
    'http://[::]',
    'http://[::2]',
    'http://[fe80::1]',
    'http://[::ffff:10.0.0.1]',
  ])('L87 may not be %s, where the client secret would travel readably', (url) => {
    for (const path of ['platform.baseUrl', 'platform.authUrl']) {
      expect(faultsOf(withValue(path, url))).toEqual([
        `${path}: expected https://, because the client secret travels in the URL of the token call, and a token in each read: ` +
          'use the https:// address of the platform. http:// is only for a platform on this machine (localhost, 127.0.0.1 or [::1])',
      ])
    }
  })

  it.each([
    '/api',
    'platform.example',
    'ftp://platform.example',
    'https://user@platform.example',
    'https://:password@platform.example',
    'https://platform.example/?key=1',
    'https://platform.example/#part',
  ])('may not be %s', (url) => {
    for (const path of ['platform.baseUrl', 'platform.authUrl']) {
      expect(faultsOf(withValue(path, url))).toEqual([`${path}: ${WORDS}`])
    }
  })
})

describe('a plug-in of the app', () => {
  it.each(['platform.fetch', 'entitledWhen', 'verifyDelivery'])('%s is a function', (path) => {
    const own = () => true
    expect(valueAt(readOptions(withValue(path, own)), path)).toBe(own)
    expect(faultsOf(withValue(path, 'yes'))).toEqual([`${path}: expected a function`])
  })

  it('is a store by an address or by what postgresStore returns', () => {
    const ownPool = postgresStore(POOL)
    const inSchema = postgresStore({ connectionString: 'postgres://host/name', schema: 'billing' })
    for (const fit of ['sqlite::memory:', 'sqlite:m.db', 'postgres://host/name', ownPool, inSchema]) {
      expect(readOptions({ ...MINIMAL, store: fit }).store).toBe(fit)
    }
    const words = 'store: expected sqlite:<path>, sqlite::memory:, postgres://…, or postgresStore(…)'
    const store = storeFor('sqlite::memory:', systemClock)
    for (const odd of [
      null,
      5,
      {},
      store,
      { connect() {} },
      'marketplace.db',
      'postgres:',
      'mysql://host/x',
    ]) {
      expect(faultsOf({ ...MINIMAL, store: odd })).toEqual([words])
    }
    expect(faultsOf({ ...MINIMAL, store: POOL })).toEqual([
      'store: expected postgresStore(pool) in place of the pool alone',
    ])
  })

  it.each([
    [undefined, 'options: expected a pool of pg, or an object with connectionString or pool'],
    ['postgres://host/name', 'options: expected a pool of pg, or an object with connectionString or pool'],
    [{ schema: 'billing' }, 'options: expected either connectionString or pool'],
    [{ pool: POOL, connectionString: 'postgres://h/n' }, 'options: expected either connectionString or pool'],
    [{ connectionString: 'sqlite:m.db' }, 'connectionString: expected a postgres:// address'],
    [{ pool: {} }, 'pool: expected a pool of pg'],
    [{ pool: POOL, schema: 'a b' }, 'schema: expected a plain name of letters, digits and _'],
    [{ pool: POOL, maxConnections: 1 }, 'maxConnections: expected 2 or more'],
    [{ pool: POOL, scheme: 'billing' }, 'options: unknown option: "scheme"'],
  ])('is refused by postgresStore when it is %j', (given, fault) => {
    expect(() => postgresStore(given as never)).toThrow(
      expect.objectContaining({ code: 'config_invalid', message: `Cannot use PostgreSQL: ${fault}` }),
    )
  })

  it('names a value of another type, a missing one and an unknown one in plain words', () => {
    const { clientSecret: _, ...app } = MINIMAL.app
    expect(faultsOf({ ...MINIMAL, app, platform: { ...MINIMAL.platform, authUrl: 5 }, other: 1 })).toEqual([
      'app.clientSecret: expected string, and it is missing',
      'platform.authUrl: expected string, got number',
      'options: unknown option: "other"',
    ])
  })

  it('has settings of its own that no app chooses', () => {
    expect(readOptions(MINIMAL).internals).toEqual({
      callTimeoutMs: 10_000,
      leaseMs: 60_000,
      pollMs: 1_000,
      bodyTimeoutMs: 10_000,
      acceptTimeoutMs: 3_000,
      deadMs: 30 * 24 * 3_600_000,
    })
    const shorter = { ...MINIMAL, [Symbol.for('marketplace-webhooks internals')]: { leaseMs: 7 } }
    expect(readOptions(shorter).internals).toMatchObject({ leaseMs: 7, pollMs: 1_000 })
    expect(readOptions(MINIMAL).worker).toBe(true)
    expect(faultsOf({ ...MINIMAL, logger: 5 })).toEqual([
      'logger: expected a logger with warn(fields, message) and error',
    ])
  })

  it('is a store taken over from another app only if adoptStore is true', () => {
    expect(readOptions({ ...MINIMAL, adoptStore: true }).adoptStore).toBe(true)
    expect(faultsOf({ ...MINIMAL, adoptStore: 'yes' })).toEqual(['adoptStore: expected true or false'])
  })

  it('is a clock with wall time and timers; without monotonic time its wall time measures too', () => {
    const clock = { now: () => 7, setTimeout() {}, clearTimeout() {} }
    expect(readOptions({ ...MINIMAL, clock }).clock.monotonic()).toBe(7)
    const { now, ...timers } = clock
    for (const odd of [null, 5, timers, { now, setTimeout() {} }, { ...clock, clearTimeout: 5 }]) {
      expect(faultsOf({ ...MINIMAL, clock: odd })).toEqual([
        'clock: expected a Clock: now, setTimeout and clearTimeout',
      ])
    }
  })

  it('may define events, whose own faults are listed', () => {
    const own = defineEvent({ entity_name: 'a', event_type: 'b', data: z.object({}), tokens: ['app'] })
    expect(readOptions({ ...MINIMAL, events: { own } }).events).toEqual({ own })
    for (const odd of [5, null, [own]]) {
      expect(faultsOf({ ...MINIMAL, events: odd })).toEqual([
        "events: expected definitions by name, such as { 'invoice/paid': defineEvent({ … }) }",
      ])
    }
    expect(faultsOf({ ...MINIMAL, events: { own: { ...own, entity_name: '' } } })).toEqual([
      'events: event "own" has no usable entity_name',
    ])
  })
})

describe('a given option decides', () => {
  it('how long each kind of entry is kept: the sweep of every hour deletes it then, and not before', async () => {
    quietWarnings()
    const { clock, jump } = jumpingClock()
    const { marketplace, platform, deliver } = await createScene({
      // The sweeps of every hour come at once.
      clock: { ...clock, setTimeout: (run, ms) => clock.setTimeout(run, ms === HOUR ? 20 : ms) },
      retention: { eventsMs: HOUR, changesMs: 2 * HOUR, actionsMs: 3 * HOUR },
      handlers: { retryDelaysMs: [] },
      ...internals({ pollMs: 20, deadMs: 4 * HOUR }),
    })
    marketplace.onPurchaseChange(() => {})
    marketplace.onEntitlementChange(() => {})
    marketplace.onUnrecognised(() => {
      throw new Error('never')
    })
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await platform.settled()
    await deliver({ entity_name: 'unknown' })
    await marketplace.journal.recordAction({ actor: 'ada', action: 'look' })
    await marketplace.settled()
    const kinds = async () => [...new Set((await marketplace.journal.list()).map(({ kind }) => kind))].sort()
    let all = ['action', 'change', 'entitlement', 'event', 'unrecognised']
    for (const next of [['event'], ['change', 'entitlement'], ['action'], ['unrecognised']]) {
      expect(await kinds()).toEqual(all)
      all = all.filter((kind) => !next.includes(kind))
      jump(HOUR)
      await until(`the ${next} is deleted`, async () => !(await kinds()).some((kind) => next.includes(kind)))
    }
  })

  it('how many tokens are fetched at once', async () => {
    const { marketplace, platform } = await createScene({ reads: { concurrency: 2 } })
    platform.faults.add({ on: 'token', kind: 'slow', ms: 20 })
    const businesses = Array.from({ length: 8 }, (_, i) => `b${i}`)
    for (const business of businesses) platform.addBusiness(business)
    await Promise.all(businesses.map(marketplace.fetchAppToken))
    expect(Math.max(...platform.requests.map(({ inFlight }) => inFlight))).toBe(2)
  })

  it('which uninstalls concern the app', async () => {
    const { platform, marketplace, deliver, jump } = await createScene({
      app: { codeName: ['ours', 'mine'] },
    })
    await buy(platform, marketplace)
    const requested = async () => (await marketplace.health()).counts?.requested
    await until('the purchase is verified', async () => {
      jump(MINUTE)
      return (await requested()) === 0
    })
    platform.faults.add({ on: 'platform', kind: 'down' })
    const data = { business_id: B1 }
    await deliver(sampleDelivery('application/uninstalled', { ...data, app_code_name: 'other' }))
    expect(await requested()).toBe(0)
    await deliver(sampleDelivery('application/uninstalled', { ...data, app_code_name: 'mine' }))
    expect(await requested()).toBe(1)
  })

  it('when a new subscription that is not shown yet is read again, for pages that wait', async () => {
    const { platform, marketplace } = await createScene({ freshness: { waitMs: MINUTE } })
    platform.addBusiness(B1)
    await marketplace.subscriptions.track({ subscriptionUid: 's1', businessUid: B1 })
    const read = await until('it is read', async () => {
      const found = await marketplace.subscriptions.get('s1')
      return found?.failure ? found : undefined
    })
    const pauseMs = Date.parse(String(read.refreshAt)) - Date.parse(String(read.requestedAt))
    expect(Math.abs(pauseMs - MINUTE / 4)).toBeLessThan(SECOND)
  })

  it('how long refresh() waits for a read: twice a call of the platform and a second', async () => {
    const { platform, marketplace } = await createScene({
      worker: false,
      ...internals({ callTimeoutMs: 50 }),
    })
    await track(platform, marketplace)
    const begun = Date.now()
    expect(await marketplace.businesses.refresh(B1)).toMatchObject({ known: false })
    expect(Date.now() - begun).toBeLessThan(10_000)
  })

  it('which kinds of tokens register an event', async () => {
    const { platform, marketplace, target } = await createScene({ worker: false, events: customEvents })
    for (const [event, token] of [
      ['invoice/paid', appToken(platform.appToken(B1))],
      ['application/installed', businessToken(platform.businessToken(B1))],
    ] as const)
      await expect(
        marketplace.webhooks.register({ event: event as never, targetUrl: target, token }),
      ).rejects.toMatchObject({
        code: 'token_kind_not_accepted',
      })
    expect(platform.requests).toEqual([])
  })

  it('which bodies of deliveries are too large', async () => {
    const { deliver } = await createScene({ bodyLimitBytes: 2 * KIB, worker: false })
    expect((await deliver({ text: 'x'.repeat(KIB) })).status).toBe(200)
    expect((await deliver({ text: 'x'.repeat(2 * KIB) })).status).toBe(413)
  })
})

describe('faults of options', () => {
  it('are listed all at once, and none repeats a value', () => {
    const { app, platform } = MINIMAL
    const options = {
      app: { ...app, clientId: '' },
      platform: { ...platform, baseUrl: 'https://me:canary@platform.example' },
      bodyLimitBytes: 1,
      deliverySecrets: 'hunter2',
      extra: 'canary',
    }
    const error = errorOf(options)
    expect(error.faults.length).toBeGreaterThanOrEqual(4)
    expect(error.message).toBe(`Cannot create the marketplace: ${error.faults.join('; ')}`)
    expect(inspect(error, { depth: null })).not.toMatch(/hunter2|canary/)
    expect(() => createMarketplace(options as never)).toThrow(error.message)
  })

  it.each([undefined, null, 'text', 5])('are about the options themselves when they are %j', (options) => {
    expect(faultsOf(options)).toEqual([expect.stringMatching(/^options: /)])
  })
})

function errorOf(options: unknown): ConfigError {
  try {
    readOptions(options)
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
  throw new Error('the options have no faults')
}

function faultsOf(options: unknown): readonly string[] {
  return errorOf(options).faults
}

function usualOf(path: string): unknown {
  return valueAt(readOptions(MINIMAL), path)
}

function valueAt(options: object, path: string): unknown {
  return path.split('.').reduce((at: unknown, key) => (at as Record<string, unknown>)[key], options)
}

/** The minimal options with `value` at a dotted path. */
function withValue(path: string, value: unknown): object {
  const [name = '', key] = path.split('.')
  if (key === undefined) return { ...MINIMAL, [name]: value }
  const group = (MINIMAL as Record<string, unknown>)[name] as object | undefined
  return { ...MINIMAL, [name]: { ...group, [key]: value } }
}
