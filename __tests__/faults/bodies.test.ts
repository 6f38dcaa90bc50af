import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from '@jest/globals'
import express5 from 'express'
import fc from 'fast-check'
import type { MarketplaceOptions } from '../../lib/index.js'
import { onCleanUp } from '../support/clean-up.js'
import { createScene, deliver, OUR_ITEM, openMarketplace, serve, startPlatform } from '../support/scene.js'
import { until } from '../support/until.js'

const express4 = require('express-4') as typeof express5

const B1 = 'business-one'
const MiB = 1024 * 1024

describe('a body that is too large', () => {
  it.each([
    ['B1 announced as 1 GiB, and sent all the same', 'content-length: 1073741824', ''],
    ['B2 in chunks without an end', 'transfer-encoding: chunked', '10000\r\n'],
  ])('%s gets 413, and takes no memory', async (_what, header, beforeChunk) => {
    const { target } = await receiving()
    const peak = watchMemory()
    const senders = await sendWithoutEnd(target, header, beforeChunk)
    const grownBytes = peak()
    expect(senders).toHaveLength(8)
    for (const { reply } of senders) expect(reply).toMatch(/^HTTP\/1\.1 413 .*\r\nconnection: close\r\n/is)
    // Buffers that were read and dropped wait for the garbage collector: 20 to 80 MiB. Kept, they would be 512.
    expect(grownBytes).toBeLessThan(256 * MiB)
  })
})

describe.each([
  ['Express 4', express4],
  ['Express 5', express5],
])('B5 body parsers of the app on %s', (_name, express) => {
  const PARSERS = {
    'express.json()': () => express.json(),
    'express.json() for everything': () => express.json({ type: () => true, strict: false }),
    'express.raw()': () => express.raw({ type: () => true }),
    'express.text()': () => express.text({ type: () => true }),
    'express.urlencoded()': () => express.urlencoded({ extended: true }),
    'all of them': () => [
      express.json(),
      express.urlencoded({ extended: true }),
      express.text(),
      express.raw({ type: () => true }),
    ],
  }

  it.each(
    Object.entries(PARSERS).flatMap(([name, parser]) => [
      [name, 'before', parser] as const,
      [name, 'after', parser] as const,
    ]),
  )(
    '%s %s the router: deliveries are stored, and the app still gets its own bodies',
    async (_name, place, parser) => {
      const platform = await startPlatform()
      const marketplace = openMarketplace(platform, { worker: false })
      const app = express()
      const own: unknown[] = []
      if (place === 'before') app.use(parser())
      app.use('/hooks', marketplace.router)
      if (place === 'after') app.use(parser())
      app.post('/own', (req, res) => {
        own.push(req.body)
        res.end()
      })
      const url = await serve(app)
      const target = marketplace.targetUrl(`${url}/hooks`)
      for (const contentType of ['application/json', 'text/plain', '']) {
        const body = JSON.stringify(notice(`s ${contentType}`))
        const init = { method: 'POST', headers: { 'content-type': contentType }, body }
        expect((await fetch(target, init)).status).toBe(200)
      }
      const events = await marketplace.journal.list({ kind: 'event' })
      expect(events.map(({ subscription_uid }) => subscription_uid).sort()).toEqual([
        's ',
        's application/json',
        's text/plain',
      ])
      await fetch(`${url}/own`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"a":1}',
      })
      const asText = own.map((body) => (Buffer.isBuffer(body) ? `${body}` : body))
      expect([[{ a: 1 }], ['{"a":1}'], [{}], [undefined]]).toContainEqual(asText)
    },
  )
})

