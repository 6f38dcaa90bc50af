import { createHmac } from 'node:crypto'
import { brotliCompressSync, deflateSync, gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from '@jest/globals'
import request from 'supertest'
import type { VerifyDelivery } from '../../lib/express/take-delivery.js'
import {
  type Before,
  chunked,
  EVENT,
  EXPRESSES,
  exchange,
  head,
  receiverOn,
  SECRET,
  TEXT,
} from '../support/receiving/receivers.js'
import { gate, until } from '../support/until.js'

describe.each(EXPRESSES)('the receiver on %s', (_name, express) => {
  describe('with verifyDelivery', () => {
    it('passes the request and the text to it, before anything is stored', async () => {
      const seen: unknown[] = []
      const { kept, post } = await receiverOn(express, {
        options: {
          verifyDelivery: ({ req, text }) => {
            seen.push(req.headers['x-signature'], text, kept.length)
            return true
          },
        },
      })
      await post(EVENT, { 'x-signature': 's' }).expect(200)
      expect(seen).toEqual(['s', JSON.stringify(EVENT), 0])
      expect(kept).toHaveLength(1)
    })

    it('B25 turns away what finds no room while it checks other bodies, small ones only at twice as much', async () => {
      const hold = gate()
      let begun = 0
      const { post, kept, outcomes } = await receiverOn(express, {
        options: {
          openBodiesBytes: 40_000,
          async verifyDelivery() {
            begun++
            await hold.opened
            return true
          },
        },
      })
      const send = async (size: number) => {
        const [before, ended] = [begun, outcomes.length]
        const reply = post(JSON.stringify('x'.repeat(size - 2))).then(({ status }) => status)
        await until('it is checked, or refused', () => begun > before || outcomes.length > ended)
        return { reply }
      }
      const sent = []
      for (const size of [30_000, 20_000, 16_000, 16_000, 16_000, 16_000]) sent.push(await send(size))
      expect([begun, outcomes]).toEqual([4, ['delivery_not_accepted', 'delivery_not_accepted']])
      hold.open()
      expect(await Promise.all(sent.map(({ reply }) => reply))).toEqual([200, 503, 200, 200, 200, 503])
      expect(await (await send(40_000)).reply).toBe(200)
      expect(kept).toHaveLength(5)
    })

    it('B25 has room again for what it has not answered in time, and checks nothing that is not JSON', async () => {
      let begun = 0
      const { post } = await receiverOn(express, {
        options: {
          ...{ openBodiesBytes: 40_000, acceptTimeoutMs: 50 },
          verifyDelivery: () => (begun++ < 2 ? new Promise(() => {}) : true),
        },
      })
      const long = JSON.stringify('x'.repeat(30_000))
      for (const status of [503, 503, 200]) await post(long).expect(status)
      await post('').expect(400)
      await post('{').expect(400)
      expect(begun).toBe(3)
    })

    describe('B103 a signature over the body', () => {
      const bom = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(` ${TEXT}\r\n`)])
      const gzipped = gzipSync(TEXT)
      const raw = () => express.raw({ type: () => true })

      it.each([
        ['with spaces and a byte order mark', [], bom, ''],
        ['that is an array with a doubled key', [], Buffer.from('[{"a":1,"a":2}]'), ''],
        ['in gzip', [], gzipped, 'gzip'],
        ['in deflate', [], deflateSync(TEXT), 'deflate'],
        ['in br', [], brotliCompressSync(TEXT), 'br'],
        ['behind a parser of other types', [express.json({ type: 'application/never' })], bom, ''],
        ['behind express.raw()', [raw()], bom, ''],
        ['behind express.raw(), as identity', [raw()], bom, 'Identity'],
        [
          'behind express.json() that keeps rawBody',
          [express.json({ verify: keeps, strict: false })],
          bom,
          '',
        ],
        ['behind a host that keeps the compressed bytes', [readsAs(gzipped)], gzipped, 'gzip'],
        ['behind a middleware that pauses', [pauses], bom, ''],
      ] as [string, Before[], Buffer, string][])(
        'can be checked %s',
        async (_what, before, sent, encoding) => {
          const seen: (Buffer | undefined)[] = []
          const { post, port } = await receiverOn(express, {
            before,
            options: { verifyDelivery: signedIn(seen) },
          })
          const headers = {
            'x-signature': signatureOf(sent),
            ...(encoding ? { 'content-encoding': encoding } : {}),
          }
          // supertest's parser takes no byte order mark, so the status decides.
          await post(sent, headers).expect(200)
          await post(sent, { ...headers, 'x-signature': signatureOf(Buffer.from('another')) }).expect(403)
          if (sent === bom && before.length === 0) {
            const message = head({
              ...headers,
              'content-type': 'application/json',
              'transfer-encoding': 'chunked',
            })
            expect(await exchange(port, message + chunked(sent.toString(), 7))).toMatch(/ 200 /)
          }
          for (const bytes of seen) expect(bytes?.equals(sent)).toBe(true)
        },
      )

      it.each([
        ['express.json()', [express.json()], TEXT, ''],
        ['express.text()', [express.text({ type: () => true })], TEXT, ''],
        ['express.raw() that has decompressed it', [raw()], gzipped, 'gzip'],
        [
          'express.json() that has decompressed what it keeps',
          [express.json({ verify: keeps })],
          gzipped,
          'gzip',
        ],
        ['a middleware that has decoded it', [decodes], TEXT, ''],
        [
          'a middleware that has decompressed it and says so',
          [decompresses('content-encoding')],
          gzipped,
          'gzip',
        ],
        [
          'a middleware that has decompressed it and deletes its length too',
          [decompresses('content-encoding', 'content-length')],
          gzipped,
          'gzip',
        ],
        [
          'a middleware that has decompressed it and says that it never was',
          [decompressesQuietly],
          gzipped,
          'gzip',
        ],
        ['a host that has read something else', [readsAs(Buffer.from(` ${TEXT}`))], TEXT, ''],
      ] as [string, Before[], Buffer | string, string][])(
        'cannot be checked behind %s, so there are no bytes',
        async (_what, before, sent, encoding) => {
          const seen: (Buffer | undefined)[] = []
          const verifyDelivery: VerifyDelivery = ({ bytes }) => seen.push(bytes) > 0
          const { post } = await receiverOn(express, { before, options: { verifyDelivery } })
          await post(sent, encoding ? { 'content-encoding': encoding } : {}).expect(200)
          expect(seen).toEqual([undefined])
        },
      )
    })

    it('stores a delivery that it approves later, even behind express.json(), where it gets no text', async () => {
      const seen: unknown[] = []
      const { kept, post } = await receiverOn(express, {
        before: [express.json()],
        options: {
          verifyDelivery: async ({ text }) => {
            seen.push(text)
            return true
          },
        },
      })
      await post(EVENT).expect(200)
      expect(seen).toEqual([undefined])
      expect(kept).toHaveLength(1)
    })

    it.each([false, undefined, null, 'yes', 1])('refuses with 403 if it returns %j', async (answer) => {
      for (const verifyDelivery of [() => answer as boolean, async () => answer as boolean]) {
        const { kept, post } = await receiverOn(express, { options: { verifyDelivery } })
        const reply = await post(EVENT).expect(403)
        expect(reply.body.code).toBe('delivery_refused')
        expect(kept).toEqual([])
      }
    })

    it('replies 503 at once if it rejects, or the write after it', async () => {
      const failure = new Error('no key')
      for (const options of [
        { verifyDelivery: () => Promise.reject(failure) },
        { verifyDelivery: () => true, accept: () => Promise.reject(failure) },
      ]) {
        const { post } = await receiverOn(express, { options: { ...options, acceptTimeoutMs: 60_000 } })
        await post(EVENT).timeout(3_000).expect(503)
      }
    })

    it('replies 503 if it throws or takes too long, and then stores nothing', async () => {
      let hold = gate()
      for (const verifyDelivery of [
        () => {
          throw new Error('no key')
        },
        () => Promise.reject(new Error('no key')),
        () => hold.opened.then(() => true),
      ]) {
        hold = gate()
        const { kept, post } = await receiverOn(express, { options: { verifyDelivery, acceptTimeoutMs: 50 } })
        await post(EVENT).expect(503)
        hold.open()
        await hold.opened
        await new Promise(setImmediate)
        expect(kept).toEqual([])
      }
    })
  })

  it('ignores a request that another middleware has already answered', async () => {
    const hold = gate()
    const answers: Before = (_req, res, next) => {
      next()
      void until('it is stored', () => kept.length === 1).then(() => res.status(504).end('too slow'))
    }
    const { post, kept, outcomes } = await receiverOn(express, { before: [answers], passed: hold.opened })
    await post(EVENT).expect(504, 'too slow')
    hold.open()
    await until('it has happened', () => outcomes.length === 1)
  })

  it('A22 counts a request once when a method that was replaced throws, and leaves no deadline behind', async () => {
    const replaces: Before = (req, _res, next) => {
      req.on = () => {
        throw new Error('replaced')
      }
      next()
    }
    const { outcomes, post } = await receiverOn(express, {
      before: [replaces],
      options: { bodyTimeoutMs: 50 },
    })
    await post(EVENT).catch(() => {})
    await new Promise((resolve) => setTimeout(resolve, 150))
    expect(outcomes).toEqual(['delivery_not_accepted'])
  })

  it('A22 sends its own headers behind a middleware whose writeHead does not support lists', async () => {
    const replaces: Before = (_req, res, next) => {
      const { writeHead } = res
      // on-headers before 1.1.0, which compression and express-session use, does not.
      res.writeHead = ((status: number, headers?: object) => {
        for (const [name, value] of Object.entries(headers ?? {})) res.setHeader(`x-${name}`, value)
        return writeHead.call(res, status)
      }) as typeof res.writeHead
      next()
    }
    const { post } = await receiverOn(express, { before: [replaces] })
    const reply = await post(EVENT).expect(200)
    expect(reply.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(reply.text.length),
    })
    expect(Object.keys(reply.headers).filter((name) => /^x-\d/.test(name))).toEqual([])
  })

  it('A6, L4 never repeats the secret in a reply', async () => {
    const { app, post } = await receiverOn(express, {
      options: { accept: () => Promise.reject(new Error(SECRET)) },
    })
    for (const reply of [await post('{}'), await post('{'), await request(app).get(`/hooks/${SECRET}`)]) {
      expect(reply.status).toBeGreaterThanOrEqual(400)
      expect(JSON.stringify([reply.headers, reply.text])).not.toContain(SECRET)
    }
  })
})

