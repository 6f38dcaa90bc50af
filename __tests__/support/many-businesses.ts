import { DAY, HOUR, MINUTE } from '../../lib/clock.js'
import {
  createMarketplace,
  type Marketplace,
  type MarketplaceOptions,
  type PurchaseChange,
} from '../../lib/index.js'
import { createSqliteEngine } from '../../lib/sqlite/engine.js'
import { createSqlStore } from '../../lib/store/sql-store.js'
import type { Store } from '../../lib/store/store.js'
import { sampleDelivery } from '../../lib/testing/index.js'
import { onCleanUp } from './clean-up.js'
import { internals } from './internals.js'
import { DELIVERY_SECRET, OUR_ITEM } from './settings.js'
import { knock } from './simulation/door.js'
import { createVirtualClock } from './virtual-clock.js'

// A killed life is never closed, so it never releases its hold on the process. Here that is the process of the tests.
const { setInterval } = globalThis
globalThis.setInterval = ((callback: () => void, delayMs: number) =>
  setInterval(callback, delayMs).unref()) as typeof setInterval

/** How the platform answers the reads of a business. */
export type Service =
  | 'served'
  | 'no token'
  | 'forbidden'
  | 'not found'
  | 'empty'
  | 'error with 200'
  | 'down'
  | 'wrong secret'

/**
 * Many businesses that have bought, b1, b2 and so on, each with its subscription s1, s2 and so on; one or more instances
 * of the app on one SQLite database in memory, in virtual time; and a platform whose service for each business the test
 * decides.
 */
