import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from '@jest/globals'
import {
  chunked,
  EVENT,
  EXPRESSES,
  exchange,
  head,
  receiverOn,
  TEXT,
} from '../support/receiving/receivers.js'

describe.each(EXPRESSES)('a body on %s', (_name, express) => {
  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json; charset=utf8',
    'Application/JSON; Charset=US-ASCII',
    'application/cloudevents+json',
    'text/plain',
    'text/plain; charset=utf-8',
    'text/json',
    'application/octet-stream',
    'application/x-www-form-urlencoded',
    'nonsense',
  ])('B4 is accepted with the content type %s', async (contentType) => {
    const { post, kept } = await receiverOn(express)
    await post(TEXT, { 'content-type': contentType }).expect(200)
    expect(kept).toEqual([{ value: EVENT, text: TEXT }])
  })

  it('B4 is accepted without a content type', async () => {
    const { port, kept } = await receiverOn(express)
    const message = head({ 'content-length': Buffer.byteLength(TEXT) }) + Buffer.from(TEXT).toString('latin1')
    const reply = await exchange(port, message)
    expect(reply).toMatch(/^HTTP\/1\.1 200 /)
    expect(kept).toEqual([{ value: EVENT, text: TEXT }])
  })

  it.each([
    'application/json; charset=utf-16',
    'application/json; charset=utf-16le',
    'text/plain; charset=iso-8859-1',
    'application/json; charset=nonsense',
    'application/json; charset=utf-8; charset=utf-16',
    'multipart/form-data; boundary=x',
    'MULTIPART/mixed',
  ])('B4 is refused with 415 for the content type %s', async (contentType) => {
    for (const before of [[], [express.raw({ type: () => true })]]) {
      const { post, kept } = await receiverOn(express, { before })
      const reply = await post(TEXT, { 'content-type': contentType })
      expect(reply.status).toBe(415)
      expect(kept).toEqual([])
    }
  })

  it.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['GZIP', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['identity', Buffer.from],
    ['', Buffer.from],
  ])('is accepted with the content encoding %j', async (encoding, compress: (text: string) => Buffer) => {
    const { post, kept } = await receiverOn(express)
    await post(compress(TEXT), { 'content-encoding': encoding }).expect(200)
    expect(kept).toEqual([{ value: EVENT, text: TEXT }])
  })

  it.each(['gzip, gzip', 'identity, gzip', 'gzip,', 'zstd', 'compress', '*'])(
    'B3 is refused with 415 for the content encoding %s',
    async (encoding) => {
      const { post, kept } = await receiverOn(express)
      const reply = await post(TEXT, { 'content-encoding': encoding }).expect(415)
      expect(reply.body.code).toBe('body_encoding_unsupported')
      expect(kept).toEqual([])
    },
  )

  it('is refused with 400 if it cannot be decompressed', async () => {
    const { post, kept } = await receiverOn(express)
    const whole = gzipSync(TEXT)
    for (const [encoding, body] of [
      ['gzip', Buffer.from(TEXT)],
      ['gzip', whole.subarray(0, -4)],
      ['gzip', whole.subarray(0, 12)],
      ['deflate', whole],
      ['br', whole],
    ] as const) {
      const reply = await post(body, { 'content-encoding': encoding }).expect(400)
      expect(reply.body.code).toBe('body_encoding_broken')
    }
    expect(kept).toEqual([])
  })

  it('B3 is limited by its decompressed size, and a bomb is not unpacked', async () => {
    const { post, kept } = await receiverOn(express)
    const bomb = Buffer.alloc(50 * 1024 * 1024, 32)
    for (const [encoding, compress] of [
      ['gzip', gzipSync],
      ['deflate', deflateSync],
      ['br', (bytes: Buffer) => brotliCompressSync(bytes, { params: { 1: 1 } })],
    ] as const) {
      const body = compress(bomb)
      if (body.length > 65_536) continue
      const reply = await post(body, { 'content-encoding': encoding }).expect(413)
      expect(reply.body.code).toBe('body_too_large')
    }
    await post(gzipSync(`"${'x'.repeat(65_534)}"`), { 'content-encoding': 'gzip' }).expect(200)
    await post(gzipSync(`"${'x'.repeat(65_535)}"`), { 'content-encoding': 'gzip' }).expect(413)
    expect(kept).toHaveLength(1)
  })

  it('B1, B2 may have exactly the size of the limit, with a content length or in chunks', async () => {
    const { post, port, kept } = await receiverOn(express)
    const fits = `"${'é'.repeat(32_767)}"`
    await post(fits).expect(200)
    await post(`${fits} `).expect(413)
    expect(await exchange(port, head({ 'transfer-encoding': 'chunked' }) + chunked(fits, 1_000))).toMatch(
      / 200 /,
    )
    expect(
      await exchange(port, head({ 'transfer-encoding': 'chunked' }) + chunked(`${fits} `, 1_000)),
    ).toMatch(/ 413 /)
    expect(kept).toHaveLength(2)
  })

  it('loses its byte order mark', async () => {
    const { post, kept } = await receiverOn(express)
    await post(`\ufeff${TEXT}`).expect(200)
    expect(kept).toEqual([{ value: EVENT, text: TEXT }])
  })

  it.each([
    ['an overlong form', [0xc0, 0xaf]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['a lone continuation byte', [0x80]],
    ['a cut character', [0xe2, 0x82]],
  ])('B6 is refused with 400 if it is not UTF-8: %s', async (_what, bytes) => {
    for (const before of [[], [express.raw({ type: () => true })]]) {
      const { post, kept } = await receiverOn(express, { before })
      const body = Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bytes), Buffer.from('"}')])
      const reply = await post(body).expect(400)
      expect(reply.body.code).toBe('body_not_utf8')
      expect(kept).toEqual([])
    }
  })

  it.each(['', ' ', '{', '{"a":}', 'undefined', "{'a':1}", '<html>', '[1', '\u0000', '{"a":1}x'])(
    'B12 is refused with 400 if it is not JSON: %j',
    async (text) => {
      const { post, kept } = await receiverOn(express)
      const reply = await post(text).expect(400)
      expect(reply.body.code).toBe('body_not_json')
      if (text.length > 3) expect(reply.text).not.toContain(text)
      expect(kept).toEqual([])
    },
  )
})
