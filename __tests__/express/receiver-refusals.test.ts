import { describe, expect, it } from '@jest/globals'
import request from 'supertest'
import type { ReceiverOptions } from '../../lib/express/take-delivery.js'
import { closed, dial, EVENT, EXPRESSES, receiverOn, SECRET } from '../support/receiving/receivers.js'
import { gate } from '../support/until.js'

describe.each(EXPRESSES)('the receiver on %s', (_name, express) => {
  describe('A1 answers 404 with an empty body', () => {
    it.each([
      '',
      '/',
      '?',
      `?${SECRET}`,
      `/x?secret=${SECRET}`,
      `/${SECRET.slice(1)}`,
      `/${SECRET}x`,
      `/${SECRET}//`,
      `/${SECRET}/x`,
      `/x/${SECRET}`,
      `/${SECRET.toLowerCase()}`,
      `/${SECRET};x`,
      `/${SECRET}%00`,
      `/${SECRET}%2f`,
      '/%',
      '/%E0%A4%A',
      '/%ff%fe',
      `/${'x'.repeat(10_000)}`,
      '/__proto__',
    ])('A4 at <mount>%s', async (path) => {
      const { app, kept } = await receiverOn(express)
      for (const method of ['post', 'get', 'put'] as const) {
        const reply = await request(app)[method](`/hooks${path}`)
        expect([reply.status, reply.text]).toEqual([404, ''])
      }
      expect(kept).toEqual([])
    })

    it('before the body is sent', async () => {
      const { kept, port } = await receiverOn(express)
      const socket = await dial(port)
      socket.write('POST /hooks/wrong HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n')
      const reply = await closed(socket)
      expect(reply).toMatch(/^HTTP\/1\.1 404 /)
      expect(reply).toMatch(/\r\n\r\n$/)
      expect(kept).toEqual([])
    })

    it('also to a sender that has already sent a large body', async () => {
      const { app } = await receiverOn(express)
      for (let i = 0; i < 5; i++) {
        await request(app)
          .post('/hooks/wrong')
          .type('json')
          .send(`"${'x'.repeat(500_000)}"`)
          .expect(404)
      }
    })
  })

  it.each(['get', 'put', 'patch', 'delete', 'options', 'head'] as const)(
    'A7 answers %s with 405',
    async (method) => {
      const { app, kept } = await receiverOn(express)
      const reply = await request(app)[method](`/hooks/${SECRET}`)
      expect(reply.status).toBe(405)
      expect(reply.headers).toMatchObject({ allow: 'POST', 'content-type': 'application/problem+json' })
      if (method !== 'head') expect(reply.body).toMatchObject({ status: 405, code: 'method_not_allowed' })
      expect(kept).toEqual([])
    },
  )

  describe('a delivery that cannot be stored', () => {
    const notKept = async (options: Partial<ReceiverOptions>) => {
      const { outcomes, post } = await receiverOn(express, { options })
      const reply = await post(EVENT)
      expect(reply.status).toBe(503)
      expect(reply.headers).toMatchObject({ 'retry-after': '5', 'content-type': 'application/problem+json' })
      expect(reply.body).toMatchObject({ status: 503, code: 'delivery_not_accepted' })
      expect(reply.text).not.toMatch(/postgres:|hunter/)
      if (!options.count) expect(outcomes).toEqual(['delivery_not_accepted'])
    }

    it('gets 503 if accept rejects, throws or returns nonsense, without the text of the error', async () => {
      const failure = new Error('connection to postgres://user:hunter2@db refused')
      await notKept({ accept: () => Promise.reject(failure) })
      await notKept({
        accept: () => {
          throw failure
        },
      })
      await notKept({ accept: async () => [] })
      await notKept({ accept: async () => undefined as never })
    })

    it.each([
      ['success', undefined],
      ['failure', new Error('too late for anybody to hear')],
    ])('gets 503 if accept takes too long, and its later %s is not counted', async (_what, result) => {
      const hold = gate()
      const counted: string[] = []
      await notKept({
        acceptTimeoutMs: 50,
        accept: (envelopes) => hold.opened.then(() => envelopes.map(() => ({ id: 'late', issues: null }))),
        count: (outcome) => void counted.push(outcome),
      })
      if (result) hold.fail(result)
      else hold.open()
      await hold.opened.catch(() => {})
      await new Promise(setImmediate)
      expect(counted).toEqual(['delivery_not_accepted'])
    })

    it('or that was stored gets its reply even if the count of it throws', async () => {
      const count = () => {
        throw new Error('no meter')
      }
      const stored = await receiverOn(express, { options: { count } })
      await stored.post(EVENT).expect(200)
      const failing = await receiverOn(express, {
        options: { count, accept: () => Promise.reject(new Error('disk full')) },
      })
      await failing.post(EVENT).expect(503)
    })

    it('is reported to the app', async () => {
      const failure = new Error('disk full')
      const errors: unknown[] = []
      const { post } = await receiverOn(express, {
        options: {
          accept: () => Promise.reject(failure),
          count: (_outcome, error) => errors.push(error?.cause),
        },
      })
      await post(EVENT).expect(503)
      expect(errors).toEqual([failure])
    })
  })
})
