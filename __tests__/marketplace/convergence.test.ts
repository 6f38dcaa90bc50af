import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals'
import express from 'express'
import fc from 'fast-check'
import { DAY, HOUR, MINUTE, SECOND } from '../../lib/base/clock.js'
import type { PurchaseChange } from '../../lib/index.js'
import type { Subscription } from '../../lib/store/port/store.js'
import { sampleDelivery } from '../../lib/testing/index.js'
import { temporaryFolder } from '../support/clean-up.js'
import { internals } from '../support/internals.js'
import { CALL_FAULTS } from '../support/platform/failing-platform.js'
import { createReceiverLives } from '../support/receiving/receiver-lives.js'
import { deliver } from '../support/scene.js'
import { DELIVERY_SECRET, OUR_ITEM } from '../support/settings.js'

/** Two subscriptions of one business and one of another are enough for every interaction between them. */
const BUSINESS_OF: Record<string, string> = { s1: 'b1', s2: 'b1', s3: 'b2' }
const UIDS = Object.keys(BUSINESS_OF)
const BUSINESSES = ['b1', 'b2']

const LAGS_MS = [0, 400, 3_000, 20_000]
const LATENCIES_MS = [0, 10, 200, 2_000]
/** The pause after each command. A look for work takes up to 10 ms, a token and a read 10 ms each. */
const PAUSES_MS = [0, 0, 1, 12, 25, 40, 400, 6_000]

/** The events on the platform, on the network, and of the receiver, each with its frequency. */
function anyCommands({ lags, drops }: { lags: number; drops: number }) {
  const uid = fc.constantFrom(...UIDS)
  const which = fc.nat(20)
  const command = fc.oneof(
    often(12, fc.record({ do: fc.constant('change' as const), uid, pays: fc.boolean() })),
    often(2, fc.record({ do: fc.constantFrom('confirm' as const, 'issue' as const), uid })),
    often(1, fc.record({ do: fc.constant('cancel' as const), uid })),
    often(10, fc.record({ do: fc.constantFrom('deliver' as const, 'repeat' as const), which })),
    often(3, fc.record({ do: fc.constant('deliver all' as const) })),
    often(drops, fc.record({ do: fc.constant('drop' as const), which })),
    often(1, fc.record({ do: fc.constant('forge' as const), uid, whole: fc.boolean() })),
    often(2, fc.record({ do: fc.constant('slow' as const), ms: fc.constantFrom(...LATENCIES_MS) })),
    often(lags, fc.record({ do: fc.constant('lag' as const), ms: fc.constantFrom(...LAGS_MS) })),
    often(
      3,
      fc.record({
        do: fc.constant('fail' as const),
        fault: fc.constantFrom(...CALL_FAULTS),
        times: fc.integer({ min: 1, max: 4 }),
      }),
    ),
    often(2, fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom<number>(15_000, 90_000) })),
    often(
      3,
      fc.record({
        do: fc.constant('restart' as const),
        how: fc.constantFrom('kill' as const, 'close' as const),
      }),
    ),
    often(1, fc.record({ do: fc.constant('refresh' as const), uid })),
  )
  return fc.array(fc.tuple(command, fc.constantFrom(...PAUSES_MS)), { maxLength: 40, size: 'max' })
}

function often<T>(weight: number, arbitrary: fc.Arbitrary<T>) {
  return { weight, arbitrary }
}

type Command = ReturnType<typeof anyCommands> extends fc.Arbitrary<[infer C, number][]> ? C : never

const CHANGE: Command = { do: 'change', uid: 's1', pays: true }
const DELIVER: Command = { do: 'deliver all' }
const REPEAT: Command = { do: 'repeat', which: 1 }

