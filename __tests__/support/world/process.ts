import { type Clock, HOUR, SECOND } from '../../../lib/base/clock.js'
import {
  createMarketplace,
  type Marketplace,
  MarketplaceError,
  type MarketplaceOptions,
} from '../../../lib/index.js'
import type { Hint, Store } from '../../../lib/store/port/store.js'
import { storeOption } from '../engines/store-option.js'
import type { VirtualClock } from '../machine/virtual-clock.js'
import type { Witness } from '../second-oracle/witness.js'
import { ADDRESSES, CLIENT, DELIVERY_SECRET } from '../settings.js'
import { type DoorReply, knock } from './door.js'
import type { Random } from './random.js'
import type { Sabotage } from './sabotage.js'

// A killed process never releases its hold on the process that it runs in. Here that is the process of the tests.
const { setInterval } = globalThis
globalThis.setInterval = ((callback: () => void, delayMs: number) =>
  setInterval(callback, delayMs).unref()) as typeof setInterval

const RIGHT = `${ADDRESSES.baseUrl} ${ADDRESSES.authUrl} ${CLIENT.clientSecret}`

/** The effect of a call on the database, for the watcher of a world. */
export type CommitListener = (method: keyof Store, args: readonly unknown[], result: unknown) => void

/** A database that a process uses and does not close. */
export const lent = (database: Store): Store => ({ ...database, close: async () => {} })

/**
 * One instance of the package as a process, in virtual time. It can be killed (none of its code runs any more), frozen
 * (it continues later), or cut off from the platform or the store. A call that is under way when its process dies may
 * still reach the database, but the process never gets the result.
 */