export async function createBusinesses(
  count: number,
  options: Partial<MarketplaceOptions> & { instances?: number } = {},
) {
  const { instances = 1, freshness, ...rest } = options
  let busy = 0
  const clock = createVirtualClock({ isBusy: () => busy > 0 })
  const service = new Map<string, Service>()
  const states = new Map<string, string>()
  const owners = new Map<string, string>()
  const calls = new Map<string, number>()
  const changes: Pick<PurchaseChange, 'business_uid' | 'from' | 'to' | 'gone'>[] = []
  const numbers = Array.from({ length: count }, (_, i) => i + 1)
  const database = createSqlStore(createSqliteEngine({ path: ':memory:', clock: clock.forProcess() }))
  await database.open()
  let reads = 0
  let updated = 0

  const serviceOf = (business: string) => service.get(business) ?? 'served'

  function answer(url: URL, authorization: string | null): Response {
    const isToken = url.pathname.endsWith('/oauth/token')
    const business = isToken
      ? String(url.searchParams.get('business_uid'))
      : String(authorization).replace('Bearer token-of-', '')
    const how = serviceOf(business)
    calls.set(business, (calls.get(business) ?? 0) + 1)
    if (how === 'down') return new Response('{}', { status: 503 })
    if (isToken) {
      if (how === 'wrong secret') return Response.json({ error: 'invalid_client' }, { status: 401 })
      if (how === 'no token') return Response.json({ error: 'access_denied' }, { status: 403 })
      return Response.json({ access_token: `token-of-${business}` })
    }
    reads++
    if (how === 'no token' || how === 'wrong secret') return new Response('{}', { status: 401 })
    if (how === 'forbidden') return new Response('{}', { status: 403 })
    if (how === 'not found') return new Response('{}', { status: 404 })
    if (how === 'error with 200') return Response.json({ success: false, errors: [{ code: 'NO_ACCESS' }] })
    const uid = String(url.searchParams.get('filter[uid]'))
    const owner = owners.get(uid) ?? `b${uid.slice(1).split('-')[0]}`
    const isShown = how === 'served' && owner === business
    return Response.json({ data: { subscriptions: isShown ? [recordOf(business, uid)] : [] } })
  }

  function recordOf(business: string, uid = `s${business.slice(1)}`, state?: string) {
    const purchase_state = state ?? states.get(business) ?? 'purchased'
    const updated_at = new Date(Date.UTC(2029, 0, 1) + updated).toISOString()
    return { uid, business_uid: business, purchasable_uid: OUR_ITEM, purchase_state, updated_at }
  }

  function begin() {
    const own = clock.forProcess()
    let isKilled = false
    const unsubscribes: (() => void)[] = []
    async function follow<T>(work: Promise<T>): Promise<T> {
      busy++
      try {
        return await work
      } finally {
        busy--
        if (isKilled) await new Promise(() => {})
      }
    }
    const store = new Proxy(database, {
      get(target, name: keyof Store) {
        if (name === 'close') return async () => {}
        if (name === 'problem') return () => target.problem?.() ?? null
        if (name === 'subscribe')
          return (listener: Parameters<Store['subscribe']>[0]) => {
            const end = target.subscribe((hint) => void (isKilled || listener(hint)))
            unsubscribes.push(end)
            return end
          }
        const method = target[name] as (...given: unknown[]) => Promise<unknown>
        return (...given: unknown[]) => (isKilled ? new Promise(() => {}) : follow(method(...given)))
      },
    })
    const marketplace = createMarketplace({
      app: { clientId: 'c', clientSecret: 's', purchasableUid: OUR_ITEM, codeName: 'ours' },
      deliverySecrets: DELIVERY_SECRET,
      freshness: { waitMs: 0, reconcileEveryMs: DAY, ...freshness },
      ...internals({ pollMs: MINUTE }),
      closeTimeoutMs: 1_000,
      ...rest,
      store,
      clock: own,
      platform: {
        baseUrl: 'https://platform.test',
        authUrl: 'https://auth.test',
        fetch: async (input, init) =>
          answer(new URL(String(input)), new Headers(init?.headers).get('authorization')),
      },
    } as MarketplaceOptions)
    marketplace.onPurchaseChange(({ business_uid, from, to, gone }) => {
      changes.push({ business_uid, from, to, gone })
    })
    return {
      marketplace,
      kill() {
        isKilled = true
        own.kill()
        for (const end of unsubscribes) end()
      },
    }
  }

  let lives = Array.from({ length: instances }, begin)
  onCleanUp(async () => {
    for (const life of lives) life.kill()
    await database.close()
  })
  const first = () => (lives[0] as (typeof lives)[0]).marketplace

  async function deliver(body: unknown) {
    const status = new Promise<number>((resolve) => {
      knock(
        first().router as never,
        { url: `/${DELIVERY_SECRET}`, pieces: [JSON.stringify(body)], isCutOff: false },
        (reply) => resolve(reply.status),
      )
    })
    await clock.rest()
    if ((await status) !== 200) throw new Error(`the delivery was answered with ${await status}`)
  }

  /** Runs a call to its end in virtual time. */
  async function ask<T>(call: Promise<T>): Promise<T> {
    let isSettled = false
    const settle = () => {
      isSettled = true
    }
    call.then(settle, settle)
    await clock.rest()
    while (!isSettled) await clock.advance(100)
    return call
  }

  function installed(name: 'application/installed' | 'application/uninstalled', i: number, data: object) {
    return deliver(sampleDelivery(name, { business_id: `b${i}`, app_code_name: 'ours', ...data }))
  }

  const world = {
    clock,
    advance: clock.advance,
    changes,
    marketplace: first as () => Marketplace,
    /** Sets the service of businesses with these numbers; without numbers, of all. */
    serve(how: Service, which: readonly number[] = numbers) {
      for (const i of which) service.set(`b${i}`, how)
    },
    move(business: string, state: string) {
      updated++
      states.set(business, state)
    },
    /** The platform shows this subscription to the business with this number from now on. */
    give(uid: string, i: number) {
      owners.set(uid, `b${i}`)
    },
    track: (i: number, uid = `s${i}`) =>
      ask(
        first()
          .subscriptions.track({ subscriptionUid: uid, businessUid: `b${i}` })
          .catch(() => {}),
      ),
    refresh: (i: number) =>
      ask(
        first()
          .businesses.refresh(`b${i}`)
          .catch(() => {}),
      ),
    reads: () => reads,
    /** The calls for the business with this number: of tokens and of reads. */
    calls: (i: number) => calls.get(`b${i}`) ?? 0,
    rows: (i: number) => database.subscriptionsOf(`b${i}`),
    counts: () => database.counts(),
    update: (i: number, uid = `s${i}`) =>
      deliver(
        sampleDelivery('purchasable_subscription/update', {
          subscription_uid: uid,
          business_id: `b${i}`,
          purchasable_uid: OUR_ITEM,
        }),
      ),
    /** An event with the full record. */
    updated: (i: number, state: string) =>
      deliver({
        entity_name: 'purchasable_subscription',
        event_type: 'update',
        data: recordOf(`b${i}`, `s${i}`, state),
      }),
    uninstall: (i: number, data: object = {}) => installed('application/uninstalled', i, data),
    install: (i: number, data: object = {}) => installed('application/installed', i, data),
    explain: (i: number) => ask(first().explain(`b${i}`)),
    /** The numbers of the businesses that may not use the app. */
    async out() {
      const answers = await ask(Promise.all(numbers.map((i) => first().isEntitled(`b${i}`))))
      return numbers.filter((_, i) => !answers[i])
    },
    async health(instance = 0): Promise<string[]> {
      const { marketplace } = lives[instance] as (typeof lives)[0]
      const { status, problems } = await ask(marketplace.health())
      return [status, ...problems.map(({ message }) => message)]
    },
    async restart() {
      for (const life of lives) life.kill()
      await clock.rest()
      lives = Array.from({ length: instances }, begin)
      await clock.rest()
    },
  }
  for (const i of numbers) await world.track(i)
  // The reconciles of real businesses are spread over the day.
  await clock.advance(3 * HOUR)
  const unread = await world.out()
  if (unread.length > 0) throw new Error(`${unread.length} purchases were not read`)
  return world
}

export type Businesses = Awaited<ReturnType<typeof createBusinesses>>
