import { describe, expect, it } from '@jest/globals'
import type { Fault, Simulator } from '../../lib/testing/index.js'
import { jumpingClock } from '../support/machine/jumping-clock.js'
import { read, readReply, start, tokenReply } from '../support/platform/simulator-calls.js'

describe('faults of calls', () => {
  const cases: [string, Fault, (platform: Simulator, uid: string, token: string) => Promise<unknown>][] = [
    [
      'status answers as configured, with Retry-After',
      { on: 'read', kind: 'status', status: 429, retryAfter: 7 },
      async (platform, uid, token) => {
        const reply = await readReply(platform, uid, token)
        expect([reply.status, reply.headers.get('retry-after')]).toEqual([429, '7'])
        expect(await reply.json()).toMatchObject({ success: false, errors: [{ code: 'fault' }] })
      },
    ],
    [
      'status takes a body and headers of your own',
      { on: 'token', kind: 'status', status: 200, body: { access_token: 7 }, headers: { 'x-a': 'b' } },
      async (platform) => {
        expect((await tokenReply(platform, 'b1')).json).toEqual({ access_token: 7 })
      },
    ],
    [
      'html answers with a page',
      { on: 'platform', kind: 'html' },
      async (platform, uid, token) => {
        const reply = await readReply(platform, uid, token)
        expect(reply.status).toBe(200)
        expect(await reply.text()).toMatch('<!doctype html>')
      },
    ],
    [
      'hang never answers',
      { on: 'read', kind: 'hang' },
      async (platform, uid, token) => {
        const seen = new Promise((resolve) => platform.on('request', resolve))
        const leave = new AbortController()
        const reply = readReply(platform, uid, token, leave.signal)
        await seen
        leave.abort()
        await expect(reply).rejects.toMatchObject({ name: 'AbortError' })
      },
    ],
    [
      'truncate cuts the reply in half',
      { on: 'read', kind: 'truncate' },
      async (platform, uid, token) => {
        const reply = await readReply(platform, uid, token)
        expect(reply.status).toBe(200)
        await expect(reply.text()).rejects.toThrow('terminated')
      },
    ],
    [
      'reset breaks the connection',
      { on: 'read', kind: 'reset' },
      (platform, uid, token) => expect(readReply(platform, uid, token)).rejects.toThrow('fetch failed'),
    ],
    [
      'down refuses everything',
      { on: 'platform', kind: 'down' },
      async (platform, uid, token) => {
        await expect(readReply(platform, uid, token)).rejects.toThrow('fetch failed')
        await expect(tokenReply(platform, 'b1')).rejects.toThrow('fetch failed')
      },
    ],
    [
      'slow answers later',
      { on: 'read', kind: 'slow', ms: 30 },
      async (platform, uid, token) => {
        const before = performance.now()
        expect((await read(platform, uid, token)).status).toBe(200)
        expect(performance.now() - before).toBeGreaterThanOrEqual(29)
      },
    ],
    [
      'wrongRecord answers with another subscription',
      { on: 'read', kind: 'wrongRecord' },
      async (platform, uid, token) => {
        const { records } = await read(platform, uid, token)
        expect(records).toHaveLength(1)
        expect(records[0]?.uid).not.toBe(uid)
      },
    ],
    [
      'extraRecords puts other records first',
      { on: 'read', kind: 'extraRecords' },
      async (platform, uid, token) => {
        const { records } = await read(platform, uid, token)
        expect(records.length).toBeGreaterThan(1)
        expect(records[0]?.uid).not.toBe(uid)
        expect(records.at(-1)?.uid).toBe(uid)
      },
    ],
  ]

  it.each(cases)('%s, until it is removed', async (_title, fault, check) => {
    const { platform } = await start()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const token = platform.appToken('b1')
    const handle = platform.faults.add(fault)
    await check(platform, uid, token)
    handle.remove()
    expect(await read(platform, uid, token)).toMatchObject({ status: 200, records: [{ uid }] })
    expect((await tokenReply(platform, 'b1')).json.access_token).toMatch(/^app-/)
    // A platform that is down never accepts the connection, so it is not a strike.
    if (fault.kind !== 'down') {
      expect(handle.strikes).toBeGreaterThan(0)
      expect(platform.requests[0]).toMatchObject({ faults: [fault.kind], business_uid: 'b1', inFlight: 1 })
    }
  })

  it('answer with one other record, or up to three and then the right one, however many there are', async () => {
    const { platform } = await start()
    const bought = ['b1', 'b2', 'b3', 'b4', 'b5'].map(
      (business_uid) => platform.purchase({ business_uid, payment: 'succeeded' }).uid,
    )
    const uid = String(bought[1])
    const shown = async (kind: 'wrongRecord' | 'extraRecords') => {
      const { remove } = platform.faults.add({ on: 'read', kind })
      const { records } = await read(platform, uid, platform.appToken('b2'))
      remove()
      return records.map((record) => record.uid)
    }
    expect(await shown('wrongRecord')).toEqual([bought[0]])
    expect(await shown('extraRecords')).toEqual([bought[0], bought[2], bought[3], uid])
  })

  it('cuts open connections when the platform goes down', async () => {
    const { platform } = await start()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    platform.faults.add({ on: 'read', kind: 'hang' })
    const seen = new Promise((resolve) => platform.on('request', resolve))
    const reply = readReply(platform, uid, platform.appToken('b1'))
    const broken = expect(reply).rejects.toThrow('fetch failed')
    await seen
    platform.faults.add({ on: 'platform', kind: 'down' })
    await broken
  })

  it('strike a number of times, and only at their target', async () => {
    const { platform } = await start()
    const one = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const two = platform.purchase({ business_uid: 'b2', payment: 'succeeded' })
    platform.faults.add({ on: 'read', kind: 'status', status: 500, times: 2, subscription_uid: one.uid })
    platform.faults.add({ on: 'token', kind: 'status', status: 403, business_uid: 'b2' })
    const tokens = [platform.appToken('b1'), platform.appToken('b2')]
    const statuses: number[] = []
    for (let i = 0; i < 3; i++) {
      statuses.push((await read(platform, one.uid, tokens[0])).status)
      statuses.push((await read(platform, two.uid, tokens[1])).status)
    }
    expect(statuses).toEqual([500, 200, 500, 200, 200, 200])
    expect((await tokenReply(platform, 'b1')).status).toBe(200)
    expect((await tokenReply(platform, 'b2')).status).toBe(403)
    platform.faults.clear()
    expect((await tokenReply(platform, 'b2')).status).toBe(200)
  })

  it('lag behind by a number of reads, by time, or until removed', async () => {
    const { clock, jump } = jumpingClock()
    const { platform } = await start({ clock })
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'failed' })
    const token = platform.appToken('b1')
    const state = async () => (await read(platform, uid, token)).records[0]?.purchase_state

    const byReads = platform.faults.add({ on: 'read', kind: 'lag', reads: 2 })
    expect([await state(), await state(), await state()]).toEqual([undefined, undefined, 'suspended'])
    platform.confirmPayment(uid)
    expect([await state(), await state(), await state()]).toEqual(['suspended', 'suspended', 'purchased'])
    byReads.remove()

    const byTime = platform.faults.add({ on: 'read', kind: 'lag', ms: 5_000 })
    jump(5_000)
    platform.paymentIssue(uid)
    expect(await state()).toBe('purchased')
    jump(5_000)
    expect(await state()).toBe('suspended')
    byTime.remove()

    const bare = platform.faults.add({ on: 'read', kind: 'lag' })
    expect(await state()).toBe('purchased')
    expect(await read(platform, 'unknown', token)).toMatchObject({ status: 200, records: [] })
    bare.remove()
    expect(await state()).toBe('suspended')
  })

  it('refuses invalid faults at once', async () => {
    const { platform } = await start()
    const wrong = [
      { on: 'delivery', kind: 'hang' },
      { on: 'read', kind: 'nothing' },
      { on: 'token', kind: 'lag' },
      { on: 'read', kind: 'status' },
      { on: 'read', kind: 'status', status: 99 },
      { on: 'delivery', kind: 'drop', probability: 2 },
      { on: 'delivery', kind: 'delay', ms: [0, Number.NaN] },
      { on: 'delivery', kind: 'reorder' },
    ]
    for (const fault of wrong) {
      expect(() => platform.faults.add(fault as Fault)).toThrow(
        expect.objectContaining({ code: 'argument_invalid' }),
      )
    }
  })
})
