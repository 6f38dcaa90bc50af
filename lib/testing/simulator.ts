import { SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import { EVENTS, type EventName } from '../events/registry.js'
import type { Faults, Simulator } from './api.js'
import { cannot } from './cannot.js'
import { Deliverer, type Delivery } from './deliverer.js'
import { createAnswerers } from './endpoints.js'
import { createFaultRules } from './fault-rules.js'
import { createListeners } from './listeners.js'
import { resolveOptions, type SimulatorOptions } from './options.js'
import { type PlatformRequest, PlatformServer } from './platform-server.js'
import { seeded, uuid } from './random.js'
import { createRegistrations, isEventName, isTargetUrl } from './registrations.js'
import { createTokens } from './tokens.js'
import { World } from './world.js'

/**
 * Creates a simulator. Throws `config_invalid` when an option is missing or out of bounds.
 *
 * @example
 * const platform = createSimulator({ clientId: 'my-app', clientSecret: 'my-client-secret' })
 * const { baseUrl, authUrl } = await platform.start()
 */
export function createSimulator(options: SimulatorOptions): Simulator {
  const { clientId, clientSecret, seed, apps, port, authPort, clock, tokenLifetimeMs, ...rest } =
    resolveOptions(options)
  const random = seeded(seed)
  const ids = random.stream('ids')
  const newUid = () => (rest.deliveryStyle.numericIds ? `${1e9 + Math.floor(ids() * 9e9)}` : uuid(ids))
  const requests: PlatformRequest[] = []
  const onDelivery = createListeners<Delivery>()
  const onRequest = createListeners<PlatformRequest>()

  const registrations = createRegistrations()
  const rules = createFaultRules(random, (fault, change) => {
    if (change === 'ended') deliverer.releaseAfter(fault)
    else if (fault.kind === 'down') for (const server of [base, auth]) server.cutIfDown()
  })
  const deliverer = new Deliverer({
    ...rest,
    clock,
    seed: random,
    registrations,
    faults: rules,
    onDelivery: onDelivery.call,
  })
  const world = new World({ apps, clock, newUid, emit: (happening) => deliverer.deliver(happening) })
  const tokens = createTokens({
    clock,
    random: random.stream('tokens'),
    lifetimeMs: () => faults.tokenLifetimeMs,
  })
  const faults: Faults = {
    add: (fault) => rules.add(fault),
    clear() {
      rules.clear()
      faults.tokenLifetimeMs = tokenLifetimeMs
      faults.expiresIn = undefined
    },
    tokenLifetimeMs,
    expiresIn: undefined,
    expireTokens: () => tokens.expireAll(),
  }
  const serverOptions = {
    answerers: createAnswerers({
      clientId,
      clientSecret,
      world,
      tokens,
      registrations,
      expiresIn: () => faults.expiresIn ?? inSeconds(faults.tokenLifetimeMs),
    }),
    faults: rules,
    clock,
    onRequest(request: PlatformRequest) {
      requests.push(request)
      onRequest.call(request)
    },
  }
  const base = new PlatformServer({ under: 'base', ...serverOptions })
  const auth = new PlatformServer({ under: 'auth', ...serverOptions })
  let starting: Promise<{ baseUrl: string; authUrl: string }> | undefined
  let addresses: { baseUrl: string; authUrl: string } | undefined
  let closed = false

  async function listen(): Promise<{ baseUrl: string; authUrl: string }> {
    const baseUrl = await base.start(port)
    const authUrl = await auth.start(authPort)
    addresses = { baseUrl, authUrl }
    return addresses
  }

  async function stop(): Promise<void> {
    await starting?.catch(() => {})
    await Promise.all([base.close(), auth.close()])
  }

  function opened(): World {
    if (closed) throw new MarketplaceError('closed', 'Cannot use the simulator: it is closed')
    return world
  }

  function started(): { baseUrl: string; authUrl: string } {
    if (addresses === undefined) throw cannot('return the address', 'await start() first')
    return addresses
  }

  function tokenFor(kind: 'app' | 'business', businessUid: string): string {
    opened().businesses.add(businessUid)
    return tokens.issue(kind, businessUid)
  }

  async function register(event: EventName, targetUrl: string): Promise<void> {
    opened()
    if (!isEventName(event)) throw cannot('register the webhook', `there is no event ${event}`)
    if (!isTargetUrl(targetUrl)) throw cannot('register the webhook', 'the target is not an HTTP address')
    const [kind] = EVENTS[event].tokens
    // A directory token instead of a business token, because the target gets the events of every business.
    registrations.add(event, targetUrl, { kind: kind === 'app' ? 'app' : 'directory', businessUid: null })
  }

  return {
    async start() {
      opened()
      starting ??= listen()
      return starting
    },
    async close() {
      closed = true
      deliverer.close()
      await stop()
    },
    get baseUrl() {
      return started().baseUrl
    },
    get authUrl() {
      return started().authUrl
    },
    seed,
    apps: world.apps,

    appToken: (businessUid) => tokenFor('app', businessUid),
    businessToken: (businessUid) => tokenFor('business', businessUid),
    directoryToken() {
      opened()
      return tokens.issue('directory', null)
    },
    register,
    async registerAll(targetUrl) {
      for (const event of Object.keys(EVENTS) as EventName[]) await register(event, targetUrl)
    },

    addBusiness: (businessUid) => void opened().businesses.add(businessUid),
    purchase: (purchase) => opened().purchase(purchase),
    confirmPayment: (uid) => opened().move(uid, 'Payment confirmation received'),
    paymentIssue: (uid) => opened().move(uid, 'Payment issue received'),
    cancel: (uid) => opened().move(uid, 'User cancels the app subscription'),
    install: (businessUid, codeName) => opened().install(businessUid, codeName),
    uninstall: (businessUid, codeName) => opened().uninstall(businessUid, codeName),
    cancelPlatform: (businessUid) => opened().cancelPlatform(businessUid),
    mainSubscription: (main) => opened().mainSubscription(main),
    touch: (uid) => opened().set(uid, {}),
    set: (uid, fields) => opened().set(uid, fields),
    remove: (uid) => opened().remove(uid),
    refuseTokens: (businessUid, refused = true) => opened().businesses.refuse(businessUid, refused),
    servesTokens: (businessUid) => world.businesses.serves(businessUid),
    subscription: (uid) => world.get(uid),
    subscriptions: () => world.all(),

    deliveries: deliverer.log,
    requests,
    redeliver(index) {
      opened()
      const delivery = deliverer.log[index]
      if (delivery === undefined) throw cannot('redeliver', `there is no delivery ${index}`)
      deliverer.redeliver(delivery)
    },
    settled: () => deliverer.settled(),
    on(kind: 'delivery' | 'request', listener: (entry: never) => void) {
      if (kind === 'delivery') return onDelivery.add(listener as (delivery: Delivery) => void)
      return onRequest.add(listener as (request: PlatformRequest) => void)
    },
    faults,
  }
}

function inSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.ceil(ms / SECOND)
}
