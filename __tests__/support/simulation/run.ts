import type { AnyEvent, PurchaseChange } from '../../../lib/index.js'
import type { LaneClaim, Store } from '../../../lib/store/port/store.js'
import { internals } from '../internals.js'
import { createVirtualClock } from '../machine/virtual-clock.js'
import { nextAct, PAID_AT_ONCE, standingOf } from '../platform/businesses.js'
import type { Subscription } from '../platform/platform.js'
import { DELIVERY_SECRET } from '../settings.js'
import type { Database } from './database.js'
import { type BrokenPromise, createOracle } from './oracle.js'
import { createRandomPlatform } from './platform.js'
import { createProcess, type Process } from './process.js'
import { type Profile, profileOf } from './profile.js'
import { createRandom } from './random.js'

const ITEM = 'item-ours'
/** After the last fault, all promises must hold within this time. Only an older record may stay for an hour. */
const PATIENCE_MS = 3 * 60 * 60_000
const RETRY_DELAYS_MS = [500, 1_000, 5_000, 20_000]

export interface RunResult {
  seed: number
  failures: readonly BrokenPromise[]
  /** All events in order; equal for two runs of one seed. */
  trace: readonly string[]
  profile: Profile
  /** How long after the last fault every promise held, in virtual time. */
  healedMs: number
  counts: {
    commits: number
    calls: number
    handled: number
    answers: number
    deliveries: number
    processes: number
  }
}

/** A defect in the store of a process, which the run must detect. */
export type Break = (store: Store) => Partial<Store>