let url = ''
let receive: express.RequestHandler = () => {}
const server = createServer(express().use('/hooks', (req, res, next) => receive(req, res, next)))

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks/${DELIVERY_SECRET}`
})
afterAll(() => {
  server.close()
  server.closeAllConnections()
})
afterEach(() => void jest.restoreAllMocks())

jest.setTimeout(90 * SECOND)

describe('D5, D19 after any events on the platform and on the network', () => {
  it('a refresh makes the store equal the platform once the faults have ended', async () => {
    await check(40, async (run) => {
      await run.advance(30 * SECOND)
      await run.refreshAll()
      await run.advance(10 * MINUTE)
      await run.expectEqual(UIDS)
      run.expectChangesInOrder()
    })
  })

  it('the reconcile alone makes them equal, with or without lost events', async () => {
    await check(
      15,
      async (run) => {
        await run.advance(15 * MINUTE)
        await run.expectEqual(UIDS)
        run.expectChangesInOrder()
      },
      { reconcileEveryMs: 5 * MINUTE, drops: 8 },
    )
  })

  it('a delivered event is read until its change shows: soon, and without a refresh or reconcile if no event was lost', async () => {
    await check(
      40,
      async (run) => {
        await run.advance(25 * MINUTE)
        await run.expectEqual(UIDS.filter((each) => !run.lost.has(each)))
      },
      { lags: 8 },
    )
  })

  const stories: [string, Command[], { reconcileEveryMs?: number }?][] = [
    [
      'D7 two simultaneous events, with a read that lags between them',
      [CHANGE, { do: 'lag', ms: 3_000 }, CHANGE, DELIVER, { do: 'wait', ms: HOUR }],
    ],
    [
      'D2 an event during a read',
      [
        CHANGE,
        { do: 'slow', ms: 2_000 },
        DELIVER,
        { do: 'wait', ms: 3_000 },
        CHANGE,
        DELIVER,
        { do: 'wait', ms: HOUR },
      ],
    ],
    [
      'D9 a read that shows an older record again',
      [
        CHANGE,
        CHANGE,
        DELIVER,
        { do: 'wait', ms: 100 },
        { do: 'fail', fault: 'older', times: 1 },
        REPEAT,
        { do: 'wait', ms: 100 },
        { do: 'wait', ms: HOUR },
      ],
    ],
    [
      'D10 a lost event, by the reconcile',
      [CHANGE, DELIVER, { do: 'wait', ms: HOUR }, CHANGE, { do: 'drop', which: 0 }, { do: 'wait', ms: HOUR }],
      { reconcileEveryMs: HOUR / 2 },
    ],
    [
      'an outage that lasts for many tries',
      [{ do: 'fail', fault: 'network', times: 25 }, CHANGE, DELIVER, { do: 'wait', ms: 2 * HOUR }],
    ],
    [
      'an end of the process during a read',
      [
        CHANGE,
        { do: 'slow', ms: 2_000 },
        DELIVER,
        { do: 'wait', ms: 1_000 },
        { do: 'restart', how: 'kill' },
        { do: 'wait', ms: HOUR },
      ],
    ],
  ]
  it.each(stories)(
    '%s: the store equals the platform',
    async (_what, story, { reconcileEveryMs = DAY } = {}) => {
      const run = await begin(':memory:', 1, reconcileEveryMs)
      for (const each of story) await run.perform(each)
      await run.expectEqual(UIDS)
      run.expectChangesInOrder()
      await run.end()
    },
  )

  it('a receiver that is killed and restarted on the same file continues', async () => {
    const inFile = () => join(temporaryFolder(), 'm.db')
    await check(
      8,
      async (run) => {
        await run.advance(30 * SECOND)
        await run.refreshAll()
        await run.advance(10 * MINUTE)
        await run.expectEqual(UIDS)
        run.expectChangesInOrder()
      },
      { path: inFile },
    )
  })
})

/**
 * Runs any commands, then a calm period. `inTheEnd` checks the promises for the end. fast-check prints the seed of a
 * failure, also when that run does not end. A slow machine makes fewer runs in its time, but at least a quarter.
 */
async function check(
  numRuns: number,
  inTheEnd: (run: Run) => Promise<void>,
  { path = (): string => ':memory:', reconcileEveryMs = DAY, lags = 3, drops = 1 } = {},
) {
  const begun = Date.now()
  let made = 0
  const property = fc.asyncProperty(anyCommands({ lags, drops }), fc.integer(), async (list, random) => {
    if (made >= numRuns / 4 && Date.now() - begun > 30 * SECOND) return
    made++
    const run = await begin(path(), random, reconcileEveryMs)
    try {
      for (const [each, pauseMs] of list) await run.perform(each, pauseMs)
      await run.calm()
      await inTheEnd(run)
    } finally {
      await run.end()
    }
  })
  await fc.assert(property, { numRuns, timeout: 30 * SECOND })
}

type Run = Awaited<ReturnType<typeof begin>>

async function begin(path: string, random: number, reconcileEveryMs: number) {
  jest.spyOn(Math, 'random').mockImplementation(mulberry32(random))
  const changes: PurchaseChange[] = []
  const handlerFails = mulberry32(random + 1)
  const lives = await createReceiverLives({
    path,
    onPurchaseChange(change) {
      if (handlerFails() < 0.3) throw new Error('the handler fails now and then')
      changes.push(change)
    },
    marketplace: {
      app: { clientId: 'c', clientSecret: 's', purchasableUid: OUR_ITEM },
      deliverySecrets: DELIVERY_SECRET,
      freshness: { waitMs: 0, reconcileEveryMs },
      handlers: { retryDelaysMs: Array(50).fill(15 * SECOND) },
      ...internals({ pollMs: MINUTE }),
      closeTimeoutMs: 1_000,
    },
  })
  const { platform } = lives
  const { advance } = lives.clock
  receive = (req, res) => lives.marketplace().router(req, res)

  const waiting: Emitted[] = []
  const sent: Emitted[] = []
  const lost = new Set<string>()
  const newest = new Map<string, number>()

  async function perform(each: Command, pauseMs = 0): Promise<void> {
    await act(each)
    await advance(pauseMs)
    await expectNothingForbidden()
  }

  async function act(each: Command): Promise<void> {
    switch (each.do) {
      case 'change':
        return change(each.uid, each.pays)
      case 'confirm':
        return move(each.uid, 'Payment confirmation received')
      case 'issue':
        return move(each.uid, 'Payment issue received')
      case 'cancel':
        return move(each.uid, 'User cancels the app subscription')
      case 'deliver': {
        const [event] = waiting.splice(each.which % (waiting.length || 1), 1)
        if (event) await send(event)
        return
      }
      case 'deliver all': {
        await Promise.all(waiting.splice(0).map(send))
        return
      }
      case 'repeat': {
        const event = sent[each.which % (sent.length || 1)]
        if (event) await send(event)
        return
      }
      case 'drop': {
        const [event] = waiting.splice(each.which % (waiting.length || 1), 1)
        if (event) lost.add(event.uid)
        return
      }
      case 'forge':
        return forge(each.uid, each.whole)
      case 'lag':
        return platform.lag(each.ms)
      case 'slow':
        return platform.slow(each.ms)
      case 'fail':
        return platform.fail(each.fault, each.times)
      case 'wait':
        return advance(each.ms)
      case 'restart':
        return lives.restart(each.how)
      case 'refresh': {
        const refreshed = lives.marketplace().businesses.refresh(BUSINESS_OF[each.uid] as string)
        await advance(21_000)
        await refreshed
      }
    }
  }

  /** The next change of a subscription: a purchase, then payments that fail and arrive in turn. */
  function change(uid: string, pays: boolean) {
    const state = platform.state(uid)
    if (state === 'purchased') return move(uid, 'Payment issue received')
    if (state === 'suspended') return move(uid, 'Payment confirmation received')
    return move(uid, 'User purchases an app', pays ? 'Payment succeeded' : 'Payment failed')
  }

  function move(
    uid: string,
    ...how: Parameters<typeof platform.step> extends [string, string, ...infer H] ? H : never
  ) {
    const emits = platform.step(uid, BUSINESS_OF[uid] as string, ...how)
    if (emits) waiting.push({ uid, event_type: emits.endsWith('create') ? 'created' : 'update' })
  }

  async function send(event: Emitted) {
    const { uid: subscription_uid, event_type } = event
    const business_id = BUSINESS_OF[subscription_uid]
    const data = { subscription_uid, business_id, purchasable_uid: OUR_ITEM }
    const { status } = await deliver(url, { entity_name: 'purchasable_subscription', event_type, data })
    expect(status).toBe(200)
    sent.push(event)
  }

  /**
   * Delivers a payload that claims a purchase. If `whole`, it is a full record, and otherwise a notice of a
   * subscription that does not exist.
   */
  async function forge(uid: string, whole: boolean) {
    const business_uid = BUSINESS_OF[uid]
    const claim = {
      uid,
      business_uid,
      purchasable_uid: OUR_ITEM,
      purchase_state: 'purchased',
      updated_at: '2999-01-01',
    }
    const notice = { subscription_uid: `${uid}-forged`, business_id: business_uid, purchasable_uid: OUR_ITEM }
    await deliver(
      url,
      whole
        ? sampleDelivery('purchasable_subscription/updated', claim)
        : sampleDelivery('purchasable_subscription/update', notice),
    )
  }

  async function rows(): Promise<Subscription[]> {
    return (await Promise.all(BUSINESSES.map((each) => lives.rows(each)))).flat()
  }

  /** Checks the promises that hold at every moment. */
  async function expectNothingForbidden() {
    const all = await rows()
    for (const { subscriptionUid, state, record } of all) {
      if (state !== null)
        expect([subscriptionUid, state, platform.hasServed(subscriptionUid, state)]).toEqual([
          subscriptionUid,
          state,
          true,
        ])
      if (!record) continue
      const updatedAt = Date.parse(record.updated_at as string)
      expect(updatedAt).toBeGreaterThanOrEqual(newest.get(subscriptionUid) ?? 0)
      newest.set(subscriptionUid, updatedAt)
    }
    for (const business of BUSINESSES) {
      const isPurchased = all.some((each) => each.businessUid === business && each.state === 'purchased')
      expect([business, await lives.marketplace().isEntitled(business)]).toEqual([business, isPurchased])
    }
  }

  return {
    perform,
    advance,
    lost,

    /** Ends the faults, and waits for deliveries under way. */
    async calm() {
      platform.heal()
      for (const event of waiting.splice(0)) await send(event)
      await expectNothingForbidden()
    },

    async refreshAll() {
      const refreshed = Promise.all(BUSINESSES.map((each) => lives.marketplace().businesses.refresh(each)))
      await advance(21 * SECOND)
      await refreshed
    },

    /** Checks that those of these subscriptions that the receiver knows equal the platform's. */
    async expectEqual(uids: readonly string[]) {
      const known = (await rows()).filter(({ subscriptionUid }) => uids.includes(subscriptionUid))
      const expected = known.map(({ subscriptionUid: each }) => [each, platform.state(each) ?? null])
      expect(known.map(({ subscriptionUid, state }) => [subscriptionUid, state])).toEqual(expected)
      for (const uid of sent.map((each) => each.uid)) {
        if (uids.includes(uid)) expect(known.map((each) => each.subscriptionUid)).toContain(uid)
      }
      await expectNothingForbidden()
    },

    /**
     * Checks that each change was delivered, and that the changes of one subscription follow one another without a gap.
     */
    expectChangesInOrder() {
      for (const uid of UIDS) {
        const delivered = new Map(
          changes.filter((each) => each.subscription_uid === uid).map((each) => [each.id, each]),
        )
        let state: string | null = null
        for (const change of delivered.values()) {
          expect([change.subscription_uid, change.from]).toEqual([uid, state])
          state = change.to
        }
        if (delivered.size > 0 || sent.some((each) => each.uid === uid)) {
          expect([uid, state]).toEqual([uid, platform.state(uid)])
        }
      }
    },

    end: () => lives.end(),
  }
}

/** An event that the platform emits. */
interface Emitted {
  uid: string
  event_type: 'created' | 'update'
}

function mulberry32(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}
