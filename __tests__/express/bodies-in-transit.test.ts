import { gzipSync } from 'node:zlib'
import { describe, expect, it } from '@jest/globals'
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