describe('a strange body', () => {
  it.each([
    ['NUL', 'a\u0000b'],
    ['a control character', 'a\u001bb'],
    ['DEL', 'a\u007f'],
    ['a lone high surrogate', 'a\ud800'],
    ['a lone low surrogate', '\udc00a'],
    ['10,000 characters', 'x'.repeat(10_000)],
    ['nothing', ''],
  ])('B7 with an id of %s is stored and never becomes a row', async (_what, id) => {
    const { marketplace, target } = await receiving()
    for (const envelope of [notice(id), notice('s1', id)]) {
      const { status, body } = await deliver(target, envelope)
      expect({ status, issues: body.issues }).toEqual({ status: 200, issues: [expect.any(String)] })
    }
    const { counts } = await marketplace.health()
    expect(counts).toMatchObject({ subscriptions: 0, unrecognised: 2 })
  })

  it('B7 keeps similar ids apart', async () => {
    const { marketplace, target } = await receiving()
    const alike = [
      'é',
      'e\u0301',
      'É',
      'e',
      'e ',
      ' e',
      'E',
      'ｅ',
      '\ufffd',
      'a\ufffd',
      '007',
      '7',
      '7.0',
      'null',
    ]
    for (const id of alike) expect((await deliver(target, notice(id, id))).status).toBe(200)
    // A number is its text, so this one is known already.
    await deliver(target, notice(7 as never, 7 as never))
    expect((await marketplace.health()).counts?.subscriptions).toBe(alike.length)
    for (const id of alike) {
      const { subscriptions } = await marketplace.explain(id)
      expect(subscriptions.map(({ subscription_uid }) => subscription_uid)).toEqual([id])
    }
  })

  it('B8 changes no prototype with __proto__ and constructor, and passes on no ids', async () => {
    const { marketplace, target } = await receiving()
    const ids = JSON.stringify(notice('s1').data)
    const pair = '"entity_name":"purchasable_subscription","event_type":"update"'
    for (const text of [
      `{${pair},"data":{"__proto__":${ids}}}`,
      `{${pair},"data":{"constructor":{"prototype":${ids}}}}`,
      `{"__proto__":{${pair},"data":${ids}}}`,
      `[{"__proto__":{${pair},"data":${ids}}},{${pair},"__proto__":{"data":${ids}}}]`,
    ]) {
      const { status, body } = await deliver(target, text)
      expect({ status, hasIssues: Array.isArray(body.issues) }).toEqual({ status: 200, hasIssues: true })
    }
    expect((await marketplace.health()).counts).toMatchObject({ subscriptions: 0, unrecognised: 5 })
    expect(
      (await deliver(target, `{${pair},"data":{"__proto__":{"x":1},${ids.slice(1)}}`)).body.issues,
    ).toBeUndefined()
    expect(await marketplace.journal.list()).toHaveLength(6)
    expect(['subscription_uid', 'entity_name', 'x'].filter((key) => key in {})).toEqual([])
  })

  it('B9 nested 500,000 levels deep is stored, alone or in an event, and the next one is served', async () => {
    const { marketplace, target } = await receiving({ receiver: { bodyLimitBytes: 2 * MiB } })
    const parsed = express5()
      .use(express5.json({ limit: '2mb', strict: false }))
      .use(marketplace.router)
    const behind = marketplace.targetUrl(await serve(parsed))
    const deep = '['.repeat(500_000) + ']'.repeat(500_000)
    const event = JSON.stringify(notice('s1')).replace(
      '"data":{',
      `"more":${deep},"data":{"deep":${deep.slice(400_000, -400_000)},`,
    )
    for (const address of [target, behind]) {
      for (const text of [deep, event, `[${event},${JSON.stringify(notice('s2'))}]`]) {
        expect((await deliver(address, text)).status).toBe(200)
      }
      expect((await deliver(address, notice('s3'))).status).toBe(200)
    }
    expect((await marketplace.health()).counts?.subscriptions).toBe(3)
    const entries = await marketplace.journal.list({ kind: 'event' })
    expect(entries).toHaveLength(8)
  })

  it.each([
    '{"entity_name":"a","entity_name":"purchasable_subscription","event_type":"update","data":{},"data":1}',
    '{"entity_name":"purchasable_subscription","event_type":"update","data":{"business_id":1e400,"subscription_uid":-1e400}}',
    '{"entity_name":"purchasable_subscription","event_type":"update","data":{"business_id":["b"],"subscription_uid":{"a":1}}}',
    '{"entity_name":["purchasable_subscription"],"event_type":{},"data":[]}',
    '{"entity_name":"purchasable_subscription","event_type":"update","data":{"business_id":12345678901234567890,"subscription_uid":true}}',
    '[[[]],[{}],{"data":null}]',
    '1e400',
  ])('B10 never causes an internal error: %s', async (text) => {
    const { target } = await receiving()
    const { status, body } = await deliver(target, text)
    expect({ status, hasIssues: Array.isArray(body.issues) }).toEqual({ status: 200, hasIssues: true })
  })

  it('B10 never causes an internal error, with any field values', async () => {
    const { target } = await receiving()
    const anyEnvelope = fc.record(
      {
        entity_name: fc.oneof(fc.constantFrom('purchasable_subscription', 'application'), fc.jsonValue()),
        event_type: fc.oneof(fc.constantFrom('update', 'created', 'installed'), fc.jsonValue()),
        data: fc.oneof(
          fc.jsonValue(),
          fc.record(
            {
              business_id: fc.jsonValue(),
              subscription_uid: fc.jsonValue(),
              uid: fc.jsonValue(),
              business_uid: fc.jsonValue(),
              purchase_state: fc.jsonValue(),
              app_code_name: fc.jsonValue(),
            },
            { requiredKeys: [] },
          ),
        ),
      },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(fc.oneof(anyEnvelope, fc.array(anyEnvelope), fc.jsonValue()), async (body) => {
        expect((await deliver(target, JSON.stringify(body))).status).toBe(200)
      }),
      { numRuns: 150 },
    )
  })

  it('B11 with an unknown event is stored, counted and delivered to onUnrecognised', async () => {
    const { marketplace, deliver } = await createScene()
    const reported: unknown[] = []
    marketplace.onUnrecognised(({ envelope }) => void reported.push(envelope))
    const unknown = [
      { entity_name: 'application', event_type: 'rated', data: { business_id: B1 } },
      { entity_name: 'moon', event_type: 'update', data: {} },
    ]
    for (const envelope of unknown) {
      const { status, body } = await deliver(envelope)
      expect({ status, body }).toEqual({
        status: 200,
        body: { received: true, id: expect.any(String), issues: [expect.stringContaining('entity_name')] },
      })
    }
    await until('both are reported', () => reported.length === 2)
    expect(reported).toEqual(expect.arrayContaining(unknown))
    expect((await marketplace.health()).counts).toMatchObject({ unrecognised: 2, subscriptions: 0 })
    const kept = await marketplace.journal.list({ kind: 'unrecognised' })
    expect(kept.map(({ payload }) => payload)).toEqual([...unknown].reverse())
  })

  it('B12 with an array of good and bad envelopes does not lose the good one', async () => {
    const { platform, marketplace, deliver } = await createScene()
    const drop = platform.faults.add({ on: 'delivery', kind: 'drop' })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    drop.remove()
    const bad = [null, [], 'text', { entity_name: 'purchasable_subscription', event_type: 'update', data: 7 }]
    const { status, body } = await deliver([...bad, notice(uid), notice('a\u0000b')])
    expect({ status, ids: (body.ids as string[]).length }).toEqual({ status: 200, ids: 6 })
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect((await marketplace.health()).counts).toMatchObject({ subscriptions: 1, unrecognised: 5 })
  })

  it('B12 that is empty is refused; null and [] are stored', async () => {
    const { marketplace, target } = await receiving()
    expect(await deliver(target, '')).toMatchObject({ status: 400, body: { code: 'body_not_json' } })
    for (const text of ['null', '[]']) {
      expect(await deliver(target, text)).toMatchObject({
        status: 200,
        body: { issues: [expect.any(String)] },
      })
    }
    expect((await marketplace.journal.list()).map(({ payload }) => payload)).toEqual([[], null])
  })
})

