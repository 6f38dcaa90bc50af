import { gzipSync } from 'node:zlib'
import { describe, expect, it } from '@jest/globals'
import {
  type Before,
  chunked,
  EVENT,
  EXPRESSES,
  exchange,
  express4,
  head,
  receiverOn,
  TEXT,
} from '../support/receiving/receivers.js'

describe.each(EXPRESSES)('a body on %s', (_name, express) => {
  describe("B5 behind the app's own middleware", () => {
    it.each([
      ['json', () => express.json(), JSON.stringify(EVENT)],
      ['json of any type', () => express.json({ type: () => true, strict: false }), JSON.stringify(EVENT)],
      ['raw', () => express.raw({ type: () => true }), TEXT],
      ['text', () => express.text({ type: () => true }), TEXT],
      ['json for something else', () => express.json({ type: 'application/never' }), TEXT],
      ['raw for something else', () => express.raw(), TEXT],
      ['urlencoded', () => express.urlencoded({ extended: false }), TEXT],
    ])('%s: is stored once', async (_what, middleware, text) => {
      const { post, port, kept } = await receiverOn(express, { before: [middleware()] })
      await post(TEXT).expect(200)
      await post(gzipSync(TEXT), { 'content-encoding': 'gzip' }).expect(200)
      const message = head({ 'content-type': 'application/json', 'transfer-encoding': 'chunked' })
      expect(await exchange(port, message + chunked(TEXT, 10))).toMatch(/ 200 /)
      expect(kept).toEqual([1, 2, 3].map(() => ({ value: EVENT, text })))
    })

    it('json, then text/plain: the router reads the body that json did not read', async () => {
      const { post, kept } = await receiverOn(express, {
        before: [express.json(), express.urlencoded({ extended: false })],
      })
      await post(TEXT, { 'content-type': 'text/plain' }).expect(200)
      await post(TEXT, { 'content-type': 'text/plain; charset=utf-8' }).expect(200)
      expect(kept).toEqual([1, 2].map(() => ({ value: EVENT, text: TEXT })))
    })

    it('an empty body stays an empty body', async () => {
      for (const middleware of [
        express.json(),
        express.raw({ type: () => true }),
        express.text({ type: () => true }),
      ]) {
        const { post, port, kept } = await receiverOn(express, { before: [middleware] })
        expect((await post('')).body.code).toBe('body_not_json')
        expect(await exchange(port, head({ 'content-type': 'application/json' }))).toMatch(/ 400 /)
        expect(kept).toEqual([])
      }
    })

    it('a body of {} is stored unchanged', async () => {
      const { post, kept } = await receiverOn(express, { before: [express.json()] })
      await post('{}').expect(200)
      expect(kept).toEqual([{ value: {}, text: '{}' }])
    })

    it('a body of {} without a content length is stored if express.json() marks it as read', async () => {
      const { port, kept } = await receiverOn(express, { before: [express.json()] })
      const message = head({ 'content-type': 'application/json', 'transfer-encoding': 'chunked' })
      const reply = await exchange(port, message + chunked('{}', 1))
      // In Express 5, nothing distinguishes this object from one of another middleware.
      expect(reply).toMatch(express === express4 ? / 200 / : / 500 /)
      expect(kept).toHaveLength(express === express4 ? 1 : 0)
    })

    it('has the same limit if the size is known', async () => {
      const big = `"${'x'.repeat(70_000)}"`
      for (const middleware of [
        express.json({ strict: false }),
        express.raw({ type: () => true }),
        express.text({ type: () => true }),
      ]) {
        const { post, kept } = await receiverOn(express, { before: [middleware] })
        await post(big).expect(413)
        await post(gzipSync(big), { 'content-encoding': 'gzip' }).expect((reply) => {
          // The size of a value that was parsed from compressed JSON is not known.
          expect(reply.status).toBe(kept.some(({ text }) => text === null) ? 200 : 413)
        })
      }
    })

    it.each([
      ['and left nothing', () => {}],
      [
        'and left an empty object',
        (req: { body?: unknown }) => {
          req.body = {}
        },
      ],
    ])('one that has read the body %s: fails with body_already_read', async (_what, leave) => {
      const { post, port, kept } = await receiverOn(express, {
        before: [
          (req, _res, next) => {
            req.resume().on('end', () => {
              leave(req)
              next()
            })
          },
        ],
      })
      const reply = await post(TEXT).expect(500)
      expect(reply.body).toMatchObject({
        code: 'body_already_read',
        detail: expect.stringMatching(/mount .* before/),
      })
      const message = head({ 'content-type': 'application/json', 'transfer-encoding': 'chunked' })
      expect(await exchange(port, message + chunked(TEXT, 10))).toMatch(/ 500 /)
      expect(kept).toEqual([])
    })

    describe.each([
      ['application/x-www-form-urlencoded', () => express.urlencoded({ extended: true })],
      ['application/x-www-form-urlencoded', () => express.urlencoded({ extended: false })],
      ['application/json', () => express.urlencoded({ extended: true, type: () => true })],
      ['text/plain; charset=utf-8', () => express.urlencoded({ extended: false, type: () => true })],
    ])('B20 as %s, a parser of forms', (contentType, middleware) => {
      it.each([
        TEXT,
        `[${TEXT}]`,
        `[${TEXT},${TEXT}]`,
        `[[1,2],${TEXT}]`,
        ` ${TEXT}`,
        JSON.stringify({ ...EVENT, data: { ...EVENT.data, a: 'x=1&y=[2]', b: [{ c: [1] }] } }),
      ])(
        'a parser that takes JSON for a form is refused, and nothing mangled is stored: %s',
        async (text) => {
          const { post, kept } = await receiverOn(express, { before: [middleware()] })
          const reply = await post(text, { 'content-type': contentType }).expect(415)
          expect(reply.body).toMatchObject({
            code: 'content_type_unsupported',
            detail: expect.stringMatching(/parsed it as a form .* mount the marketplace router before it/),
          })
          expect(reply.text).not.toContain('business_id')
          expect(kept).toEqual([])
        },
      )
    })

    it.each([
      ['a form', 'application/x-www-form-urlencoded', { '7': '' }],
      ['a form', 'Application/X-WWW-Form-Urlencoded ;charset=utf-8', { a: ['1', '2'] }],
      ['XML', 'text/xml', { root: { entity_name: ['application'] } }],
      ['XML', 'application/soap+xml; charset=utf-8', { root: {} }],
      ['XML', 'application/xml', ['root']],
    ])('B20 one that has parsed %s is refused: %s %j', async (_what, contentType, value) => {
      const { post, kept } = await receiverOn(express, { before: [readsAs(() => value)] })
      await post(TEXT, { 'content-type': contentType }).expect(415)
      expect(kept).toEqual([])
    })

    it.each(['application/x-www-form-urlencoded', 'application/xml', 'text/plain', 'application/json'])(
      'B20 one that parses %s as JSON is accepted',
      async (contentType) => {
        const { post, kept } = await receiverOn(express, { before: [express.json({ type: () => true })] })
        await post(TEXT, { 'content-type': contentType }).expect(200)
        await post(`[7,${TEXT}]`, { 'content-type': contentType }).expect(200)
        expect(kept).toEqual([EVENT, 7, EVENT].map((value) => ({ value, text: JSON.stringify(value) })))
      },
    )

    it.each([
      ['bytes', (bytes: Buffer) => bytes],
      ['text', (bytes: Buffer) => bytes.toString()],
    ])(
      'B20 one that stores the body as %s in rawBody: the JSON is accepted as it was sent',
      async (_what, as) => {
        const verify = (req: object, _res: unknown, bytes: Buffer) =>
          void Object.assign(req, { rawBody: as(bytes) })
        for (const [middleware, contentType] of [
          [express.urlencoded({ extended: true, verify }), 'application/x-www-form-urlencoded'],
          [express.json({ verify }), 'application/json'],
        ] as const) {
          const { post, kept } = await receiverOn(express, { before: [middleware] })
          await post(TEXT, { 'content-type': contentType }).expect(200)
          await post(gzipSync(TEXT), { 'content-type': contentType, 'content-encoding': 'gzip' }).expect(200)
          await post('{', { 'content-type': contentType }).expect(400)
          expect(kept).toEqual([1, 2].map(() => ({ value: EVENT, text: TEXT })))
        }
      },
    )

    it('B20 one that stores compressed bytes in rawBody: its parsed value is accepted', async () => {
      const rawBody = gzipSync(TEXT)
      const { post, kept } = await receiverOn(express, { before: [readsAs(() => EVENT, { rawBody })] })
      await post(rawBody, { 'content-encoding': 'gzip' }).expect(200)
      expect(kept).toEqual([{ value: EVENT, text: JSON.stringify(EVENT) }])
    })

    it('B20, B1 one that stores too many bytes, or bytes that are not UTF-8, in rawBody is refused', async () => {
      for (const [rawBody, status] of [
        [Buffer.alloc(65_537, 32), 413],
        ['é'.repeat(40_000), 413],
        [Buffer.from([0x22, 0xc0, 0x22]), 400],
      ] as const) {
        const { post, kept } = await receiverOn(express, { before: [readsAs(() => EVENT, { rawBody })] })
        await post(TEXT).expect(status)
        expect(kept).toEqual([])
      }
    })

    it('B21 one that revives dates and numbers: its value is converted back to JSON', async () => {
      class Money {
        cents = 500
      }
      const made: Record<string, () => unknown> = {
        big: () => 12345678901234567890n,
        date: () => new Date(Date.UTC(2024, 0, 1)),
        money: () => new Money(),
        map: () => new Map([[1, 2]]),
        nothing: () => undefined,
        call: () => () => {},
      }
      const reviver = (key: string, value: unknown) => (made[key] ? made[key]() : value)
      const { post, kept } = await receiverOn(express, { before: [express.json({ reviver })] })
      const data = Object.fromEntries(Object.keys(made).map((key) => [key, 1]))
      await post(JSON.stringify({ ...EVENT, data })).expect(200)
      const value = {
        ...EVENT,
        data: {
          big: '12345678901234567890',
          date: '2024-01-01T00:00:00.000Z',
          money: { cents: 500 },
          map: {},
        },
      }
      expect(kept).toEqual([{ value, text: JSON.stringify(value) }])
    })

    it('B21 one that leaves a cycle, or a value that throws when read, does no harm', async () => {
      const circle: Record<string, unknown> = { ...EVENT }
      circle.self = circle
      const trap = {
        toJSON() {
          throw new Error('trap')
        },
      }
      for (const value of [circle, trap]) {
        const { post, kept } = await receiverOn(express, { before: [readsAs(() => value)] })
        await post(TEXT).expect(200)
        expect(kept).toHaveLength(1)
      }
    })

    it('B23 express.text() that inserts replacement characters is detected by the size', async () => {
      const { post, kept } = await receiverOn(express, { before: [express.text({ type: () => true })] })
      const broken = Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0x80]), Buffer.from('"}')])
      const reply = await post(broken).expect(400)
      expect(reply.body.code).toBe('body_not_utf8')
      expect(kept).toEqual([])
      // If the sender sent the character itself, it is valid.
      await post('{"a":"\ufffd"}').expect(200)
      await post(gzipSync('{"a":"\ufffd"}'), { 'content-encoding': 'gzip' }).expect(200)
      expect(kept).toHaveLength(2)
    })

    it('one that is slow, or pauses the request, loses nothing', async () => {
      const { post, kept } = await receiverOn(express, {
        before: [
          (req, _res, next) => {
            req.pause()
            setImmediate(() => setImmediate(next))
          },
        ],
      })
      await post(TEXT).expect(200)
      expect(kept).toEqual([{ value: EVENT, text: TEXT }])
    })

    it('one that has set the encoding of the stream loses nothing', async () => {
      const { post, kept } = await receiverOn(express, {
        before: [
          (req, _res, next) => {
            req.setEncoding('latin1')
            next()
          },
        ],
      })
      await post(TEXT).expect(200)
      expect(kept).toEqual([{ value: EVENT, text: TEXT }])
    })
  })
})

/** A parser that reads the body and leaves a value of its own. */
function readsAs(body: () => unknown, more: object = {}): Before {
  return (req, _res, next) => {
    req.resume().on('end', () => {
      Object.assign(req, more, { body: body() })
      next()
    })
  }
}
