import { readdirSync, readFileSync } from 'node:fs'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { type Clock, HOUR, MINUTE, SECOND, systemClock } from '../../lib/clock.js'
import { createPlatformClient } from '../../lib/platform/client.js'
import type { ReadClaim } from '../../lib/store/store.js'
import { storeFor } from '../../lib/store-option.js'
import { sampleDelivery } from '../../lib/testing/index.js'
import { concludeRead } from '../../lib/work/conclude-read.js'
import { onCleanUp, temporaryFolder } from '../support/clean-up.js'
import { eventOf } from '../support/events.js'
import { jumpingClock } from '../support/jumping-clock.js'
import { createScene, OUR_ITEM, openMarketplace, startPlatform } from '../support/scene.js'
import { until } from '../support/until.js'

const B1 = 'business-one'
const B2 = 'business-two'

describe('a platform, or its token endpoint,', () => {
  it.each([
    ['E1 that refuses connections', 'refuse', 'platform_unreachable'],
    ['E1 that resets connections', 'reset', 'platform_unreachable'],
    ['E2 that takes requests and never answers', 'black hole', 'platform_timeout'],
    ['E3 that answers a byte at a time', 'trickle', 'platform_timeout'],
    ['E4 that answers half', 'truncate', 'platform_unreachable'],
    ['E5 that answers with a page and 200', 'html', 'platform_reply_invalid'],
  ] as const)('%s changes no answer, is reported, and is called again later', async (_what, mode, code) => {
    const platform = await startPlatform()
    const [base, auth] = [await proxyTo(platform.baseUrl), await proxyTo(platform.authUrl)]
    const marketplace = openMarketplace(
      { baseUrl: base.url, authUrl: auth.url },
      { platform: { timeoutMs: 300 }, freshness: { waitMs: 0 } },
    )
    const failureOf = async (business: string) =>
      (await marketplace.explain(business)).subscriptions[0]?.failure
    const known = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await marketplace.track({ subscription_uid: known.uid, business_uid: B1 })
    await until('the purchase', () => marketplace.isEntitled(B1))

    await Promise.all([base.be(mode), auth.be(mode)])
    // The one has its token and fails at the read; the other fails at its first token.
    platform.cancel(known.uid)
    const other = platform.purchase({ business_uid: B2, payment: 'succeeded' })
    const begun = Date.now()
    await marketplace.track({ subscription_uid: known.uid, business_uid: B1 })
    await marketplace.track({ subscription_uid: other.uid, business_uid: B2 })
    const failures = [
      await until('a failed read', () => failureOf(B1)),
      await until('a failed token call', () => failureOf(B2)),
    ]
    expect(failures).toEqual([code, code])
    expect(Date.now() - begun).toBeLessThan(8_000)
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect(await marketplace.isEntitled(B2)).toBe(false)
    expect(await marketplace.journal.list({ kind: 'change' })).toHaveLength(1)

    await Promise.all([base.be('pass'), auth.be('pass')])
    await until('the end of the one', async () => !(await marketplace.isEntitled(B1)))
    await until('the other', () => marketplace.isEntitled(B2))
  })
})

describe('E6 a platform that limits the rate', () => {
  it.each([
    ['seconds', '120', 2 * MINUTE],
    ['a date', inTwoMinutes, 2 * MINUTE],
    ['rubbish', 'soon', SECOND],
    ['nothing', undefined, SECOND],
    ['a negative number', '-5', SECOND],
    ['ten days', '864000', HOUR],
  ])('by %s gets no call until then, for any business', async (_form, retryAfter, waitMs) => {
    const { clock, jump } = steppedClock()
    const { platform, marketplace } = await createScene({ clock, freshness: { waitMs: 0 } })
    const header = typeof retryAfter === 'function' ? retryAfter(clock) : retryAfter
    const limit = { on: 'read', kind: 'status', status: 429, times: 1 } as const
    platform.faults.add(header === undefined ? limit : { ...limit, retryAfter: header })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the pause', async () => (await marketplace.health()).problems.length > 0)
    const calls = platform.requests.length
    platform.purchase({ business_uid: B2, payment: 'succeeded' })
    await platform.settled()
    jump(waitMs - 2)
    await looks(3)
    expect(platform.requests).toHaveLength(calls)
    const paused = 'reads are paused: the platform limits our rate'
    expect((await marketplace.health()).problems).toContain(paused)
    jump(2)
    await until('the other', () => marketplace.isEntitled(B2))
    expect((await marketplace.health()).problems).not.toContain(paused)
    jump(HOUR)
    await until('the one', () => marketplace.isEntitled(B1))
  })
})

