import { gzipSync } from 'node:zlib'
import { describe, expect, it } from '@jest/globals'
import { createOpenBodies } from '../../lib/express/open-bodies.js'
import { memory } from '../support/machine/memory.js'
import {
  type Before,
  chunked,
  closed,
  dial,
  EVENT,
  EXPRESSES,
  exchange,
  head,
  received,
  receiverOn,
  TEXT,
} from '../support/receiving/receivers.js'
import { until } from '../support/until.js'

const LATIN = Buffer.from(TEXT).toString('latin1')
const ZIPPED = gzipSync(TEXT).toString('latin1')

describe.each(EXPRESSES)('a body on %s', (_name, express) => {
  it('in many chunks, split inside characters, is put together again', async () => {
    const { port, kept } = await receiverOn(express)
    const reply = await exchange(port, head({ 'transfer-encoding': 'chunked' }) + chunked(TEXT, 1))
    expect(reply).toMatch(/ 200 /)
    expect(kept).toEqual([{ value: EVENT, text: TEXT }])
  })

  it('after Expect: 100-continue is read', async () => {
    const { port, kept } = await receiverOn(express)
    const socket = await dial(port)
    socket.write(head({ expect: '100-continue', 'content-length': Buffer.byteLength(TEXT) }))
    expect(await received(socket, /\r\n\r\n/)).toMatch(/^HTTP\/1\.1 100 /)
    socket.write(TEXT)
    expect(await received(socket, /\r\n\r\n.*}$/s)).toMatch(/^HTTP\/1\.1 200 /)
    expect(kept).toHaveLength(1)
  })

  it('B1 with a content length above the limit gets 413 before any of it is sent, and the connection closes', async () => {
    const { port } = await receiverOn(express)
    const socket = await dial(port)
    socket.write(head({ 'content-length': 65_537 }))
    const reply = await closed(socket)
    expect(reply).toMatch(/^HTTP\/1\.1 413 .*\r\nconnection: close\r\n.*body_too_large/is)
  })

  it('B1 with a content length above the limit lets its sender finish writing before it reads the 413', async () => {
    const { port, outcomes } = await receiverOn(express)
    const socket = await dial(port)
    socket.write(head({ 'content-length': 200_000 }))
    await until('the refusal', () => outcomes.length === 1)
    for (let i = 0; i < 20; i++) {
      await new Promise((resolve) => socket.write(' '.repeat(10_000), resolve))
      await new Promise(setImmediate)
    }
    expect(await closed(socket)).toMatch(/^HTTP\/1\.1 413 /)
  })

  it('B25 that arrives slowest is refused when all under way take too much memory, and later ones are accepted', async () => {
    const seen = countsBytes()
    const { port, post, kept, outcomes } = await receiverOn(express, {
      before: [seen.count],
      options: { openBodiesBytes: 8_000 },
    })
    const begin = async (part: string) => {
      const socket = await dial(port)
      const before = seen.bytes()
      socket.write(`${head({ 'content-length': 3_000 })}${part}`)
      await until('it has arrived', () => seen.bytes() === before + part.length)
      return socket
    }
    const first = await begin(`"${'x'.repeat(2_500)}`)
    const second = await begin(`"${'x'.repeat(2_500)}`)
    const third = await begin(`"${'x'.repeat(2_500)}`)
    expect(outcomes).toEqual([])
    await post(`"${'y'.repeat(1_000)}"`).expect(200)
    expect(outcomes).toEqual(['body_timeout', 'received'])
    expect(await closed(first)).toMatch(
      /^HTTP\/1\.1 408 .*\r\nconnection: close\r\n.*body_timeout.*exceeded 8000 bytes/is,
    )

    third.write(`${'x'.repeat(498)}"`)
    expect(await received(third, / 200 .*}$/s)).toContain('"received":true')
    await post(`"${'y'.repeat(1_000)}"`).expect(200)
    second.write(`${'x'.repeat(498)}"`)
    expect(await received(second, / 200 .*}$/s)).toContain('"received":true')
    // A body that exceeds the limit alone is itself the largest.
    await post(`"${'y'.repeat(8_000)}"`).expect(408)
    await post(`"${'y'.repeat(3_000)}"`).expect(200)
    expect(kept).toHaveLength(5)
    expect(outcomes.filter((outcome) => outcome !== 'received')).toEqual(['body_timeout', 'body_timeout'])
  })

  it('B25 in chunks of one byte takes little memory before it is complete', async () => {
    const seen = countsBytes()
    // On a busy machine they take longer than the ten seconds of a delivery.
    const { port, kept } = await receiverOn(express, {
      before: [seen.count],
      options: { bodyTimeoutMs: 120_000 },
    })
    const sockets = await Promise.all(Array.from({ length: 8 }, () => dial(port)))
    const before = memory()
    for (const socket of sockets) {
      socket.write(head({ 'transfer-encoding': 'chunked' }))
      socket.write(`1\r\n7\r\n${'1\r\n \r\n'.repeat(65_000)}`)
    }
    await until('all have arrived', () => seen.bytes() === 8 * 65_001)
    // With a Buffer for each chunk it was 100 MB.
    expect(memory() - before).toBeLessThan(15_000_000)
    const replies = sockets.map((socket) => received(socket, / 200 .*}/s))
    for (const socket of sockets) socket.write('0\r\n\r\n')
    await Promise.all(replies)
    expect(kept.map(({ value }) => value)).toEqual(Array(8).fill(7))
  })

  it('that ends too early is not stored and does no harm', async () => {
    const { port, post, kept, outcomes } = await receiverOn(express)
    const reset = await dial(port)
    reset.write(`${head({ 'content-length': 1_000 })}{"a":`)
    reset.resetAndDestroy()
    const ended = await dial(port)
    ended.end(`${head({ 'transfer-encoding': 'chunked' })}5\r\n{"a":\r\n`)
    await closed(ended)
    await until('both ends', () => outcomes.length === 2)
    expect(outcomes).toEqual(['body_incomplete', 'body_incomplete'])
    await post(TEXT).expect(200)
    expect(kept).toHaveLength(1)
  })

  it.each<[string, string, Before?]>([
    ['with its length', head({ 'content-length': Buffer.byteLength(TEXT) }) + LATIN],
    ['in chunks', head({ 'transfer-encoding': 'chunked' }) + chunked(TEXT, 7)],
    ['compressed', head({ 'content-encoding': 'gzip', 'content-length': ZIPPED.length }) + ZIPPED],
    [
      'decoded by a middleware',
      head({ 'content-length': Buffer.byteLength(TEXT) }) + LATIN,
      (req, _res, next) => {
        req.setEncoding('utf8')
        next()
      },
    ],
  ])(
    'B24 whose sender closes the connection while a middleware waits is stored: %s',
    async (_name, message, also = (_req, _res, next) => next()) => {
      const waits: Before = (_req, res, next) => void res.once('close', next)
      const { port, kept, outcomes } = await receiverOn(express, { before: [also, waits] })
      const socket = await dial(port)
      socket.end(message, 'latin1')
      await until('its outcome', () => outcomes.length === 1)
      expect(outcomes).toEqual(['received'])
      expect(kept).toEqual([{ value: EVENT, text: TEXT }])
    },
  )

  it('B24 that ends too early, or is empty or too large, while a middleware waits is not stored', async () => {
    const waits: Before = (_req, res, next) => void res.once('close', next)
    const { port, kept, outcomes } = await receiverOn(express, {
      before: [waits],
      options: { bodyLimitBytes: 20 },
    })
    for (const [i, message] of [
      `${head({ 'content-length': 15 })}{"a":`,
      head({ 'content-length': 0 }),
      head({ 'transfer-encoding': 'chunked' }) + chunked(TEXT, 7),
    ].entries()) {
      const socket = await dial(port)
      socket.end(message, 'latin1')
      await until('its outcome', () => outcomes.length === i + 1)
    }
    expect(outcomes).toEqual(['body_incomplete', 'body_incomplete', 'body_too_large'])
    expect(kept).toEqual([])
  })
})

