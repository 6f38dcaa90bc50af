import { HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { AnyEvent, PurchaseChange } from '../../../lib/index.js'
import type { Hint } from '../../../lib/store/port/store.js'
import { internals } from '../internals.js'
import { createVirtualClock } from '../machine/virtual-clock.js'
import { stillUnequal } from '../second-oracle/expected.js'
import { judge } from '../second-oracle/judge.js'
import { examine } from '../second-oracle/lives/lives.js'
import type { Observation } from '../second-oracle/log.js'
import { createWitness } from '../second-oracle/witness.js'
import { CLIENT, OUR_ITEM } from '../settings.js'
import { createCommerce } from '../world/commerce.js'
import type { Database, Wire } from '../world/database.js'
import { createDeliverer, type Network } from '../world/deliverer.js'
import { createProcess, type Process } from '../world/process.js'
import { type Broken, createVerdict, type Tally } from '../world/promises.js'
import { createRandom, drawingFrom } from '../world/random.js'
import type { Sabotage } from '../world/sabotage.js'
import { createOracle } from './oracle.js'
import { createRandomPlatform } from './platform.js'
import { type Profile, profileOf } from './profile.js'
import { createTrace } from './trace.js'

/** After the last fault, all promises must hold within this time. Only an older record may stay for an hour. */
const PATIENCE_MS = 3 * HOUR
/**
 * The last fault of a process has ended within this time after the healing, the lease that it held has run out, and
 * another process has made its reads.
 */
const RECOVERED_MS = 5 * MINUTE
/** So often a world is followed by a short life of the second oracle. */
export const LIVES_EVERY = 10
const RETRY_DELAYS_MS = [500, 1_000, 5_000, 20_000]

export interface RunResult {
  seed: number
  broken: readonly Broken[]
  /** The command that repeats this world. */
  command: string
  tally: Tally
  /** All events in order; equal for two runs of one seed. */
  trace: readonly string[]
  profile: Profile
  /** What the second oracle has judged. */
  log: readonly Observation[]
  /** What the first oracle has found, also if only the second judges. */
  ofFirst: readonly Broken[]
}

/** One run of the whole system. It depends only on its seed. */
export async function simulate(
  seed: number,
  database: Database,
  options: {
    sabotage?: Sabotage
    tilt?: Partial<Profile>
    patienceMs?: number
    /** Whether only the second oracle judges. */
    isFirstAway?: boolean
  } = {},
): Promise<RunResult> {
  const { sabotage, tilt, patienceMs = PATIENCE_MS, isFirstAway = false } = options
  const random = createRandom(seed)
  const profile = { ...profileOf(random), ...tilt }
  const { durationMs, isLossy, leaseMs, maxStaleMs } = profile
  // All work of the package is microtasks here, but a group commit begins in the next turn of the event loop.
  const time = createVirtualClock({ quietTurns: 1 })
  let processes = 0
  let unanswered = 0
  const { lines, trace, wordsFor } = createTrace(time)
  let isWell = false

  const fate = random.fork()
  // The number is bounded, because a change causes reads, and reads cause changes.
  let races = 10
  /** The last reader of a subscription. */
  const readers = new Map<string, Process>()
  const verdict = createVerdict(() => `at ${time.passed() / SECOND} s`)
  const ofFirst = isFirstAway ? createVerdict(() => '') : verdict
  const witness = createWitness(time)
  const realPlatform = createRandomPlatform({
    time,
    random: random.fork(),
    profile: profile.platform,
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
        time.after(fate.pick([0, 5, 100]), () => customers.pay(shown.business, shown.uid))
      }
    },
    trace,
  })
  const platform = witness.platform(realPlatform)
  const oracle = createOracle({
    ...{ time, verdict: ofFirst, platform, database, handlers: profile.handlers, maxStaleMs, leaseMs },
  })

  // ---- processes

  const slots: (Process | undefined)[] = Array(profile.instances).fill(undefined)
  const handlerRandom = random.fork()
  const processRandom = random.fork()

  const { latenciesMs, hints } = profile.store
  /** What each process hears of the commits of others. */
  const ears = new Map<Process, (hint: Hint) => void>()

  function announce(from: Process, hint: Hint) {
    for (const [other, hear] of ears) {
      if (other === from || hints === 'never') continue
      time.after(hints === 'late' ? 500 : 1, () => other.isCutFromStore() || hear(hint))
    }
  }

  function start(slot: number) {
    const name = `p${processes++}`
    const own = processRandom.fork()
    const skewMs = processRandom.between(-profile.skewMs, profile.skewMs)
    let watched = (_hint: Hint) => {}
    const wire: Wire = {
      announce: (hint) => announce(process, hint),
      watch(onHint) {
        watched = onHint
      },
    }
    const process: Process = createProcess({
      ...{ name, time, random: own, sabotage, witness, fetch: platform.fetch },
      latencyMs: () => (isWell ? 0 : own.pick(latenciesMs)),
      skewMs,
      store: database.storeFor(wire, time.forProcess({ skewMs })),
      settings: {
        app: { ...CLIENT, purchasableUid: OUR_ITEM, codeName: 'ours' },
        reads: { concurrency: profile.concurrency },
        ...internals({ pollMs: profile.pollMs, leaseMs, callTimeoutMs: 5 * SECOND }),
        freshness: { waitMs: profile.waitMs, reconcileEveryMs: profile.reconcileEveryMs, maxStaleMs },
        handlers: { timeoutMs: 5 * SECOND, retryDelaysMs: RETRY_DELAYS_MS },
        closeTimeoutMs: SECOND,
      },
      onCommit(method, args, result) {
        const words = wordsFor(method, args, result)
        if (words !== '') trace(() => `${name} ${method} ${words}`)
        if (method === 'claimReads') for (const { id } of result as { id: string }[]) readers.set(id, process)
        // A kill or a freeze does most harm to newly leased work.
        if (method.startsWith('claim') && words !== '' && !isWell && fate.chance(0.03 * profile.disasters)) {
          time.after(fate.pick([0, 0, 7, 400]), () => disaster(slots.indexOf(process)))
        }
        oracle.onCommit(process, method, args, result)
      },
    })
    ears.set(process, (hint) => watched(hint))
    for (let handler = 0; handler < profile.handlers; handler++) {
      process.marketplace.onPurchaseChange((change, context) => handle(process, handler, change, context))
    }
    process.marketplace.onEntitlementChange(() => {})
    if (profile.handlesEvents) {
      process.marketplace.onAny((event, context) => handleEvent(process, event as AnyEvent, context.signal))
    }
    slots[slot] = process
    trace(() => `${name} starts in ${slot}`)
  }

  async function handle(
    process: Process,
    handler: number,
    change: PurchaseChange,
    { signal, attempt }: { signal: AbortSignal; attempt: number },
  ) {
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

  // ---- businesses and their deliveries

  const network = random.fork()
  const weather: Network = {
    lost: isLossy ? 0.15 : 0,
    held: 0.2,
    doubled: 0.2,
    copies: 2,
    delayMs: () => (isWell ? 0 : network.pick([0, 0, 5, 100, 3_000, 20_000])),
    againMs: () =>
      isLossy && network.chance(0.5) ? undefined : isWell ? SECOND : network.pick([500, 5_000, 20_000]),
  }
  const deliverer = createDeliverer({
    ...{ time, random: network, network: weather },
    async reach(body) {
      const process = network.pick(slots)
      if (!process || process.isDead()) return { status: 0, text: '' }
      const half = network.between(1, body.length - 1)
      const isCutOff = !isWell && network.chance(0.03)
      const reply = await process.deliver([body.slice(0, half), body.slice(half)], {
        isCutOff,
        onReply: oracle.onReply,
      })
      trace(() => `delivery of ${body.length} bytes: ${reply.status}`)
      return reply
    },
    onTaken: (deliveries) => oracle.onAnnounced(deliveries.flatMap(({ uid }) => uid ?? [])),
  })
  const businesses = Array.from({ length: profile.businesses }, (_, i) => `b${i}`)
  const customers = createCommerce({
    ...{ platform, deliverer, random: fate, weights: WEIGHTS, withRecord: 0.3 },
    // Businesses gather subscriptions, of all states.
    choose: (own) => (own.length === 0 || fate.chance(0.1) ? undefined : fate.pick(own)),
  })

  // ---- the events of a run

  function forge(business: string) {
    const [known = `${business}-forged`] = uidsOf(business)
    const uid = fate.pick([known, `${business}-forged`, `${business}-main`])
    const record = {
      uid,
      business_uid: business,
      purchasable_uid: uid.endsWith('main') ? 'main-plan' : OUR_ITEM,
      purchase_state: 'purchased',
      updated_at: '2999-01-01T00:00:00.000Z',
    }
    const event_type = fate.pick(['created', 'update'])
    void deliverer.send({
      business,
      body: { entity_name: 'purchasable_subscription', event_type, data: record },
    })
  }

  const uidsOf = (business: string) => platform.of(business).map(({ uid }) => uid)

  function ask(businessUid: string) {
    const process = fate.pick(slots)
    if (!process || process.isDead()) return ofFirst.skipped('follow', 'no process was up')
    unanswered++
    process.run(() => {
      process.marketplace.isEntitled(businessUid).then((entitled) => {
        unanswered--
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
        return customers.act(businessUid)
      case 'flurry':
        // About as long as a read or two: a delivery during a read must not be lost.
        for (let ms = 0; ms < 5_000; ms += fate.pick([1, 30, 200, 700, 2_000])) {
          time.after(ms, () => customers.pay(businessUid))
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
        const [subscription_uid] = uidsOf(businessUid)
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

  function stillUnderWay(): string | undefined {
    if (deliverer.underWay() > 0) return 'deliveries are under way'
    // An older record may equal the last one, and so may the answers, until a read shows one between them.
    if (realPlatform.isHiding()) return 'the platform lags'
    // It answers, and takes deliveries, after its fault.
    return slots.some((process) => process && process.troubledUntil() > time.now())
      ? 'a process has a fault'
      : undefined
  }

  // ---- the run
  //
  const stopDrawing = drawingFrom(random.fork().next)
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
    realPlatform.heal()
    witness.note({ kind: 'healed' })
    Object.assign(weather, { lost: 0, held: 0, doubled: 0 })
    deliverer.release()
    const healedAt = time.now()
    let open: string | undefined
    let unequal: ReturnType<typeof stillUnequal>
    do {
      await time.advance(time.now() - healedAt < 120_000 ? 15_000 : 120_000)
      for (const business of businesses) ask(business)
      await time.rest()
      open = stillUnderWay() ?? (await oracle.unfinished())
      unequal = stillUnequal(witness.log)
    } while ((open || unequal) && verdict.broken.length === 0 && time.now() - healedAt < patienceMs)
    if (open) ofFirst.fail('equal', open)
    else await oracle.checkEnd()
    // The caches have expired, so every process answers from the store. While a process that is still frozen or cut off
    // holds a read, its business may become stale meanwhile.
    do {
      await time.advance(15_000)
      for (const business of businesses) for (let i = 0; i < slots.length; i++) ask(business)
      await time.rest()
      unequal = stillUnequal(witness.log)
    } while (unequal?.isOpen && verdict.broken.length === 0 && time.now() - healedAt < RECOVERED_MS)
    for (; unanswered > 0; unanswered--) ofFirst.skipped('follow', 'nobody answered')
    witness.note({ kind: 'end' })
    if (unequal)
      verdict.fail(
        'documented',
        `When the platform answers, the database becomes equal to it: ${unequal.why}`,
      )
    verdict.made('documented')
    for (const { at, heading, message } of judge(witness.log, exactnessOf(profile))) {
      verdict.fail('documented', `${heading}: ${message} (at ${at / SECOND} s)`)
    }
    if (seed % LIVES_EVERY === 0) {
      for (const process of ears.keys()) process.kill()
      for (const { heading, message } of await examine(seed / LIVES_EVERY, database, sabotage))
        verdict.fail('documented', `${heading}: ${message}`)
    }
    for (const each of new Set([verdict, ofFirst])) each.close([])
    const command = `npm run simulate -- --seed ${seed}`
    return { seed, command, ...verdict, trace: lines, profile, log: witness.log, ofFirst: ofFirst.broken }
  } finally {
    for (const process of ears.keys()) process.kill()
    await time.rest()
    stopDrawing()
  }
}

const exactnessOf = ({ store, skewMs, pollMs }: Profile) => ({
  // Without notifications, a process finds the work of others when it looks for it.
  lateMs: store.hints === 'at once' ? 0 : pollMs,
  ...{ storeMs: Math.max(...store.latenciesMs), skewMs: 2 * skewMs, isForged: false },
})

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
