import { SECOND } from '../base/clock.js'
import { MarketplaceError } from '../base/errors.js'
import { createListeners } from '../base/listeners.js'
import { EVENTS, type EventName } from '../events/registry.js'
import type { Faults, Simulator } from './api.js'
import { cannot } from './cannot.js'
import { Deliverer, type Delivery } from './deliverer.js'
import {
  createAnswerers,
  createRegistrations,
  createTokens,
  isEventName,
  isTargetUrl,
  type Registrations,
  type Tokens,
} from './endpoints.js'
import { createFaultRules } from './faults.js'
import { resolveOptions, type SimulatorOptions } from './options.js'
import { type PlatformRequest, PlatformServer, type PlatformServerOptions } from './platform-server.js'
import { seeded, uuid } from './random.js'
import { World } from './world.js'

/**
 * Creates a simulator. Throws `config_invalid` when an option is missing or out of bounds.
 *
 * @example
 * const platform = createSimulator({ clientId: 'my-app', clientSecret: 'my-client-secret' })
 * const { baseUrl, authUrl } = await platform.start()
 */
export function createSimulator(options: SimulatorOptions): Simulator {
  const {
    clientId,
    clientSecret,
    seed,
    apps,
    port,
    authPort,
    clock,
    tokenLifetimeMs,
    listsSubscriptions,
    ...rest
  } = resolveOptions(options)
  const random = seeded(seed)
  const ids = random.stream('ids')
  const newUid = () => (rest.deliveryStyle.numericIds ? `${1e9 + Math.floor(ids() * 9e9)}` : uuid(ids))
  const requests: PlatformRequest[] = []
  const onDelivery = createListeners<Delivery>(throwLater)
  const onRequest = createListeners<PlatformRequest>(throwLater)

  const registrations = createRegistrations()
  const rules = createFaultRules(random, (fault, change) => {
    if (change === 'ended') deliverer.releaseAfter(fault)
    else if (fault.kind === 'down') servers.cutIfDown()
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
  const servers = createServers({
    port,
    authPort,
    answerers: createAnswerers({
      clientId,
      clientSecret,
      world,
      tokens,
      registrations,
      listsSubscriptions,
      expiresIn: () =>
        faults.expiresIn === undefined ? inSeconds(faults.tokenLifetimeMs) : faults.expiresIn,
    }),
    faults: rules,
    clock,
    onRequest(request: PlatformRequest) {
      requests.push(request)
      onRequest.call(request)
    },
  })
  let closed = false

  function opened(): World {
    if (closed)
      throw new MarketplaceError('closed', 'Cannot use the simulator: it was closed. Create another one')
    return world
  }

  return {
    async start() {
      opened()
      return servers.start()
    },
    async close() {
      closed = true
      deliverer.close()
      await servers.close()
    },
    get baseUrl() {
      return started(servers.addresses()).baseUrl
    },
    get authUrl() {
      return started(servers.addresses()).authUrl
    },
    seed,
    apps: world.apps,

    ...createAccess({ opened, tokens, registrations }),
    ...createMoves(world, opened),

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

function started(addresses: Addresses | undefined): Addresses {
  if (addresses === undefined)
    throw cannot('return the address', 'the simulator has not started. Await start() first')
  return addresses
}

function inSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.ceil(ms / SECOND)
}

/** What businesses do on the platform, as methods of the simulator. `opened` throws after the close. */
function createMoves(world: World, opened: () => World) {
  return {
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
  } satisfies Partial<Simulator>
}

/** Tokens and registrations without a request, as methods of the simulator. `opened` throws after the close. */
function createAccess(parts: { opened: () => World; tokens: Tokens; registrations: Registrations }) {
  const { opened, tokens, registrations } = parts

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
  } satisfies Partial<Simulator>
}

/** The two addresses of the simulated platform. */
interface Addresses {
  baseUrl: string
  authUrl: string
}

/** The servers of both addresses, which start together, once. */
function createServers(options: Omit<PlatformServerOptions, 'under'> & { port: number; authPort: number }) {
  const { port, authPort, ...shared } = options
  const base = new PlatformServer({ under: 'base', ...shared })
  const auth = new PlatformServer({ under: 'auth', ...shared })
  let starting: Promise<Addresses> | undefined
  let addresses: Addresses | undefined

  async function listen(): Promise<Addresses> {
    const baseUrl = await base.start(port)
    const authUrl = await auth.start(authPort)
    addresses = { baseUrl, authUrl }
    return addresses
  }

  return {
    start(): Promise<Addresses> {
      starting ??= listen()
      return starting
    },
    /** Undefined until they have started. */
    addresses: () => addresses,
    /** Cuts the connections of a server that is down now. */
    cutIfDown() {
      for (const server of [base, auth]) server.cutIfDown()
    },
    async close() {
      await starting?.catch(() => {})
      await Promise.all([base.close(), auth.close()])
    },
  }
}

/** An error of a listener must not stop the platform, so it is thrown in another turn. */
function throwLater(error: unknown) {
  queueMicrotask(() => {
    throw error
  })
}