describe('the bytes of a body', () => {
  it('are not copied if they came in one chunk', () => {
    const body = createOpenBodies(1_000)(() => {})
    const chunk = Buffer.from(new Uint8Array(400).buffer)
    body.add(chunk)
    expect(body.close().buffer).toBe(chunk.buffer)
  })

  it('B25 keep no larger buffer in memory of which they are a small part', () => {
    const body = createOpenBodies(1_000)(() => {})
    const read = Buffer.alloc(65_536, 'a')
    body.add(read.subarray(100, 101))
    const bytes = body.close()
    expect([bytes.toString(), bytes.buffer.byteLength]).toEqual(['a', 1])
  })

  it.each([1, 7, 999])(
    'B25 take at most twice their size, and no more than the limit, in chunks of %j',
    (size) => {
      const body = createOpenBodies(1_000)(() => {})
      for (let at = 0; at < 999; at += size) body.add(Buffer.from('x'.repeat(Math.min(size, 999 - at))))
      const bytes = body.close()
      expect(bytes.toString()).toBe('x'.repeat(999))
      expect(bytes.buffer.byteLength).toBeLessThanOrEqual(1_000)
    },
  )
})

describe('B25 the bytes of all bodies', () => {
  it('are bounded by refusing one of the largest, the oldest of these, however old the small ones are', () => {
    const openBody = createOpenBodies(1_000, 3_000)
    const refused: string[] = []
    const open = (name: string, size: number) => {
      const body = openBody(() => refused.push(name))
      const grow = (by: number) => body.add(Buffer.alloc(by))
      grow(size)
      return grow
    }
    const grow = open('small', 200)
    open('large', 900)
    open('later', 800)
    open('last', 700)
    expect(refused).toEqual([])
    open('more', 700)
    grow(200)
    expect(refused).toEqual(['large'])
    open('again', 500)
    expect(refused).toEqual(['large', 'later'])
  })
})

/** A middleware that counts the bytes of all bodies, and reads nothing before the router does. */
function countsBytes() {
  let bytes = 0
  const count: Before = (req, _res, next) => {
    next()
    req.on('data', (chunk) => {
      bytes += chunk.length
    })
  }
  return { count, bytes: () => bytes }
}