describe('E8 a platform that refuses one business', () => {
  it.each([403, 404, 400])(
    'with %d gets calls for it more and more rarely, and for others as before',
    async (status) => {
      const { platform, marketplace } = await createScene({ freshness: { waitMs: 0 } })
      platform.faults.add({ on: 'read', kind: 'status', status, business_uid: B1 })
      platform.purchase({ business_uid: B1, payment: 'succeeded' })
      await until('it is refused', async () => {
        const { subscriptions } = await marketplace.explain(B1)
        return subscriptions[0]?.failure === 'platform_refused'
      })
      for (let other = 0; other < 10; other++) {
        platform.purchase({ business_uid: `other-${other}`, payment: 'succeeded' })
        await until('the other', () => marketplace.isEntitled(`other-${other}`))
      }
      expect(await marketplace.health()).toMatchObject({ status: 'ok' })
      const refused = platform.requests.filter((each) => each.endpoint === 'read' && each.business_uid === B1)
      expect(refused.length).toBeLessThanOrEqual(6)
    },
  )
})

describe('E23 a platform that refuses every business', () => {
  it('is reported by health with the next step, also after a restart, until it serves again', async () => {
    const { clock, jump } = jumpingClock()
    const store = `sqlite:${join(temporaryFolder(), 'm.db')}`
    const { platform, marketplace } = await createScene({ clock, store })
    const businesses = ['b1', 'b2', 'b3', 'b4']
    for (const business_uid of businesses) {
      platform.purchase({ business_uid, payment: 'succeeded' })
      await until('the purchase', () => marketplace.isEntitled(business_uid))
    }
    const refusal = platform.faults.add({ on: 'read', kind: 'status', status: 404 })
    for (const business of businesses) await marketplace.refresh(business)
    const health = await marketplace.health()
    expect(health).toMatchObject({ status: 'degraded', counts: { active: 4, refused: 4 } })
    expect(health.problems).toContain(
      'the platform refuses the reads of 4 of 4 businesses (404 platform_refused): look at platform.baseUrl',
    )
    for (let days = 0; days < 6; days++) {
      const strikes = refusal.strikes
      jump(26 * HOUR)
      let polls = 0
      await until('they are tried again', () => {
        // A read that was under way at the jump counts its next try from after it.
        if (++polls % 100 === 0) jump(6 * MINUTE)
        return refusal.strikes >= strikes + businesses.length
      })
    }
    await marketplace.close()
    const again = openMarketplace(platform, { clock, store })
    await again.start()
    expect((await again.health()).problems.join()).toMatch(/4 of 4 (businesses|subscriptions)/)
    refusal.remove()
    jump(30 * HOUR)
    for (const business of businesses) await until(business, () => again.isEntitled(business))
    await until('good health', async () => (await again.health()).status === 'ok')
  }, 60_000)
})