export function createProcess(options: {
  name?: string
  time: VirtualClock
  skewMs?: number
  /** Its connection to the database of several processes, or a file: its address, or a store on it. */
  store: Store | string | ((clock: Clock) => Store)
  /** Whether a call of the database may wait for a timer. Else time stands still until its end. */
  storeNeedsTime?: boolean
  fetch: typeof fetch
  settings: Omit<MarketplaceOptions, 'store' | 'clock' | 'platform' | 'deliverySecrets'> & {
    deliverySecrets?: MarketplaceOptions['deliverySecrets']
    platform?: Partial<MarketplaceOptions['platform']>
  }
  sabotage?: Sabotage | undefined
  /** Writes the log of the second oracle. */
  witness?: Witness | undefined
  random?: Random
  /** How long a call of the database is under way before it is made, and after. */
  latencyMs?(): number
  onCommit?: CommitListener
}) {
  const { name = '', time, skewMs = 0, settings, sabotage = {}, random, latencyMs = () => 0 } = options
  const { storeNeedsTime = false, onCommit = () => {} } = options
  let state: 'running' | 'frozen' | 'dead' | 'buried' = 'running'
  let platformCut = 0
  let storeCut = 0
  let frozen = 0
  let troubledUntil = 0
  let waiting: (() => void)[] = []
  const unsubscribes: (() => void)[] = []

  /** Runs code of this process: now, after a freeze, or never. */
  function run(code: () => void) {
    if (state === 'running' || state === 'buried') code()
    else if (state === 'frozen') waiting.push(code)
  }

  const isDead = () => state === 'dead' || state === 'buried'

  function enter(): Promise<void> | undefined {
    if (state === 'running') return undefined
    return new Promise((resolve) => isDead() || run(resolve))
  }

  const storeOf = (real: Store) =>
    new Proxy(real, {
      get(target, method: keyof Store) {
        if (method === 'subscribe') {
          return (listener: (hint: Hint) => void) => {
            const unsubscribe = target.subscribe((hint) => run(() => listener(hint)))
            unsubscribes.push(unsubscribe)
            return unsubscribe
          }
        }
        const inner = target[method] as (...args: unknown[]) => Promise<unknown>
        return (...args: unknown[]) => call(method, inner, args)
      },
    })

  async function call(method: keyof Store, inner: (...args: unknown[]) => Promise<unknown>, args: unknown[]) {
    if (isDead()) return new Promise<never>(() => {})
    const before = latencyMs()
    if (before > 0) {
      await time.sleep(before)
      // When the process dies, its latest calls may or may not have been sent.
      if (isDead() && random?.chance(0.5)) return new Promise<never>(() => {})
    }
    const isCut = storeCut > 0 && method !== 'close'
    if (isCut && random?.chance(0.6)) {
      await time.sleep(random.pick([0, 50, SECOND]))
      await enter()
      throw new MarketplaceError('store_unavailable', 'Cannot use the store: the connection failed')
    }
    let result: unknown
    try {
      const work = inner(...args)
      result = await (storeNeedsTime ? work : time.standStillFor(work))
      onCommit(method, args, result)
    } finally {
      const after = latencyMs()
      if (after > 0) await time.sleep(after)
      const entered = enter()
      if (entered) await entered
    }
    if (isCut && method !== 'open') {
      throw new MarketplaceError('store_unavailable', 'Cannot use the store: the reply was lost')
    }
    return result
  }

  const { app, platform: { baseUrl = ADDRESSES.baseUrl, authUrl = ADDRESSES.authUrl } = {} } = settings
  const isRight = `${baseUrl} ${authUrl} ${app.clientSecret}` === RIGHT
  const seen = options.witness?.process(settings, isRight)
  const reroute = sabotage.fetch ?? ((real) => real)
  const fetchPlatform = reroute(seen?.fetch(options.fetch) ?? options.fetch)
  async function fetchWhileAlive(...[input, init]: Parameters<typeof fetch>): Promise<Response> {
    try {
      if (platformCut === 0) return await fetchPlatform(input, init)
      if (random?.chance(0.5)) throw new TypeError('fetch failed')
      return await new Promise((_resolve, reject) => {
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason), { once: true })
      })
    } finally {
      await enter()
    }
  }

  const broken = (real: Store): Store => (sabotage.store ? { ...real, ...sabotage.store(real) } : real)
  function storeOn(store: typeof options.store, own: Clock) {
    if (typeof store === 'string') return store
    return storeOption(typeof store === 'function' ? broken(store(own)) : storeOf(broken(store)))
  }
  const clock = time.forProcess({ skewMs, enter: run })
  const real: Marketplace = createMarketplace({
    deliverySecrets: DELIVERY_SECRET,
    ...settings,
    ...sabotage.options,
    store: storeOn(options.store, clock),
    clock,
    platform: { ...ADDRESSES, ...settings.platform, fetch: fetchWhileAlive },
  })
  const shown = { ...real, ...sabotage.marketplace?.(real) }
  const marketplace = seen?.marketplace(shown) ?? shown

  /** Applies a change for `forMs`; overlapping changes add up. */
  function during(forMs: number, change: (by: 1 | -1) => void) {
    change(1)
    seen?.trouble(forMs)
    time.after(forMs, () => change(-1))
    troubledUntil = Math.max(troubledUntil, time.now() + forMs)
  }

  return {
    name,
    marketplace,
    run,
    enter,
    skewMs,
    isDead,
    isCutFromStore: () => storeCut > 0,
    /** The time until which the process had a fault; a past time if it has none. */
    troubledUntil: () => troubledUntil,

    kill() {
      seen?.ended()
      state = 'dead'
      waiting = []
      clock.kill()
      for (const unsubscribe of unsubscribes) unsubscribe()
    },
    /** Releases the real resources of a killed process, at the end of its world. */
    async bury() {
      state = 'buried'
      clock.revive()
      await time.until(real.close(), HOUR).catch(() => {})
      clock.kill()
    },
    freeze(forMs: number) {
      during(forMs, (by) => {
        frozen += by
        if (isDead()) return
        state = frozen > 0 ? 'frozen' : 'running'
        if (state === 'frozen') return
        for (const code of waiting.splice(0)) time.after(0, () => run(code))
      })
    },
    cutFromPlatform: (forMs: number) =>
      during(forMs, (by) => {
        platformCut += by
      }),
    cutFromStore: (forMs: number) =>
      during(forMs, (by) => {
        storeCut += by
      }),

    /**
     * Makes one delivery, in pieces. The status is 0 when nobody answers within 15 s, or the connection ends midway.
     * `onReply` gets also a later reply, for which nobody waits any more.
     */
    deliver(
      pieces: readonly string[],
      { isCutOff = false, secret = DELIVERY_SECRET, onReply = (_reply: DoorReply) => {} } = {},
    ): Promise<DoorReply> {
      return new Promise((resolve) => {
        const nobody = () => resolve({ status: 0, text: '' })
        const request = { url: `/${secret}`, pieces, isCutOff }
        const replied = seen?.delivered(pieces.join(''), !isCutOff)
        const answered = (reply: DoorReply) => {
          replied?.(reply)
          onReply(reply)
          resolve(reply)
        }
        run(() => knock(marketplace.router as never, request, answered))
        if (isCutOff) nobody()
        time.after(15 * SECOND, nobody)
      })
    },
  }
}

export type Process = ReturnType<typeof createProcess>
