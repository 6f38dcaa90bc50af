import type { Marketplace, MarketplaceOptions } from '../../../lib/index.js'
import { knock } from '../simulation/door.js'
import type { Random } from '../simulation/random.js'
import type { Disk } from './disk.js'
import { HOUR, MINUTE, SECOND } from './durations.js'
import type { Ledger } from './ledger.js'
import { createMarketplace } from './package-under-test.js'
import { ADDRESSES, CLIENT, OUR_ITEM, type Platform } from './platform.js'
import type { Time } from './time.js'

const SECRET = 'Wq7xKe2mVb9sRt4cYp1n'

/** The options that an operator deploys; without them, the correct ones. */
export interface Deployed {
  baseUrl?: string
  authUrl?: string
  clientSecret?: string
  purchasableUid?: string
  /** `none`: a script beside the app. `changes`: events have no handler. `events`: changes wait. */
  handlers?: 'all' | 'changes' | 'events' | 'none'
  retention?: MarketplaceOptions['retention']
}

/** Makes a handler throw when it returns true. */
export type HandlerFault = (of: { business: string; isChange: boolean }) => boolean

/** For negative controls: a wrapper that breaks a promise of the package. */
export interface Sabotage {
  marketplace?(marketplace: Marketplace): Marketplace
  fetch?(real: typeof fetch): typeof fetch
}

export type App = ReturnType<typeof createApp>

/**
 * The app of a world: one process at a time on one file, which is deployed, closed and killed. Callers see only its
 * public side.
 */
export function createApp(options: {
  time: Time
  disk: Disk
  random: Random
  platform: Platform
  ledger: Ledger
  sabotage?: Sabotage | undefined
}) {
  const { time, disk, random, platform, ledger, sabotage = {} } = options
  const {
    marketplace: disguised = (real: Marketplace) => real,
    fetch: rerouted = (real: typeof fetch) => real,
  } = sabotage
  const fetchPlatform = rerouted(platform.fetch)
  const killed: { marketplace: Marketplace; clock: ReturnType<Time['clockOfProcess']> }[] = []
  let running: { marketplace: Marketplace; clock: ReturnType<Time['clockOfProcess']> } | undefined
  let life = 0
  const now = { fails: (() => false) as HandlerFault, handlerMs: 0, onHandler: () => {} }

  async function handle(
    entry: { id: string; key: string; business: string; change?: string },
    ofLife: number,
  ) {
    if (ofLife !== life) return
    const { key, business, change } = entry
    const end = ledger.onCall({ ...entry, life: ofLife })
    now.onHandler()
    const fails = now.fails({ business, isChange: change !== undefined })
    const takesMs = now.handlerMs || random.of(`${time.passed()} ${key}`).pick([0, 0, 20, 800])
    if (takesMs > 0) await time.follow(time.sleep(takesMs))
    if (ofLife !== life) return await new Promise<never>(() => {})
    end(!fails)
    if (fails) throw new Error('the mail server is down')
  }

  function deploy(deployed: Deployed = {}) {
    const { clientSecret = CLIENT.clientSecret, purchasableUid = OUR_ITEM, handlers = 'all' } = deployed
    const { baseUrl = ADDRESSES.baseUrl, authUrl = ADDRESSES.authUrl, retention } = deployed
    const clock = time.clockOfProcess()
    const ofLife = ++life
    const marketplace = disguised(
      createMarketplace({
        app: { clientId: CLIENT.clientId, clientSecret, purchasableUid, codeName: 'ours' },
        platform: { baseUrl, authUrl, fetch: (...args) => live(ofLife, () => fetchPlatform(...args)) },
        deliverySecrets: SECRET,
        store: `sqlite:${disk.path()}`,
        clock,
        retention,
      }),
    )
    if (handlers === 'all' || handlers === 'changes') {
      marketplace.onPurchaseChange((change) => {
        const { id, subscription_uid: key, business_uid: business, from, to, record } = change
        return handle({ id, key, business, change: `${from} to ${to} of ${record?.updated_at}` }, ofLife)
      })
    }
    if (handlers === 'all' || handlers === 'events') {
      marketplace.onAny(({ id, data }) => {
        const { subscription_uid, uid, business_id, business_uid } = data as Record<string, string>
        const business = business_id ?? business_uid ?? ''
        return handle({ id, key: subscription_uid ?? uid ?? business, business }, ofLife)
      })
      marketplace.onUnrecognised(({ id }) => handle({ id, key: id, business: '' }, ofLife))
    }
    marketplace.onDead(({ id, subscription_uid }) => {
      if (ofLife === life) ledger.onDead(id, subscription_uid)
    })
    running = { marketplace, clock }
  }

  /** Passes a result on only while the process is alive: a dead process never gets the result of an `await`. */
  async function live<T>(ofLife: number, call: () => Promise<T>): Promise<T> {
    const result = await call().finally(() => (ofLife === life ? undefined : new Promise(() => {})))
    return result
  }

  async function close() {
    if (!running) return
    const { marketplace, clock } = running
    running = undefined
    await time.until(marketplace.close(), MINUTE)
    clock.kill()
    life++
  }

  return {
    now,
    isUp: () => running !== undefined,
    marketplace(): Marketplace {
      if (!running) throw new Error('the app is down')
      return running.marketplace
    },
    deploy,
    close,
    /** Closes the app and starts it with other options. */
    async redeploy(deployed: Deployed = {}) {
      await close()
      deploy(deployed)
      await time.advance(SECOND)
    },
    /** From now on, none of the process's code runs. */
    kill({ power = false } = {}) {
      running?.clock.kill()
      if (running) killed.push(running)
      running = undefined
      life++
      ledger.onKill()
      if (power) ledger.onPowerCut()
      disk.leave({ power })
    },

    /** Releases the real resources of killed processes, at the end of the world. */
    async bury() {
      for (const { marketplace, clock } of killed) {
        clock.revive()
        await time.until(marketplace.close(), HOUR).catch(() => {})
        clock.kill()
      }
    },

    /** Makes one delivery. Returns the status of the reply, or 0 when nobody listens. */
    deliver(body: unknown): Promise<number> {
      const { marketplace } = running ?? {}
      if (!marketplace) return Promise.resolve(0)
      return new Promise((resolve) => {
        const request = { url: `/${SECRET}`, pieces: [JSON.stringify(body)], isCutOff: false }
        knock(marketplace.router as never, request, ({ status }) => resolve(status))
        time.after(15 * SECOND, () => resolve(0))
      })
    },
  }
}
