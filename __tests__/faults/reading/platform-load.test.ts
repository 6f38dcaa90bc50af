import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from '@jest/globals'
import { HOUR, MINUTE, SECOND, systemClock } from '../../../lib/base/clock.js'
import { createPlatformClient } from '../../../lib/platform/client.js'
import type { ReadClaim } from '../../../lib/store/port/store.js'
import { storeFor } from '../../../lib/store-option.js'
import { concludeRead } from '../../../lib/work/reading/conclude-read.js'
import { onCleanUp } from '../../support/clean-up.js'
import { storeOption } from '../../support/engines/store-option.js'
import { eventOf } from '../../support/events.js'
import { createScene, OUR_ITEM, openMarketplace } from '../../support/scene.js'
import { until } from '../../support/until.js'

const B1 = 'business-one'

const B2 = 'business-two'

describe('E12 ten thousand subscriptions that are due when an outage ends', () => {
  it('are read with at most the allowed number of calls at once', async () => {
    const uids = Array.from({ length: 10_000 }, (_, at) => `s${at}`)
    const store = storeFor('sqlite::memory:', systemClock)
    await store.open()
    await store.accept(uids.map(requestingEvent))
    const inFlight = { first: 0, all: 0 }
    const most = { first: 0, all: 0 }
    const answered = new Set<string>()
    let failures = 100
    const platform = { baseUrl: 'http://platform.test', authUrl: 'http://auth.test' }
    openMarketplace(platform, {
      store: storeOption(store),
      platform: {
        async fetch(input) {
          const url = new URL(String(input))
          const isToken = url.pathname === '/oauth/token'
          const of = isToken
            ? url.searchParams.get('business_uid')?.slice('b-'.length)
            : url.searchParams.get('filter[uid]')
          // A subscription that was read is read again, to verify it, and that may come before the last of the others.
          const kinds = answered.has(String(of)) ? (['all'] as const) : (['all', 'first'] as const)
          for (const kind of kinds) most[kind] = Math.max(most[kind], ++inFlight[kind])
          await new Promise((resolve) => setImmediate(resolve))
          for (const kind of kinds) inFlight[kind]--
          if (failures > 0) {
            failures--
            throw new TypeError('fetch failed')
          }
          if (isToken) return Response.json({ access_token: 'token' })
          const uid = url.searchParams.get('filter[uid]') as string
          answered.add(uid)
          return Response.json({ data: { subscriptions: [recordOf(uid)] } })
        },
      },
      // Half of them are for subscriptions that were never read, as these are.
      reads: { concurrency: 8 },
    })
    // All of them would take 20 s here. A fifth of them passes through every phase, including the outage and its
    // retries.
    await until('a fifth of them is read', () => answered.size >= 2_000, 120_000)
    expect(failures).toBe(0)
    expect(most.first).toBe(4)
    expect(most.all).toBeLessThanOrEqual(8)
  }, 150_000)

  it('are retried at different times, however often they failed together', () => {
    for (const outages of [0, 1, 3, 6, 20]) {
      const dues = Array.from({ length: 10_000 }, () => nextAfterOutages(outages))
      const widthMs = Math.min(5 * MINUTE, SECOND * 2 ** outages)
      const slots = new Map<number, number>()
      for (const due of dues) {
        const slot = Math.floor((due / widthMs) * 20)
        slots.set(slot, (slots.get(slot) ?? 0) + 1)
      }
      expect([outages, Math.max(...dues) <= widthMs]).toEqual([outages, true])
      // Spread evenly, a twentieth of them would be 500. The shortest pause puts a tenth of a second's worth into the
      // first slots.
      expect([outages, Math.max(...slots.values()) < 1_700]).toEqual([outages, true])
      expect([outages, slots.size >= 18]).toEqual([outages, true])
    }
  })
})

describe('concurrent reads', () => {
  it.each([
    ['never two', 'one business', [B1], 1],
    ['several', 'several businesses', [B1, B2], 2],
  ] as const)('are %s of %s', async (_how, _whose, businesses, expected) => {
    const { platform, marketplace } = await createScene({ freshness: { waitMs: 0 } })
    platform.faults.add({ on: 'read', kind: 'slow', ms: 50 })
    for (const business_uid of businesses) {
      for (let i = 0; i < 6; i++) platform.purchase({ business_uid, payment: 'succeeded' })
    }
    await until('all subscriptions are read', async () => {
      const decisions = await Promise.all(businesses.map((each) => marketplace.explain(each)))
      return decisions.every(({ subscriptions }) => subscriptions.filter((each) => each.asOf).length === 6)
    })
    const reads = platform.requests.filter(({ endpoint }) => endpoint === 'read')
    expect(Math.max(...reads.map(({ inFlight }) => inFlight))).toBe(expected)
  })
})

describe('E13 retries', () => {
  it.each([
    ['500', (_req, res) => res.writeHead(500).end('{}')],
    ['503 with Retry-After', (_req, res) => res.writeHead(503, { 'retry-after': '0' }).end('{}')],
    ['429', (_req, res) => res.writeHead(429, { 'retry-after': '0' }).end('{}')],
    ['408', (_req, res) => res.writeHead(408).end('{}')],
    ['a page', (_req, res) => res.end('<html></html>')],
    [
      'half an answer',
      (_req, res) => res.writeHead(200, { 'content-length': 9 }).write('{', () => res.destroy()),
    ],
    ['a reset', (req) => req.socket.resetAndDestroy()],
    ['nothing', () => {}],
  ] as [string, (req: IncomingMessage, res: ServerResponse) => unknown][])(
    'happen in one layer: a call that is answered with %s is one request',
    async (_what, answer) => {
      let requests = 0
      const server = createHttpServer((req, res) => {
        requests++
        answer(req, res)
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      onCleanUp(() => {
        server.close()
        server.closeAllConnections()
      })
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const client = createPlatformClient({
        baseUrl: url,
        authUrl: url,
        clientId: 'client',
        clientSecret: 'client-secret',
        timeoutMs: 300,
        concurrency: 4,
        clock: systemClock,
      })
      const read = () => client.readSubscription({ subscriptionUid: 's1', businessUid: B1 })
      expect((await read()).kind).toMatch(/outage|throttled/)
      expect(requests).toBe(1)
      await read()
      expect(requests).toBe(2)
    },
  )
})

function requestingEvent(subscriptionUid: string) {
  return eventOf(subscriptionUid, `b-${subscriptionUid}`)
}

function recordOf(uid: string) {
  return {
    uid,
    business_uid: `b-${uid}`,
    purchasable_uid: OUR_ITEM,
    purchase_state: 'purchased',
    updated_at: '2026-01-01T00:00:00.000Z',
  }
}

/** When a subscription is due again after this many earlier outages. */
function nextAfterOutages(outages: number): number {
  const progress = JSON.stringify({ generation: 1, outages })
  const claim = { generation: 1, uninstalledAt: null, progress, subscription: { record: null, gone: null } }
  const env = {
    now: 0,
    random: Math.random,
    reconcileEveryMs: HOUR,
    waitMs: 0,
    stateOf: () => '',
    maxStaleMs: 259_200_000,
  }
  const { nextInMs } = concludeRead(
    claim as unknown as ReadClaim,
    { kind: 'outage', code: 'platform_failing' },
    env,
  )
  return nextInMs as number
}
