import {
  createMarketplace,
  type Marketplace,
  MarketplaceError,
  type MarketplaceOptions,
} from '../../../lib/index.js'
import type { Hint, Store } from '../../../lib/store/port/store.js'
import { storeOption } from '../engines/store-option.js'
import type { VirtualClock } from '../machine/virtual-clock.js'
import type { Wire } from './database.js'
import { type DoorReply, knock } from './door.js'
import type { Random } from './random.js'

export interface StoreProfile {
  latenciesMs: readonly number[]
  /** When a process gets the notifications of other processes' commits. */
  hints: 'at once' | 'late' | 'never'
}

/** The effect of a call on the database, for the watcher of a run. */
export type CommitListener = (method: keyof Store, args: readonly unknown[], result: unknown) => void

/**
 * One instance of the package as a process. It can be killed (none of its code runs any more), frozen (it continues
 * later), or cut off from the platform or the store. A call that is under way when its process dies may still reach the
 * database, but the process never gets the result.
 */
export function createProcess(options: {
  name: string
  time: VirtualClock
  random: Random
  profile: StoreProfile
  skewMs: number
  storeFor(wire: Wire): Store
  /** Sends its notifications to the other processes. */
  announce(hint: Hint): void
  /** Counts `work` as a call under way in the database. */
  follow<T>(work: Promise<T>): Promise<T>
  fetchFor(process: { isCutOff(): boolean; enter(): Promise<void> | undefined }): typeof fetch
  settings: Omit<MarketplaceOptions, 'store' | 'clock' | 'platform'> & {
    platform: Omit<MarketplaceOptions['platform'], 'fetch'>
  }
  secret: string
  onCommit: CommitListener
  isWell(): boolean
}) {
  const { name, time, random, profile, skewMs, storeFor, follow, settings, secret, onCommit, isWell } =
    options
  let state: 'running' | 'frozen' | 'dead' = 'running'
  let platformCut = 0
  let storeCut = 0
  let frozen = 0
  let troubledUntil = 0
  let onHint: ((hint: Hint) => void) | undefined
  let waiting: (() => void)[] = []

  /** Runs code of this process: now, after a freeze, or never. */
  function run(code: () => void) {
    if (state === 'running') code()
    else if (state === 'frozen') waiting.push(code)
  }

  const isDead = () => state === 'dead'

  function enter(): Promise<void> | undefined {
    return state === 'running' ? undefined : new Promise((resolve) => run(resolve))
  }

  function storeOf(): Store {
    const real = storeFor({
      announce: options.announce,
      watch(listener) {
        onHint = listener
      },
    })
    const own = {
      subscribe: (listener: (hint: Hint) => void) => real.subscribe((hint) => run(() => listener(hint))),
      problem: async () => null,
      readFirst: async () => {},
    } satisfies Partial<Store>
    const calls = Object.entries(real).map(([method, inner]) => [
      method,
      (...args: unknown[]) => call(method as keyof Store, inner, args),
    ])
    return { ...Object.fromEntries(calls), ...own }
  }

  async function call(method: keyof Store, inner: (...args: unknown[]) => Promise<unknown>, args: unknown[]) {
    if (isDead()) return new Promise<never>(() => {})
    const before = latency()
    if (before > 0) {
      await time.sleep(before)
      // When the process dies, its latest calls may or may not have been sent.
      if (isDead() && random.chance(0.5)) return new Promise<never>(() => {})
    }
    const isCut = storeCut > 0 && method !== 'close'
    if (isCut && random.chance(0.6)) {
      await time.sleep(random.pick([0, 50, 1_000]))
      await enter()
      throw new MarketplaceError('store_unavailable', 'Cannot use the store: the connection failed')
    }
    let result: unknown
    try {
      result = await follow(inner(...args))
      onCommit(method, args, result)
    } finally {
      const after = latency()
      if (after > 0) await time.sleep(after)
      const entered = enter()
      if (entered) await entered
    }
    if (isCut && method !== 'open') {
      throw new MarketplaceError('store_unavailable', 'Cannot use the store: the reply was lost')
    }
    return result
  }

  function latency(): number {
    return isWell() ? 0 : random.pick(profile.latenciesMs)
  }

  const fetch = options.fetchFor({ isCutOff: () => platformCut > 0, enter })
  const marketplace: Marketplace = createMarketplace({
    ...settings,
    store: storeOption(storeOf()),
    clock: time.forProcess({ skewMs, enter: run }),
    platform: { ...settings.platform, fetch },
  })

  /** Applies a change for `forMs`; overlapping changes add up. */
  function during(forMs: number, change: (by: 1 | -1) => void) {
    change(1)
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
    isRunning: () => state === 'running',
    /** The time until which the process had a fault; a past time if it has none. */
    troubledUntil: () => troubledUntil,

    kill() {
      state = 'dead'
      waiting = []
    },
    freeze(forMs: number) {
      during(forMs, (by) => {
        frozen += by
        if (state === 'dead') return
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

    /** Delivers a notification of another process after a random delay. */
    receive(hint: Hint) {
      if (profile.hints === 'never' || isDead()) return
      time.after(profile.hints === 'late' ? 500 : 1, () => {
        if (storeCut === 0) run(() => onHint?.(hint))
      })
    },

    deliver(pieces: readonly string[], isCutOff: boolean, onReply: (reply: DoorReply) => void) {
      run(() => knock(marketplace.router as never, { url: `/${secret}`, pieces, isCutOff }, onReply))
    },
  }
}

export type Process = ReturnType<typeof createProcess>