describe('E12 ten thousand subscriptions that are due when an outage ends', () => {
  it('are read with at most the allowed number of calls at once', async () => {
    const uids = Array.from({ length: 10_000 }, (_, at) => `s${at}`)
    const store = storeFor('sqlite::memory:', systemClock)
    await store.open()
    await store.accept(uids.map(requestingEvent))
    const inFlight = { token: 0, read: 0 }
    const most = { token: 0, read: 0 }
    const answered = new Set<string>()
    let failures = 100
    const platform = { baseUrl: 'http://platform.test', authUrl: 'http://auth.test' }
    openMarketplace(platform, {
      store,
      platform: {
        concurrency: 4,
        async fetch(input) {
          const url = new URL(String(input))
          const kind = url.pathname === '/oauth/token' ? 'token' : 'read'
          most[kind] = Math.max(most[kind], ++inFlight[kind])
          await new Promise((resolve) => setImmediate(resolve))
          inFlight[kind]--
          if (failures > 0) {
            failures--
            throw new TypeError('fetch failed')
          }
          if (kind === 'token') return Response.json({ access_token: 'token' })
          const uid = url.searchParams.get('filter[uid]') as string
          answered.add(uid)
          return Response.json({ data: { subscriptions: [recordOf(uid)] } })
        },
      },
    })
    // All of them would take 20 s here; a fifth passes through every phase, the outage and its retries included.
    await until('a fifth of them is read', () => answered.size >= 2_000, 30_000)
    expect(failures).toBe(0)
    expect(most).toEqual({ token: 4, read: expect.any(Number) })
    expect(most.read).toBeLessThanOrEqual(4)
  }, 40_000)

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
      // Evenly, a twentieth of them is 500; the least pause gathers a tenth of a second's worth in the first slots.
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
    await until('all are read', async () => {
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

describe('F5 a platform that refuses the credentials of the app', () => {
  it('pauses all reads, is reported by health, and leaves nothing dead or given up', async () => {
    const { clock, jump } = jumpingClock()
    const { platform, marketplace } = await createScene({ clock, freshness: { waitMs: 0 } })
    const refusal = platform.faults.add({
      on: 'token',
      kind: 'status',
      status: 401,
      body: { error: 'invalid_client' },
    })
    const businesses = ['b1', 'b2', 'b3', 'b4']
    for (const business_uid of businesses) platform.purchase({ business_uid, payment: 'succeeded' })
    await platform.settled()
    await until('it is logged', async () => (await marketplace.health()).problems.length > 0)
    expect(await marketplace.health()).toMatchObject({
      status: 'degraded',
      problems: ["reads are paused: the platform refuses the app's credentials"],
    })
    // A refusal of one business would be final after 12 tries and 72 hours.
    for (let day = 0; day < 14; day++) {
      jump(24 * HOUR)
      const before = refusal.strikes
      await until('another try', async () => {
        // A try that was under way during the jump may have been refused only after it.
        const { problems } = await marketplace.health()
        if (refusal.strikes > before) return true
        if (problems.some((problem) => problem.startsWith('reads are paused'))) jump(MINUTE)
      })
      await looks(2)
      // No more than were under way when the first of them was answered.
      expect(refusal.strikes - before).toBeLessThanOrEqual(8)
    }
    const { counts } = await marketplace.health()
    expect(counts).toMatchObject({ givenUp: 0, dead: 0, requested: businesses.length })
    refusal.remove()
    jump(HOUR)
    for (const business of businesses) await until(business, () => marketplace.isEntitled(business))
    // A loop that has not looked since the jump, an hour by this clock, counts as stuck until it looks.
    await until('good health', async () => (await marketplace.health()).status === 'ok')
    expect(await marketplace.health()).toMatchObject({ status: 'ok', problems: [] })
  })
})

describe('F8 tokens', () => {
  it('are cached in memory only', async () => {
    const folder = temporaryFolder()
    const tokens: string[] = []
    const { platform, marketplace } = await createScene({
      store: `sqlite:${join(folder, 'm.db')}`,
      platform: {
        async fetch(input, init) {
          const token = new Headers(init?.headers).get('authorization')?.replace('Bearer ', '')
          if (token) tokens.push(token)
          return fetch(input, init)
        },
      },
    })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the purchase', () => marketplace.isEntitled(B1))
    const files = readdirSync(folder)
    expect(tokens.length).toBeGreaterThan(0)
    expect(files.length).toBeGreaterThan(0)
    const texts = files.map((file) => readFileSync(join(folder, file), 'latin1'))
    // A read that looked for it would find it: the business exists.
    expect(texts.some((text) => text.includes(B1))).toBe(true)
    for (const token of tokens) expect(files.filter((_file, at) => texts[at]?.includes(token))).toEqual([])
  })
})

describe('F9 a token endpoint that does not answer', () => {
  it('does not stop known businesses with a token while new ones wait for theirs', async () => {
    const { platform, marketplace, deliver } = await createScene({
      platform: { timeoutMs: 20_000 },
      freshness: { waitMs: 0 },
    })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the purchase', () => marketplace.isEntitled(B1))
    const slow = platform.faults.add({ on: 'token', kind: 'slow', ms: 15_000 })
    for (let at = 0; at < 12; at++) platform.purchase({ business_uid: `new-${at}`, payment: 'succeeded' })
    await platform.settled()
    await until('four wait for a token', () => slow.strikes >= 4)
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.cancel(uid)
    await deliver(notice(uid, B1))
    await until('the cancellation', async () => !(await marketplace.isEntitled(B1)))
  })

  it('does not stop known businesses with a token while other known ones wait for theirs', async () => {
    const { platform, marketplace, deliver } = await createScene({
      platform: { timeoutMs: 20_000 },
      freshness: { waitMs: 0 },
    })
    const others = Array.from({ length: 12 }, (_, at) => `known-${at}`)
    const uids = new Map<string, string>()
    for (const business_uid of [B1, ...others]) {
      uids.set(business_uid, platform.purchase({ business_uid, payment: 'succeeded' }).uid)
      await until('the purchase', () => marketplace.isEntitled(business_uid))
    }
    // All tokens have ended, and one business has a new one.
    platform.faults.expireTokens()
    await marketplace.refresh(B1)
    const slow = platform.faults.add({ on: 'token', kind: 'slow', ms: 15_000 })
    for (const business of others) await deliver(notice(uids.get(business) as string, business))
    await until('four wait for a token', () => slow.strikes >= 4)
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.cancel(uids.get(B1) as string)
    await deliver(notice(uids.get(B1) as string, B1))
    await until('the cancellation', async () => !(await marketplace.isEntitled(B1)))
  })
})

type Mode = 'pass' | 'refuse' | 'reset' | 'black hole' | 'trickle' | 'truncate' | 'html'

/** A TCP proxy that can fail in the ways of a network. `be` ends the connections that were open. */
async function proxyTo(target: string) {
  const upstreamPort = Number(new URL(target).port)
  const sockets = new Set<Socket>()
  const timers = new Set<NodeJS.Timeout>()
  let mode: Mode = 'pass'
  let port = 0

  const server = createServer((client) => {
    const upstream = connect(upstreamPort, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    client.on('data', (chunk) => {
      if (mode === 'reset') client.resetAndDestroy()
      else if (mode === 'html') client.write(PAGE)
      else if (mode !== 'black hole') upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      if (mode === 'trickle') {
        let sent = 0
        const timer = setInterval(() => {
          if (sent < chunk.length) client.write(chunk.subarray(sent, ++sent))
        }, 20)
        timers.add(timer)
        client.on('close', () => clearInterval(timer))
      } else if (mode === 'truncate')
        client.write(chunk.subarray(0, chunk.length - 10), () => client.destroy())
      else client.write(chunk)
    })
  })

  const listen = () =>
    new Promise<void>((resolve) =>
      server.listen(port, '127.0.0.1', () => {
        port = (server.address() as AddressInfo).port
        resolve()
      }),
    )

  async function cut() {
    for (const socket of sockets) socket.destroy()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }

  await listen()
  onCleanUp(async () => {
    for (const timer of timers) clearInterval(timer)
    await cut()
  })
  return {
    url: `http://127.0.0.1:${port}`,
    async be(next: Mode) {
      await cut()
      mode = next
      if (next !== 'refuse') await listen()
    },
  }
}

const PAGE = 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 22\r\n\r\n<html>Back soon</html>'

/** A clock that stands between its steps, on a whole second at first; timers keep the system's pace. */
function steppedClock() {
  let now = Math.ceil(Date.now() / SECOND) * SECOND
  const clock: Clock = { ...systemClock, now: () => now, monotonic: () => now }
  return {
    clock,
    jump(ms: number) {
      now += ms
    },
  }
}

function inTwoMinutes(clock: Clock): string {
  return new Date(clock.now() + 2 * MINUTE).toUTCString()
}

/** Lets the loops, which poll every 50 ms and may take a fifth longer, look this many times. */
async function looks(times: number) {
  const end = Date.now() + times * 60
  await until('the looks', () => Date.now() > end)
}

function notice(subscription_uid: string, business_id: string) {
  const data = { subscription_uid, business_id, purchasable_uid: OUR_ITEM }
  return sampleDelivery('purchasable_subscription/update', data)
}

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

/** When a subscription is due again that has met this many outages before this one. */
function nextAfterOutages(outages: number): number {
  const progress = JSON.stringify({ generation: 1, outages })
  const claim = { generation: 1, uninstalledAt: null, progress, subscription: { record: null, gone: null } }
  const env = {
    now: 0,
    random: Math.random,
    reconcileEveryMs: HOUR,
    waitMs: 0,
    stateOf: () => '',
    hasServedSince: () => true,
    manyVanished: () => false,
  }
  const { nextInMs } = concludeRead(
    claim as unknown as ReadClaim,
    { kind: 'outage', code: 'platform_failing' },
    env,
  )
  return nextInMs as number
}