function signatureOf(bytes: Buffer): string {
  return createHmac('sha256', 'key').update(bytes).digest('hex')
}

/** Approves a delivery with a right signature. */
function signedIn(seen: (Buffer | undefined)[]): VerifyDelivery {
  return ({ req, bytes }) => {
    seen.push(bytes)
    return bytes !== undefined && signatureOf(bytes) === req.headers['x-signature']
  }
}

/** For the option `verify` of a body parser. */
function keeps(req: object, _res: unknown, bytes: Buffer): void {
  Object.assign(req, { rawBody: bytes })
}

/** A middleware that keeps the decompressed bytes and deletes the headers that are no longer true. */
function decompresses(...untrue: string[]): Before {
  return (req, _res, next) => {
    const chunks: Buffer[] = []
    req
      .on('data', (chunk) => chunks.push(chunk))
      .on('end', () => {
        Object.assign(req, { rawBody: gunzipSync(Buffer.concat(chunks)) })
        for (const name of untrue) delete req.headers[name]
        next()
      })
  }
}

/** A middleware that keeps the decompressed bytes and sets the headers that would be true of them. */
function decompressesQuietly(...[req, res, next]: Parameters<Before>) {
  decompresses()(req, res, () => {
    const { rawBody } = req as typeof req & { rawBody: Buffer }
    Object.assign(req.headers, { 'content-encoding': 'identity', 'content-length': String(rawBody.length) })
    next()
  })
}

/** A host that reads every request and keeps its bytes. */
function readsAs(rawBody: Buffer): Before {
  return (req, _res, next) => {
    req.resume().on('end', () => {
      Object.assign(req, { rawBody, body: EVENT })
      next()
    })
  }
}

function pauses(...[req, _res, next]: Parameters<Before>): void {
  req.pause()
  setImmediate(next)
}

function decodes(...[req, _res, next]: Parameters<Before>): void {
  req.setEncoding('utf8')
  next()
}
