import { describe, expect, it } from '@jest/globals'
import { type Clock, systemClock } from '../../lib/base/clock.js'
import { RECORD_FIELDS, UPDATED_EVENT_FIELDS } from '../../lib/base/record.js'
import { createClassifier } from '../../lib/events/classify.js'
import { EVENTS } from '../../lib/events/registry.js'
import { sampleDelivery } from '../../lib/testing/index.js'
import { NAMES, registerOverHttp, start, startTarget } from '../support/platform/simulator-calls.js'
import { serve } from '../support/serving.js'
import { until } from '../support/until.js'

describe('deliveries', () => {
  it('carry each of the seven events as documented', async () => {
    const { platform, target } = await start()
    await platform.registerAll(target.url)
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'failed' })
    platform.install('b1')
    platform.confirmPayment(uid)
    platform.uninstall('b1')
    await platform.settled()
    expect(new Set(platform.deliveries.map(({ event }) => event))).toEqual(new Set(NAMES))
    expect(target.bodies).toEqual(platform.deliveries.map(({ body }) => body))
    for (const { event, envelope, status } of platform.deliveries) {
      expect(status).toBe(200)
      expect(envelope).toMatchObject({
        entity_name: EVENTS[event].entity_name,
        event_type: EVENTS[event].event_type,
      })
      expect(Object.keys(envelope.data)).toEqual(Object.keys(sampleDelivery(event).data))
      expect(namesOf(envelope)).toEqual([event])
    }
    const installed = platform.deliveries.find(({ event }) => event === 'application/installed')
    expect(installed?.envelope.data.event_time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/)
    expect(target.headers[0]).toMatchObject({ 'content-type': 'application/json' })
  })

  it('go to the registered targets, by the kind of their token', async () => {
    const { platform, target } = await start()
    const other = await startTarget()
    await platform.register('purchasable_subscription/create', target.url)
    const token = platform.businessToken('b2')
    expect(await registerOverHttp(platform, 'app_subscription/installed', other.url, token)).toBe(201)
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    platform.install('b1')
    platform.install('b2')
    await platform.settled()
    expect(target.bodies.map(parse)).toMatchObject([{ event_type: 'created' }])
    expect(other.bodies.map(parse)).toMatchObject([{ event_type: 'installed', data: { business_id: 'b2' } }])
  })

  it('announce a main subscription and a touch by updated alone', async () => {
    const { platform, target } = await start()
    const sub = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await platform.registerAll(target.url)
    const main = platform.mainSubscription({ business_uid: 'b1' })
    platform.touch(sub.uid)
    platform.paymentIssue(main.uid)
    await platform.settled()
    expect(new Set(platform.deliveries.map(({ event }) => event))).toEqual(
      new Set(['purchasable_subscription/updated']),
    )
    expect(platform.deliveries).toHaveLength(3)
    expect(Object.keys(platform.deliveries[0]?.envelope.data ?? {}).sort()).toEqual(
      [...Object.keys(RECORD_FIELDS), ...Object.keys(UPDATED_EVENT_FIELDS)].sort(),
    )
  })

  it('can have the styles that are common in practice', async () => {
    const { platform, target } = await start({
      deliveryStyle: {
        fullRecordCreate: true,
        fullRecordUpdate: true,
        arrays: true,
        numericIds: true,
        contentType: null,
        chunked: true,
        expectContinue: true,
      },
    })
    await platform.register('purchasable_subscription/create', target.url)
    await platform.register('purchasable_subscription/update', target.url)
    const { uid } = platform.purchase({ business_uid: '72', payment: 'succeeded' })
    platform.paymentIssue(uid)
    await platform.settled()
    expect(target.bodies.map(parse)).toMatchObject([
      [{ event_type: 'created', data: { uid: Number(uid), business_uid: 72, purchase_state: 'purchased' } }],
      [{ event_type: 'update', data: { uid: Number(uid), business_uid: 72, purchase_state: 'suspended' } }],
    ])
    expect(target.headers[0]).toMatchObject({ expect: '100-continue', 'transfer-encoding': 'chunked' })
    expect(target.headers[0]).not.toHaveProperty('content-type')
  })

  it('are not sent again when refused, unless requested', async () => {
    const once = await start()
    once.target.status = 503
    await once.platform.register('application/installed', once.target.url)
    once.platform.install('b1')
    await once.platform.settled()
    expect(once.platform.deliveries).toMatchObject([{ status: 503, attempt: 1 }])

    const delays: number[] = []
    const clock: Clock = {
      ...systemClock,
      setTimeout(run, ms) {
        delays.push(ms)
        return systemClock.setTimeout(run, ms)
      },
    }
    const again = await start({ retries: 2, retryDelayMs: 1, clock })
    again.target.status = 503
    await again.platform.register('application/installed', again.target.url)
    again.platform.install('b1')
    await again.platform.settled()
    expect(again.platform.deliveries.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    expect(delays.filter((ms) => ms === 1)).toHaveLength(2)
  })

  it('report why an answer is missing, but never the address', async () => {
    const { platform, target } = await start({ deliveryTimeoutMs: 50 })
    await platform.register('application/installed', target.url)
    target.status = 0
    platform.install('b1')
    await platform.settled()
    await target.close()
    platform.install('b2')
    await platform.settled()
    expect(platform.deliveries.map(({ error }) => error)).toEqual(['timeout', 'ECONNREFUSED'])
  })

  it('K177 end at a limit of bytes when the reply does not end', async () => {
    const { platform } = await start({ deliveryTimeoutMs: 60_000 })
    let closed = 0
    const url = await serve((_req, res) => {
      res.on('close', () => closed++)
      const write = () => {
        if (!res.destroyed) res.write(Buffer.alloc(64 * 1024), write)
      }
      write()
    })
    await platform.register('application/installed', url)
    platform.install('b1')
    await platform.settled()
    expect(platform.deliveries).toMatchObject([{ status: 200 }])
    await until('the connection is closed', () => closed === 1)
  })

  it('can be sent once more, and reach listeners until they unsubscribe', async () => {
    const { platform, target } = await start()
    await platform.register('application/installed', target.url)
    const received: number[] = []
    const stop = platform.on('delivery', ({ index }) => received.push(index))
    platform.install('b1')
    await platform.settled()
    platform.redeliver(0)
    await platform.settled()
    stop()
    platform.redeliver(1)
    await platform.settled()
    expect(received).toEqual([0, 1])
    expect(new Set(target.bodies).size).toBe(1)
    expect(target.bodies).toHaveLength(3)
    expect(() => platform.redeliver(9)).toThrow(expect.objectContaining({ code: 'argument_invalid' }))
  })
})

