import { SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import { createAccess } from './access.js'
import type { Faults, Simulator } from './api.js'
import { cannot } from './cannot.js'
import { Deliverer, type Delivery } from './deliverer.js'
import { createAnswerers } from './endpoints.js'
import { createFaultRules } from './fault-rules.js'
import { createListeners } from './listeners.js'
import { createMoves } from './moves.js'
import { resolveOptions, type SimulatorOptions } from './options.js'
import type { PlatformRequest } from './platform-server.js'
import { seeded, uuid } from './random.js'
import { createRegistrations } from './registrations.js'
import { type Addresses, createServers } from './servers.js'
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
      expiresIn: () => faults.expiresIn ?? inSeconds(faults.tokenLifetimeMs),
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
