import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from '@jest/globals'
import { onCleanUp } from '../../support/clean-up.js'
import { noticeOf } from '../../support/events.js'
import { receiving } from '../../support/receiving/only-receiving.js'
import { EXPRESSES } from '../../support/receiving/receivers.js'
import { openMarketplace, serve, startPlatform } from '../../support/scene.js'

const MiB = 1024 * 1024

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

describe('a body that is too large', () => {
  it.each([
    ['B1 announced as 1 GiB, and sent in spite of the 413', 'content-length: 1073741824', ''],
    ['B2 in chunks without an end', 'transfer-encoding: chunked', '10000\r\n'],
  ])('%s gets 413, and takes no memory', async (_what, header, beforeChunk) => {
    const { target } = await receiving()
    const peak = watchMemory()
    const senders = await sendWithoutEnd(target, header, beforeChunk)
    const grownBytes = peak()
    expect(senders).toHaveLength(8)
    for (const { reply } of senders) expect(reply).toMatch(/^HTTP\/1\.1 413 .*\r\nconnection: close\r\n/is)
    // Buffers that were read and dropped wait for the garbage collector: 20 to 80 MiB. If they were retained, they
    // would take 512.
    expect(grownBytes).toBeLessThan(256 * MiB)
  })
})

describe.each(EXPRESSES)('B5 body parsers of the app on %s', (_name, express) => {
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
      const target = marketplace.webhooks.targetUrl(`${url}/hooks`)
      for (const contentType of ['application/json', 'text/plain', '']) {
        const body = JSON.stringify(noticeOf(`s ${contentType}`))
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

/**
 * Measures the memory of this process's own objects every few milliseconds. The result returns the greatest increase.
 */
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

/**
 * Eight senders in a process of their own, so that their memory does not count here. Each ends when its connection is
 * cut, or after 64 MiB.
 */
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