/** One run of the whole system. It depends only on its seed. */
export async function simulate(
  seed: number,
  database: Database,
  options: { broken?: Break; tilt?: Partial<Profile>; patienceMs?: number } = {},
): Promise<RunResult> {
  const { broken, tilt, patienceMs = PATIENCE_MS } = options
  const random = createRandom(seed)
  const profile = { ...profileOf(random), ...tilt }
  const { durationMs, isLossy, leaseMs, maxStaleMs } = profile
  let underWay = 0
  // All work of the package is microtasks here, but a group commit begins in the next turn of the event loop.
  const time = createVirtualClock({ isBusy: () => underWay > 0, quietTurns: 1 })
  const counts = { commits: 0, calls: 0, handled: 0, answers: 0, deliveries: 0, processes: 0 }
  const lines: string[] = []
  let isWell = false

  function trace(line: () => string) {
    lines.push(`${time.passed()} ${line()}`)
  }

  // Identifiers are partly random. Their order of appearance is the same in every run of the seed.
  const ordinals = new Map<string, number>()
  const ordinal = (id: string) => {
    if (!ordinals.has(id)) ordinals.set(id, ordinals.size)
    return `#${ordinals.get(id)}`
  }

  const fate = random.fork()
  // The number is bounded, because a change causes reads, and reads cause changes.
  let races = 10
  /** The last reader of a subscription. */
  const readers = new Map<string, Process>()
  const oracle = createOracle({ now: time.now, item: ITEM, handlers: profile.handlers, maxStaleMs, leaseMs })
  const platform = createRandomPlatform({
    time,
    random: random.fork(),
    profile: profile.platform,
    item: ITEM,
    onShown(shown) {
      oracle.onShown(shown)
      if (isWell || races === 0) return
      const reader = readers.get(shown.uid)
      // A reader that is frozen while it holds an answer, until another has read a newer one.
      const isOvertaken = fate.chance(0.05 * profile.disasters)
      if (isOvertaken && reader) {
        trace(() => `freeze of ${reader.name} with ${shown.uid} in its hands`)
        reader.freeze(leaseMs + fate.pick([10, 2_000, 20_000]))
      }
      // A reader most easily loses a change that happens while an answer is under way.
      if (isOvertaken || fate.chance(profile.races)) {
        races--
        time.after(fate.pick([0, 5, 100]), () => change(shown.business, shown.uid))
      }
    },
    onCall: () => void counts.calls++,
    trace,
  })

  // ---- processes

  const slots: (Process | undefined)[] = Array(profile.instances).fill(undefined)
  const all: Process[] = []
  const handlerRandom = random.fork()
  const processRandom = random.fork()

  function start(slot: number) {
    const name = `p${counts.processes++}`
    const process: Process = createProcess({
      name,
      time,
      random: processRandom.fork(),
      profile: profile.store,
      skewMs: processRandom.between(-profile.skewMs, profile.skewMs),
      storeFor(wire) {
        const store = database.storeFor(wire)
        return broken ? { ...store, ...broken(store) } : store
      },
      async follow(work) {
        underWay++
        try {
          return await work
        } finally {
          underWay--
        }
      },
      fetchFor: platform.fetchFor,
      settings: {
        app: { clientId: 'client', clientSecret: 'secret', purchasableUid: ITEM, codeName: 'ours' },
        platform: { baseUrl: 'https://platform.test', authUrl: 'https://auth.test' },
        reads: { concurrency: profile.concurrency },
        ...internals({ pollMs: profile.pollMs, leaseMs, callTimeoutMs: 5_000 }),
        deliverySecrets: DELIVERY_SECRET,
        freshness: { waitMs: profile.waitMs, reconcileEveryMs: profile.reconcileEveryMs, maxStaleMs },
        handlers: { timeoutMs: 5_000, retryDelaysMs: RETRY_DELAYS_MS },
        closeTimeoutMs: 1_000,
      },
      secret: DELIVERY_SECRET,
      isWell: () => isWell,
      onCommit(method, args, result) {
        counts.commits++
        const words = wordsFor(method, args, result)
        if (words !== '') trace(() => `${name} ${method} ${words}`)
        if (method === 'claimReads') for (const { id } of result as { id: string }[]) readers.set(id, process)
        // A kill or a freeze does most harm to newly leased work.
        if (method.startsWith('claim') && words !== '' && !isWell && fate.chance(0.03 * profile.disasters)) {
          time.after(fate.pick([0, 0, 7, 400]), () => disaster(slots.indexOf(process)))
        }
        oracle.onCommit(process, method, args, result)
      },
      announce(hint) {
        for (const other of all) if (other !== process) other.receive(hint)
      },
    })
    for (let handler = 0; handler < profile.handlers; handler++) {
      process.marketplace.onPurchaseChange((change, context) => handle(process, handler, change, context))
    }
    if (profile.handlesEvents) {
      process.marketplace.onAny((event, context) => handleEvent(process, event as AnyEvent, context.signal))
    }
    slots[slot] = process
    all.push(process)
    trace(() => `${name} starts in ${slot}`)
  }

  async function handle(
    process: Process,
    handler: number,
    change: PurchaseChange,
    { signal, attempt }: { signal: AbortSignal; attempt: number },
  ) {
    counts.handled++
    const key = `changes:${change.business_uid}`
    trace(
      () =>
        `${process.name} change ${change.subscription_uid} ${change.from} to ${change.to} in handler ${handler}`,
    )
    const isLastTry = attempt > RETRY_DELAYS_MS.length
    const end = oracle.onHandler(process, handler, key, change.id, signal, isLastTry)
    await behave(process, end)
  }

  async function handleEvent(process: Process, event: AnyEvent, signal: AbortSignal) {
    const { subscription_uid, uid } = event.data as { subscription_uid?: string; uid?: string }
    const named = subscription_uid ?? uid
    if (!named) return
    trace(() => `${process.name} event ${event.name} of ${named}`)
    await behave(process, oracle.onHandler(process, -1, `subscription:${named}`, event.id, signal, false))
  }

  async function behave(process: Process, end: (hasReturned: boolean) => void) {
    const fault = !isWell && handlerRandom.chance(profile.handlerFaults)
    const what = fault ? handlerRandom.pick(['throws', 'throws late', 'hangs', 'is slow']) : 'returns'
    if (what === 'hangs') return await new Promise<never>(() => {})
    const ms = what === 'is slow' ? 7_000 : what === 'throws' ? 0 : handlerRandom.pick([0, 0, 5, 300, 2_000])
    if (ms > 0) {
      await time.sleep(ms)
      await process.enter()
    }
    end(!what.startsWith('throws'))
    if (what.startsWith('throws')) throw new Error('the handler fails now and then')
  }

  // ---- deliveries

  const network = random.fork()
  let held: Envelope[] = []
  let unsettled = 0

  function send(envelope: Envelope) {
    if (isLossy && !isWell && network.chance(0.15)) return trace(() => 'a delivery is lost')
    if (!isWell && network.chance(0.2)) {
      held.push(envelope)
      return
    }
    const envelopes = [...held, envelope]
    held = []
    const copies = !isWell && network.chance(0.2) ? 2 : 1
    for (let copy = 0; copy < copies; copy++) {
      unsettled++
      time.after(isWell ? 0 : network.pick([0, 0, 5, 100, 3_000, 20_000]), () => attempt(envelopes))
    }
  }

  function attempt(envelopes: readonly Envelope[]) {
    counts.deliveries++
    let isSettled = false
    const settle = (status: number) => {
      if (isSettled) return
      isSettled = true
      trace(() => `delivery of ${envelopes.map((each) => each.uid).join()}: ${status}`)
      if (status !== 200 && (!isLossy || network.chance(0.5))) {
        time.after(isWell ? 1_000 : network.pick([500, 5_000, 20_000]), () => attempt(envelopes))
      } else unsettled--
    }
    const process = network.pick(slots)
    if (!process || process.isDead()) return settle(0)
    time.after(15_000, () => settle(0))
    const bodies = envelopes.map((each) => each.body)
    const text = JSON.stringify(bodies.length === 1 ? bodies[0] : bodies)
    const half = network.between(1, text.length - 1)
    const isCutOff = !isWell && network.chance(0.03)
    process.deliver([text.slice(0, half), text.slice(half)], isCutOff, ({ status, text: reply }) => {
      if (status === 200) {
        const { id, ids = [id] } = JSON.parse(reply) as { id: string; ids?: string[] }
        const uids = envelopes.flatMap(({ uid, announces }) => (announces ? [uid] : []))
        oracle.onAcknowledged(ids, uids)
      }
      settle(status)
    })
    if (isCutOff) settle(0)
  }

  // ---- the events of a run

  let purchases = 0

  const businesses = Array.from({ length: profile.businesses }, (_, i) => `b${i}`)

  function emit(uid: string, businessUid: string, emits: string | null | undefined) {
    if (!emits) return
    const isFirst = emits.endsWith('create')
    const event_type = isFirst ? 'created' : 'update'
    const notice = { subscription_uid: uid, business_id: businessUid, purchasable_uid: ITEM }
    const data =
      isFirst && fate.chance(0.3)
        ? platform.recordOf(platform.subscriptions.get(uid) as Subscription)
        : notice
    send({ uid, announces: true, body: { entity_name: 'purchasable_subscription', event_type, data } })
  }

  const payments = {
    buys(businessUid: string) {
      const uid = `${businessUid}-s${purchases++}`
      const condition = fate.chance(PAID_AT_ONCE) ? 'Payment succeeded' : 'Payment failed'
      emit(uid, businessUid, platform.step(uid, businessUid, 'User purchases an app', condition))
    },
    pays: (businessUid: string, uid: string) =>
      emit(uid, businessUid, platform.step(uid, businessUid, 'Payment confirmation received')),
    'misses a payment': (businessUid: string, uid: string) =>
      emit(uid, businessUid, platform.step(uid, businessUid, 'Payment issue received')),
  }
  const acts = {
    ...payments,
    cancels: (businessUid: string, uid: string) =>
      emit(uid, businessUid, platform.step(uid, businessUid, 'User cancels the app subscription')),
    uninstalls(businessUid: string) {
      const touched = platform.uidsOf(businessUid).filter((uid) => !platform.state(uid)?.startsWith('cancel'))
      platform.uninstall(businessUid)
      for (const uid of touched) emit(uid, businessUid, 'update')
      installed(businessUid, false)
    },
    returns(businessUid: string) {
      platform.install(businessUid)
      installed(businessUid, true)
      payments.buys(businessUid)
    },
  }

  function act(businessUid: string) {
    const uid = anyOf(businessUid)
    const standing = platform.isRefused(businessUid) ? 'gone' : standingOf(uid && platform.state(uid))
    acts[nextAct(fate.next, standing, acts, WEIGHTS)](businessUid, uid ?? '')
  }

  /** A purchase, or a payment that succeeds or fails. */
  function change(businessUid: string, uid = anyOf(businessUid)) {
    if (platform.isRefused(businessUid) || (!uid && platform.uidsOf(businessUid).length > 3)) return
    payments[nextAct(fate.next, standingOf(uid && platform.state(uid)), payments)](businessUid, uid ?? '')
  }

  function anyOf(businessUid: string): string | undefined {
    const uids = platform.uidsOf(businessUid)
    return uids.length === 0 || fate.chance(0.1) ? undefined : fate.pick(uids)
  }

  function installed(businessUid: string, isInstalled: boolean) {
    const event_type = isInstalled ? 'installed' : 'uninstalled'
    const data = {
      business_id: businessUid,
      app_code_name: 'ours',
      event_time: new Date(time.now()).toISOString(),
    }
    send({ uid: businessUid, announces: false, body: { entity_name: 'application', event_type, data } })
  }

  function forge(businessUid: string) {
    const [known = `${businessUid}-forged`] = platform.uidsOf(businessUid)
    const uid = fate.pick([known, `${businessUid}-forged`, `${businessUid}-main`])
    const item = uid.endsWith('main') ? 'main-plan' : ITEM
    const record = {
      uid,
      business_uid: businessUid,
      purchasable_uid: item,
      purchase_state: 'purchased',
      updated_at: '2999-01-01T00:00:00.000Z',
    }
    const event_type = fate.pick(['created', 'update'])
    const body = { entity_name: 'purchasable_subscription', event_type, data: record }
    send({ uid, announces: false, body })
  }

  function ask(businessUid: string) {
    const process = fate.pick(slots)
    process?.run(() => {
      process.marketplace.isEntitled(businessUid).then((entitled) => {
        counts.answers++
        trace(() => `${process.name} answers ${businessUid} ${entitled}`)
        oracle.onAnswer(process, businessUid, entitled)
      })
    })
  }

  function step() {
    const businessUid = fate.pick(businesses)
    const what = fate.choose(ORDINARY)
    switch (what) {
      case 'act':
        return act(businessUid)
      case 'flurry':
        // About as long as a read or two: a delivery during a read must not be lost.
        for (let ms = 0; ms < 5_000; ms += fate.pick([1, 30, 200, 700, 2_000])) {
          time.after(ms, () => change(businessUid))
        }
        return
      case 'forge':
        return forge(businessUid)
      case 'ask':
        return ask(businessUid)
      case 'refresh': {
        const process = fate.pick(slots)
        return process?.run(() => void process.marketplace.businesses.refresh(businessUid).catch(() => {}))
      }
      case 'track': {
        const [subscription_uid] = platform.uidsOf(businessUid)
        const process = fate.pick(slots)
        if (!subscription_uid) return
        return process?.run(
          () =>
            void process.marketplace.subscriptions
              .track({ subscriptionUid: subscription_uid, businessUid })
              .catch(() => {}),
        )
      }
    }
  }

  function disaster(slot = fate.between(0, slots.length - 1)) {
    const process = slots[slot]
    if (!process || isWell) return
    const forMs = fate.pick([500, 3_000, leaseMs, 2 * leaseMs, 90_000])
    const what = fate.choose(DISASTERS)
    trace(() => `${what} of ${process.name} for ${forMs} ms`)
    switch (what) {
      case 'kill':
        process.kill()
        return restart(slot, fate.pick([0, 10, 3_000, 40_000]))
      case 'close':
        process.run(() => void process.marketplace.close().then(() => process.kill()))
        return restart(slot, 3_000)
      case 'freeze':
        return process.freeze(forMs)
      case 'cut from platform':
        return process.cutFromPlatform(forMs)
      case 'cut from store':
        return process.cutFromStore(forMs)
    }
  }

  function restart(slot: number, inMs: number) {
    slots[slot] = undefined
    time.after(inMs, () => start(slot))
  }

  // ---- the run
  //
  // The package spreads its pauses with Math.random, warns of stores that do not open, and keeps its process alive.
  const real = {
    random: Math.random,
    emitWarning: globalThis.process.emitWarning,
    setInterval: globalThis.setInterval,
  }
  Math.random = random.fork().next
  globalThis.process.emitWarning = () => {}
  globalThis.setInterval = ((...given: Parameters<typeof setInterval>) =>
    real.setInterval(...given).unref()) as typeof setInterval
  try {
    await database.begin(time.now)
    for (let slot = 0; slot < slots.length; slot++) start(slot)
    await time.rest()
    for (let i = 0; i < profile.steps; i++) time.after(fate.next() * durationMs, step)
    for (let i = 0; i < profile.steps; i++) {
      time.after(fate.next() * durationMs, () => ask(fate.pick(businesses)))
    }
    const disasters = Math.round((profile.disasters * profile.steps) / 10)
    for (let i = 0; i < disasters; i++) time.after(fate.next() * durationMs, () => disaster())
    await time.advance(durationMs)

    isWell = true
    platform.heal()
    for (const envelope of held.splice(0)) send(envelope)
    const healedAt = time.now()
    let open: string | undefined
    do {
      await time.advance(time.now() - healedAt < 120_000 ? 15_000 : 120_000)
      for (const business of businesses) ask(business)
      await time.rest()
      open = unsettled > 0 ? 'deliveries are under way' : await oracle.unfinished(database, platform)
    } while (open && oracle.failures.length === 0 && time.now() - healedAt < patienceMs)
    const healedMs = time.now() - healedAt
    if (open) oracle.giveUp(open)
    else await oracle.checkEnd(database)
    // The caches have expired, so every process answers from the store.
    await time.advance(15_000)
    for (const business of businesses) for (let i = 0; i < slots.length; i++) ask(business)
    await time.rest()
    return { seed, failures: oracle.failures, trace: lines, profile, healedMs, counts }
  } finally {
    for (const process of all) process.kill()
    await time.rest()
    Math.random = real.random
    globalThis.process.emitWarning = real.emitWarning
    globalThis.setInterval = real.setInterval
  }

  function wordsFor(method: keyof Store, args: readonly unknown[], result: unknown): string {
    if (method === 'finishRead') {
      const [{ id }, { found, failure, nextInMs }] = args as Parameters<Store['finishRead']>
      return `${id} ${found?.state} ${found?.record?.updated_at} ${failure} ${nextInMs} ${result}`
    }
    if (method === 'claimSuspectRead') return String((result as { id: string } | undefined)?.id)
    if (method === 'claimReads') return (result as { id: string }[]).map(({ id }) => id).join()
    if (method === 'claimLanes' || method === 'claimSuspectLane') {
      return ([result ?? []].flat() as LaneClaim[])
        .map(({ id: key, entries }) => entries.map(({ id }) => ordinal(id)).join('+') + key)
        .join()
    }
    if (method === 'accept') {
      return (args[0] as { id: string; name: string; key: string }[])
        .map(({ id, name, key }) => `${ordinal(id)}${name}${key === id ? '' : key}`)
        .join()
    }
    if (method === 'finishLanes') {
      const [finishes] = args as Parameters<Store['finishLanes']>
      const words = finishes.flatMap(({ results }) =>
        results.map(({ id, result: { kind } }) => `${ordinal(id)}${kind}`),
      )
      return words.join() + (result as string[]).length
    }
    return ''
  }
}

interface Envelope {
  uid: string
  /** Makes the subscription known. */
  announces: boolean
  body: unknown
}

const ORDINARY = {
  act: 13,
  flurry: 2,
  forge: 1,
  ask: 3,
  refresh: 1,
  track: 0.5,
} as const

/** A world has few steps, and its businesses are few: most go on as customers. */
const WEIGHTS = { uninstalls: 0.04, cancels: 0.04 }

const DISASTERS = { kill: 3, close: 1, freeze: 3, 'cut from platform': 2, 'cut from store': 2 } as const
