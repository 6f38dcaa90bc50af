import { DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { Marketplace, MarketplaceOptions, PurchaseChange } from '../../../lib/index.js'
import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { onCleanUp } from '../clean-up.js'
import { internals } from '../internals.js'
import { createVirtualClock } from '../machine/virtual-clock.js'
import { type CallFault, createPlatform } from '../platform/platform.js'
import { DELIVERY_SECRET, OUR_ITEM } from '../settings.js'
import { createProcess, lent, type Process } from '../world/process.js'

interface Fault {
  token?: CallFault
  read?: CallFault
}

/** How the platform serves a business: what happens to its token calls and reads. */
const SERVICES = {
  served: {},
  'no token': { token: 'token refused', read: 'revoked' },
  forbidden: { read: 'forbidden' },
  'not found': { read: 'not found' },
  empty: { read: 'empty' },
  'error with 200': { read: 'error with 200' },
  down: { token: 'failing', read: 'failing' },
  'wrong secret': { token: 'credentials', read: 'revoked' },
} satisfies Record<string, Fault>

type InstallName = 'application/installed' | 'application/uninstalled'

export type Service = keyof typeof SERVICES

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
  const clock = createVirtualClock({
    dozeMs: 10 * MINUTE,
    // About thirty reads fit in a step, so longer ones would delay a thousand for hours.
    attentive: { part: 0, leastMs: MINUTE },
  })
  /** After something has happened, reactions are measured in seconds, and for hours in minutes. */
  function lookClosely() {
    clock.lookClosely(5 * MINUTE)
    clock.attend(8 * HOUR)
  }
  const service = new Map<string, Service>()
  const calls = new Map<string, number>()
  const changes: Pick<PurchaseChange, 'business_uid' | 'from' | 'to' | 'gone' | 'cause'>[] = []
  /** What happens to the next reads. */
  const faults: CallFault[] = []
  let lagMs = 0
  let duringCall = async () => {}
  const numbers = Array.from({ length: count }, (_, i) => i + 1)
  const ofDatabase = clock.forProcess()
  const database = createSqlStore(createSqliteEngine({ path: ':memory:', clock: ofDatabase }), ofDatabase)
  await database.open()
  let reads = 0

  const platform = createPlatform({
    clock,
    latencyMs: () => [0, 0],
    lagMs: () => lagMs,
    faultOf({ kind, of, business }) {
      calls.set(business, (calls.get(business) ?? 0) + 1)
      const { token, read }: Fault = SERVICES[service.get(business) ?? 'served']
      if (kind === 'token') return token
      reads++
      subscriptionOf(of)
      return read ?? faults.shift()
    },
  })

  /** A subscription named after its business has been bought before the first look at it. */
  function subscriptionOf(uid: string) {
    return platform.subscriptions.get(uid) ?? platform.set(uid, `b${uid.slice(1).split('-')[0]}`, 'purchased')
  }

  function begin() {
    const life = createProcess({
      ...{ time: clock, store: lent(database) },
      fetch: async (...call) => {
        await duringCall()
        return platform.fetch(...call)
      },
      settings: {
        app: { clientId: 'c', clientSecret: 's', purchasableUid: OUR_ITEM, codeName: 'ours' },
        closeTimeoutMs: SECOND,
        freshness: { waitMs: 0, reconcileEveryMs: DAY, ...freshness },
        ...internals({ pollMs: MINUTE }),
        ...rest,
      },
    })
    life.marketplace.onPurchaseChange(({ business_uid, from, to, gone, cause }) => {
      changes.push({ business_uid, from, to, gone, cause })
    })
    return life
  }

  let lives = Array.from({ length: instances }, begin)
  onCleanUp(async () => {
    for (const life of lives) life.kill()
    await database.close()
  })
  const first = () => (lives[0] as Process).marketplace

  async function deliver(body: unknown, secret = DELIVERY_SECRET) {
    lookClosely()
    const reply = send(body, secret)
    await clock.rest()
    const { status } = await reply
    if (status !== (secret === DELIVERY_SECRET ? 200 : 404))
      throw new Error(`the delivery was answered with ${status}`)
  }

  function send(body: unknown, secret = DELIVERY_SECRET) {
    return (lives[0] as Process).deliver([JSON.stringify(body)], { secret })
  }

  /** Runs a call to its end in virtual time. */
  const ask = <T>(call: Promise<T>) => clock.until(call)

  function install(name: InstallName, i: number, data: object) {
    return sampleDelivery(name, { business_id: `b${i}`, app_code_name: 'ours', ...data })
  }
  const installed = (...given: Parameters<typeof install>) => deliver(install(...given))

  function notify(
    name: 'purchasable_subscription/create' | 'purchasable_subscription/update',
    i: number,
    uid = `s${i}`,
    secret = DELIVERY_SECRET,
  ) {
    const data = { subscription_uid: uid, business_id: `b${i}`, purchasable_uid: OUR_ITEM }
    return deliver(sampleDelivery(name, data), secret)
  }

  const world = {
    clock,
    ask,
    advance: clock.advance,
    changes,
    marketplace: first as () => Marketplace,
    /** Sets the service of businesses with these numbers; without numbers, of all. */
    serve(how: Service, which: readonly number[] = numbers) {
      for (const i of which) service.set(`b${i}`, how)
      lookClosely()
    },
    /** Each call of the platform is answered after another delivery of an install or uninstall of a business. */
    sendDuringCalls(name: InstallName, i: number) {
      duringCall = async () => void (await send(install(name, i, {})))
    },
    move(business: string, state: string) {
      platform.set(`s${business.slice(1)}`, business, state)
      lookClosely()
    },
    state: (i: number) => platform.state(`s${i}`),
    /** What happens to the next reads, whichever business they are for. */
    fail: (fault: CallFault, times: number) => void faults.push(...Array<CallFault>(times).fill(fault)),
    /** How long reads show the state before a change that comes from now on. */
    lag(ms: number) {
      lagMs = ms
    },
    /** The platform shows this subscription to the business with this number from now on. */
    give: (uid: string, i: number) => void platform.set(uid, `b${i}`, 'purchased'),
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
    /** For the next five minutes time goes from timer to timer. */
    lookClosely,
    reads: () => reads,
    /** The calls for the business with this number: of tokens and of reads. */
    calls: (i: number) => calls.get(`b${i}`) ?? 0,
    rows: (i: number) => database.subscriptionsOf(`b${i}`),
    counts: () => database.counts(),
    /** Buys, with the event. */
    buy: (i: number) => notify('purchasable_subscription/create', i),
    update: (i: number, uid = `s${i}`, secret = DELIVERY_SECRET) =>
      notify('purchasable_subscription/update', i, uid, secret),
    /** An event with the full record. */
    updated: (i: number, state: string) =>
      deliver({
        entity_name: 'purchasable_subscription',
        event_type: 'update',
        data: platform.recordOf({ ...subscriptionOf(`s${i}`), state }),
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
      const { marketplace } = lives[instance] as Process
      const { status, problems } = await ask(marketplace.health())
      return [status, ...problems.map(({ message }) => message)]
    },
    async restart() {
      for (const life of lives) life.kill()
      await clock.rest()
      lives = Array.from({ length: instances }, begin)
      lookClosely()
      await clock.rest()
    },
  }
  clock.attend(8 * HOUR)
  for (const i of numbers) await world.track(i)
  // The reconciles of real businesses are spread over the day.
  await clock.advance(3 * HOUR)
  const unread = await world.out()
  if (unread.length > 0) throw new Error(`${unread.length} purchases were not read`)
  return world
}

export type Businesses = Awaited<ReturnType<typeof createBusinesses>>
