import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import { MINUTE, SECOND, systemClock } from '../../../lib/base/clock.js'
import { storeFor } from '../../../lib/store-option.js'
import { progressText } from '../../../lib/work/reading/schedule.js'
import { storeOption } from '../../support/engines/store-option.js'
import { eventOf } from '../../support/events.js'
import { ADDRESSES, purchaseOf } from '../../support/platform/answering.js'
import { type Answer, read, start } from '../../support/platform/platform-calls.js'
import { createScene, openMarketplace } from '../../support/scene.js'
import { createReader } from '../../support/scenes/reader.js'
import { B1, B2 } from '../../support/settings.js'
import { until } from '../../support/until.js'

describe('E12 ten thousand subscriptions that are due when an outage ends', () => {
  it('are read with at most the allowed number of calls at once', async () => {
    const uids = Array.from({ length: 10_000 }, (_, at) => `s${at}`)
    const store = storeFor('sqlite::memory:', systemClock)
    await store.open()
    await store.accept(uids.map((uid) => eventOf(uid, `b-${uid}`)))
    const inFlight = { first: 0, all: 0 }
    const most = { first: 0, all: 0 }
    const answered = new Set<string>()
    let failures = 100
    openMarketplace(ADDRESSES, {
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
          return Response.json({ data: { subscriptions: [purchaseOf(uid, `b-${uid}`)] } })
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
  ] as [string, Answer][])(
    'happen in one layer: a call that is answered with %s is one request',
    async (_what, answer) => {
      const { client, requests } = await start({ token: answer, timeoutMs: 300 })
      const { kind } = await read(client)
      expect(kind).toMatch(/outage|throttled/)
      expect(requests).toHaveLength(1)
      // After a 429 no call begins for a second.
      if (kind === 'throttled') await sleep(1_100)
      await read(client)
      expect(requests).toHaveLength(2)
    },
  )
})

/** When a subscription is due again after this many earlier outages. */
function nextAfterOutages(outages: number): number {
  const reader = createReader()
  reader.claim.progress = progressText(reader.claim, { outages })
  const outage = { kind: 'outage', code: 'platform_failing' } as const
  return reader.reads(outage, { random: Math.random }).nextInMs as number
}