/** A marketplace that only receives. */
async function receiving(options: Pick<MarketplaceOptions, 'receiver'> = {}) {
  const platform = await startPlatform()
  const marketplace = openMarketplace(platform, { worker: false, freshness: { waitMs: 0 }, ...options })
  await marketplace.start()
  const url = await serve(express5().use(marketplace.router))
  return { marketplace, target: marketplace.targetUrl(url) }
}

function notice(subscription_uid: string, business_id = B1) {
  const data = { business_id, purchasable_uid: OUR_ITEM, subscription_uid }
  return { entity_name: 'purchasable_subscription', event_type: 'update', data }
}

/** Looks every few milliseconds; answers how far the memory of this process's own objects has risen at most. */
function watchMemory(): () => number {
  const used = () => {
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const before = used()
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, used())
  }, 5)
  onCleanUp(() => clearInterval(timer))
  return () => {
    clearInterval(timer)
    return most - before
  }
}

/** Eight senders in a process of their own, so that their memory is not ours; each ends when cut off, or at 64 MiB. */
async function sendWithoutEnd(
  target: string,
  header: string,
  beforeChunk: string,
): Promise<{ reply: string }[]> {
  const { hostname, port, pathname } = new URL(target)
  const head = `POST ${pathname} HTTP/1.1\r\nhost: a\r\n${header}\r\n\r\n`
  const child = spawn(process.execPath, ['--eval', SENDERS, hostname, port, head, beforeChunk], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onCleanUp(() => child.kill('SIGKILL'))
  let text = ''
  child.stdout.on('data', (data) => {
    text += data
  })
  await once(child, 'close')
  return JSON.parse(text)
}

const SENDERS = `
const [hostname, port, head, beforeChunk] = process.argv.slice(1)
const chunk = Buffer.from(beforeChunk + ' '.repeat(0x10000) + (beforeChunk && '\\r\\n'))
function send() {
  return new Promise((resolve) => {
    const socket = require('node:net').connect(Number(port), hostname)
    let reply = ''
    let sent = 0
    const more = () => {
      while (socket.writable && sent < 67108864) {
        sent += chunk.length
        if (!socket.write(chunk)) return
      }
      if (sent >= 67108864) socket.end()
    }
    socket.on('data', (data) => { reply += data })
    socket.on('drain', more)
    socket.on('error', () => {})
    socket.on('close', () => resolve({ reply }))
    socket.write(head)
    more()
  })
}
Promise.all(Array.from({ length: 8 }, send)).then((all) => process.stdout.write(JSON.stringify(all)))
`
