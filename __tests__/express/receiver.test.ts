import { describe, expect, it } from '@jest/globals'
import express5 from 'express'
import request from 'supertest'
import type { Envelope } from '../../lib/base/envelope.js'
import { createSecretSearch } from '../../lib/express/delivery-secret.js'
import { dial, EVENT, EXPRESSES, receiverOn, SECRET, TEXT } from '../support/receiving/receivers.js'
import { until } from '../support/until.js'

const NEXT_SECRET = 'p5GdXa-1KuEo6NsBjV4tWq'

it('The router that is called instead of passed on throws an error that says so', async () => {
  const { receiver } = await receiverOn(express5)
  expect(() => (receiver as () => void)()).toThrow('pass marketplace.router to app.use, do not call it')
})

describe.each(EXPRESSES)('the receiver on %s', (_name, express) => {
  describe('stores', () => {
    it('one envelope, and replies with its id', async () => {
      const { calls, post } = await receiverOn(express)
      const reply = await post(EVENT).expect(200)
      expect(reply.body).toEqual({ received: true, id: 'e1' })
      expect(reply.headers).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        'content-length': String(reply.text.length),
      })
      expect(calls).toEqual([[{ value: EVENT, text: TEXT }]])
    })

    it('the text of the body as it was sent', async () => {
      const { kept, post } = await receiverOn(express)
      const text = ' {"price": 10.00, "price": 1e2,\n "n":12345678901234567890}'
      await post(text).expect(200)
      expect(kept[0]?.text).toBe(text)
    })

    it('B12 an array as one envelope each, in one call, and replies with all ids', async () => {
      const { calls, post } = await receiverOn(express)
      const reply = await post([EVENT, null, 7]).expect(200)
      expect(reply.body).toEqual({ received: true, id: 'e1', ids: ['e1', 'e2', 'e3'] })
      expect(calls).toEqual([[EVENT, null, 7].map((value) => ({ value, text: JSON.stringify(value) }))])
    })

    it('an array of one as an array', async () => {
      const { post } = await receiverOn(express)
      const reply = await post([EVENT])
      expect(reply.body).toEqual({ received: true, id: 'e1', ids: ['e1'] })
    })

    it('up to 1,000 elements separately, and a longer array as one', async () => {
      const { calls, post } = await receiverOn(express)
      await post(Array(1_000).fill(0)).expect(200)
      await post(Array(1_001).fill(0)).expect(200)
      expect(calls.map((envelopes) => envelopes.length)).toEqual([1_000, 1])
    })

    it('B11 an unrecognised delivery, with the reason', async () => {
      const accept = async (envelopes: readonly Envelope[]) =>
        envelopes.map(({ value }, i) => ({
          id: `e${i}`,
          issues: value === EVENT.data ? null : ['odd', 'very odd'],
        }))
      const { post } = await receiverOn(express, { options: { accept } })
      const one = await post({}).expect(200)
      expect(one.body).toEqual({ received: true, id: 'e0', issues: ['odd', 'very odd'] })
      const two = await post([1, 2]).expect(200)
      expect(two.body.issues).toEqual(['[0] odd', '[0] very odd', '[1] odd', '[1] very odd'])
    })

    it('deliveries one after the other on one connection', async () => {
      const { kept, port } = await receiverOn(express)
      const socket = await dial(port)
      const message = `POST /hooks/${SECRET} HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}`
      let text = ''
      socket.on('data', (data) => {
        text += data
      })
      socket.write(message.repeat(3))
      await until('it has happened', () => text.match(/"received":true/g)?.length === 3)
      expect(kept).toHaveLength(3)
    })
  })

  describe('accepts the secret', () => {
    it.each(['', '/', '?a=1&a=2&a[b]=%', '/?x', '?%E0%A4%A'])('A4 with %j after it', async (suffix) => {
      const { app, kept } = await receiverOn(express)
      await request(app).post(`/hooks/${SECRET}${suffix}`).send(EVENT).expect(200)
      expect(kept).toHaveLength(1)
    })

    it('in percent encoding', async () => {
      const { app } = await receiverOn(express)
      await request(app)
        .post(`/hooks/${SECRET.replace('_', '%5F')}`)
        .send(EVENT)
        .expect(200)
    })

    it('at any mount path of the router, and each instance only its own', async () => {
      const app = express()
      const [root, nested, other] = [
        await receiverOn(express),
        await receiverOn(express),
        await receiverOn(express, { options: { indexOfSecret: createSecretSearch([NEXT_SECRET]) } }),
      ]
      app.use('/a/b', express.Router().use('/c', nested.receiver))
      app.use('/other', other.receiver)
      app.use(root.receiver)
      await request(app).post(`/${SECRET}`).send(EVENT).expect(200)
      await request(app).post(`/a/b/c/${SECRET}`).send(EVENT).expect(200)
      await request(app).post(`/other/${NEXT_SECRET}`).send(EVENT).expect(200)
      await request(app).post(`/other/${SECRET}`).send(EVENT).expect(404)
      expect([root, nested, other].map(({ kept }) => kept.length)).toEqual([1, 1, 1])
    })

    it('A3 old or new during a rotation, and only the new one afterwards', async () => {
      const { app } = await receiverOn(express, {
        options: { indexOfSecret: createSecretSearch([NEXT_SECRET, SECRET]) },
      })
      for (const secret of [SECRET, NEXT_SECRET]) {
        await request(app).post(`/hooks/${secret}`).send(EVENT).expect(200)
      }
      const { app: later } = await receiverOn(express, {
        options: { indexOfSecret: createSecretSearch([NEXT_SECRET]) },
      })
      await request(later).post(`/hooks/${SECRET}`).send(EVENT).expect(404)
      await request(later).post(`/hooks/${NEXT_SECRET}`).send(EVENT).expect(200)
    })
  })

  it('counts requests with a wrong secret, and notes by which secret a delivery came', async () => {
    const secrets: unknown[] = []
    const { app, outcomes, post } = await receiverOn(express, {
      options: {
        indexOfSecret: (presented) => (presented === SECRET ? 7 : -1),
        accept: async (_envelopes, secret) => {
          secrets.push(secret)
          return [{ id: 'e1', issues: null }]
        },
      },
    })
    await request(app).post('/hooks/wrong').send(EVENT).expect(404)
    await post(EVENT).expect(200)
    expect([outcomes, secrets]).toEqual([['secret_wrong', 'received'], [7]])
  })
})