describe('faults of deliveries', () => {
  it('duplicate, drop, and hang up', async () => {
    const { platform, target } = await start()
    await platform.register('application/installed', target.url)
    platform.faults.add({ on: 'delivery', kind: 'duplicate', copies: 2, business_uid: 'b1' })
    platform.faults.add({ on: 'delivery', kind: 'drop', business_uid: 'b2' })
    platform.faults.add({
      on: 'delivery',
      kind: 'hangUp',
      business_uid: 'b3',
      event: 'application/installed',
    })
    for (const business of ['b1', 'b2', 'b3']) platform.install(business)
    await platform.settled()
    expect(platform.deliveries.map(({ business_uid, error }) => [business_uid, error])).toEqual(
      expect.arrayContaining([
        ['b1', undefined],
        ['b1', undefined],
        ['b1', undefined],
        ['b2', 'dropped'],
        ['b3', 'hung up'],
      ]),
    )
    expect(platform.deliveries).toHaveLength(5)
    // The sender of b3 disconnected before the target had read the delivery, but it had sent all of it.
    await until('the target has the deliveries', () => target.bodies.length === 4)
    expect(target.bodies.map(parse)).toContainEqual(
      expect.objectContaining({ data: expect.objectContaining({ business_id: 'b3' }) }),
    )
  })

  it('reach a target several at a time on request', async () => {
    const { platform, target } = await start({ deliveryConcurrency: 3 })
    await platform.register('application/installed', target.url)
    target.status = 0
    platform.faults.add({ on: 'delivery', kind: 'duplicate', copies: 4 })
    platform.install('b1')
    await until('the target has the deliveries', () => target.bodies.length === 3)
    await platform.close()
    expect(platform.deliveries.map(({ error }) => error)).toEqual(['closed', 'closed', 'closed'])
  })

  it('delay one so that others overtake it', async () => {
    const { platform, target } = await start()
    await platform.register('application/installed', target.url)
    platform.faults.add({ on: 'delivery', kind: 'delay', ms: [20, 40], times: 1 })
    platform.install('b1')
    platform.install('b2')
    await platform.settled()
    expect(platform.deliveries.map(({ business_uid }) => business_uid)).toEqual(['b2', 'b1'])
  })

  it('reorder by holding back and releasing shuffled: when full, when ended, and for settled()', async () => {
    const { platform, target } = await start({ seed: 3 })
    await platform.register('application/installed', target.url)
    const businesses = Array.from({ length: 8 }, (_, i) => `b${i}`)
    const handle = platform.faults.add({ on: 'delivery', kind: 'reorder', hold: 8 })
    for (const business of businesses) platform.install(business)
    await platform.settled()
    const order = platform.deliveries.map(({ business_uid }) => business_uid)
    expect(order).not.toEqual(businesses)
    expect([...order].sort()).toEqual(businesses)

    platform.install('c1')
    await platform.settled()
    expect(platform.deliveries).toHaveLength(9)

    platform.install('c2')
    const arrived = new Promise((resolve) => platform.on('delivery', resolve))
    handle.remove()
    await arrived
    expect(platform.deliveries).toHaveLength(10)

    platform.faults.add({ on: 'delivery', kind: 'reorder', hold: 8, times: 2 })
    const both = new Promise<void>((resolve) => {
      platform.on('delivery', ({ index }) => index === 11 && resolve())
    })
    platform.install('c3')
    platform.install('c4')
    await both
  })
})

describe('sampleDelivery', () => {
  it.each(NAMES)('gives %s as classify recognises it', (name) => {
    expect(namesOf(sampleDelivery(name))).toEqual([name])
  })

  it('accepts other values for the fields of data', () => {
    const { data } = sampleDelivery('purchasable_subscription/create', {
      business_id: 72,
      subscription_uid: undefined,
    })
    expect(JSON.parse(JSON.stringify(data))).toEqual({ business_id: 72, purchasable_uid: 'purchasable-1' })
    expect(sampleDelivery('purchasable_subscription/create').data.business_id).toBe('business-1')
  })
})

/** The name that the package gives the event. */
function namesOf(envelope: unknown): string[] {
  const found = createClassifier(EVENTS)(envelope)
  return found.recognised ? [found.name] : found.issues
}

function parse(body: string): unknown {
  return JSON.parse(body)
}
