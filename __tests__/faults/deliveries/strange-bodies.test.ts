import { describe, expect, it } from '@jest/globals'
import express5 from 'express'
import fc from 'fast-check'
import { noticeOf } from '../../support/events.js'
import { receiving } from '../../support/receiving/only-receiving.js'
import { createScene, deliver, serve } from '../../support/scene.js'
import { B1 } from '../../support/settings.js'
import { until } from '../../support/until.js'

const MiB = 1024 * 1024

describe('a strange body', () => {
  it.each([
    ['NUL', 'a\u0000b'],
    ['a control character', 'a\u001bb'],
    ['DEL', 'a\u007f'],
    ['a lone high surrogate', 'a\ud800'],
    ['a lone low surrogate', '\udc00a'],
    ['10,000 characters', 'x'.repeat(10_000)],
    ['nothing', ''],
  ])('B7 with an id of %s is stored and never becomes a row', async (_what, id) => {
    const { marketplace, target } = await receiving()
    for (const envelope of [noticeOf(id), noticeOf('s1', id)]) {
      const { status, body } = await deliver(target, envelope)
      expect({ status, issues: body.issues }).toEqual({ status: 200, issues: [expect.any(String)] })
    }
    const { counts } = await marketplace.health()
    expect(counts).toMatchObject({ subscriptions: 0, unrecognised: 2 })
  })

  it('B7 keeps similar ids apart', async () => {
    const { marketplace, target } = await receiving()
    const alike = [
      'é',
      'e\u0301',
      'É',
      'e',
      'e ',
      ' e',
      'E',
      'ｅ',
      '\ufffd',
      'a\ufffd',
      '007',
      '7',
      '7.0',
      'null',
    ]
    for (const id of alike) expect((await deliver(target, noticeOf(id, id))).status).toBe(200)
    // A number means its text, so this subscription is already known.
    await deliver(target, noticeOf(7 as never, 7 as never))
    expect((await marketplace.health()).counts?.subscriptions).toBe(alike.length)
    for (const id of alike) {
      const { subscriptions } = await marketplace.explain(id)
      expect(subscriptions.map(({ subscription_uid }) => subscription_uid)).toEqual([id])
    }
  })

  it('B8 changes no prototype with __proto__ and constructor, and gives no ids', async () => {
    const { marketplace, target } = await receiving()
    const ids = JSON.stringify(noticeOf('s1').data)
    const pair = '"entity_name":"purchasable_subscription","event_type":"update"'
    for (const text of [
      `{${pair},"data":{"__proto__":${ids}}}`,
      `{${pair},"data":{"constructor":{"prototype":${ids}}}}`,
      `{"__proto__":{${pair},"data":${ids}}}`,
      `[{"__proto__":{${pair},"data":${ids}}},{${pair},"__proto__":{"data":${ids}}}]`,
    ]) {
      const { status, body } = await deliver(target, text)
      expect({ status, hasIssues: Array.isArray(body.issues) }).toEqual({ status: 200, hasIssues: true })
    }
    expect((await marketplace.health()).counts).toMatchObject({ subscriptions: 0, unrecognised: 4 })
    expect(
      (await deliver(target, `{${pair},"data":{"__proto__":{"x":1},${ids.slice(1)}}`)).body.issues,
    ).toBeUndefined()
    expect(await marketplace.journal.list()).toHaveLength(5)
    expect(['subscription_uid', 'entity_name', 'x'].filter((key) => key in {})).toEqual([])
  })

  it('B9 nested 500,000 levels deep is stored, alone or in an event, and the next one is served', async () => {
    const { marketplace, target } = await receiving({ bodyLimitBytes: 2 * MiB })
    const parsed = express5()
      .use(express5.json({ limit: '2mb', strict: false }))
      .use(marketplace.router)
    const behind = marketplace.webhooks.targetUrl(await serve(parsed))
    const deep = '['.repeat(500_000) + ']'.repeat(500_000)
    const event = JSON.stringify(noticeOf('s1')).replace(
      '"data":{',
      `"more":${deep},"data":{"deep":${deep.slice(400_000, -400_000)},`,
    )
    for (const address of [target, behind]) {
      for (const text of [deep, event, `[${event},${JSON.stringify(noticeOf('s2'))}]`]) {
        expect((await deliver(address, text)).status).toBe(200)
      }
      expect((await deliver(address, noticeOf('s3'))).status).toBe(200)
    }
    expect((await marketplace.health()).counts?.subscriptions).toBe(3)
    const entries = await marketplace.journal.list({ kind: 'event' })
    expect(entries).toHaveLength(8)
  })

  it('B9 can be listed and exported, whatever a payload is nested in', async () => {
    const { marketplace, target } = await receiving({ bodyLimitBytes: 2 * MiB })
    const [brackets, quoted] = ['['.repeat(499) + ']'.repeat(499), JSON.stringify('["'.repeat(2_000))]
    for (const value of [brackets, `[${brackets}]`, '['.repeat(5_000) + ']'.repeat(5_000)])
      await deliver(
        target,
        JSON.stringify(noticeOf('s1')).replace('"data":{', `"flat":${quoted},"deep":${value},"data":{`),
      )
    await deliver(target, `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`)
    const entries = await marketplace.journal.list()
    expect(entries.map(({ payload }) => typeof payload)).toEqual(['string', 'string', 'string', 'object'])
    expect(JSON.parse(entries[1]?.payload as string)).toMatchObject({ data: { subscription_uid: 's1' } })
    expect(() => JSON.stringify(entries)).not.toThrow()
    const pieces: string[] = []
    for await (const piece of marketplace.businesses.exportText('business-one')) pieces.push(piece)
    const data = JSON.parse(pieces.join(''))
    const { journal } = JSON.parse(JSON.stringify(await marketplace.businesses.export('business-one')))
    const byId = (a: { id: string }, b: { id: string }) => a.id.localeCompare(b.id)
    expect(data.journal.sort(byId)).toEqual(journal.sort(byId))
    expect(data.journal).toHaveLength(3)
  })

  it.each([
    '{"entity_name":"a","entity_name":"purchasable_subscription","event_type":"update","data":{},"data":1}',
    '{"entity_name":"purchasable_subscription","event_type":"update","data":{"business_id":1e400,"subscription_uid":-1e400}}',
    '{"entity_name":"purchasable_subscription","event_type":"update","data":{"business_id":["b"],"subscription_uid":{"a":1}}}',
    '{"entity_name":["purchasable_subscription"],"event_type":{},"data":[]}',
    '{"entity_name":"purchasable_subscription","event_type":"update","data":{"business_id":12345678901234567890,"subscription_uid":true}}',
    '[[[]],[{}],{"data":null}]',
    '1e400',
  ])('B10 never causes an internal error: %s', async (text) => {
    const { target } = await receiving()
    const { status, body } = await deliver(target, text)
    expect({ status, hasIssues: Array.isArray(body.issues) }).toEqual({ status: 200, hasIssues: true })
  })

  it('B10 never causes an internal error, with any field values', async () => {
    const { target } = await receiving()
    const anyEnvelope = fc.record(
      {
        entity_name: fc.oneof(fc.constantFrom('purchasable_subscription', 'application'), fc.jsonValue()),
        event_type: fc.oneof(fc.constantFrom('update', 'created', 'installed'), fc.jsonValue()),
        data: fc.oneof(
          fc.jsonValue(),
          fc.record(
            {
              business_id: fc.jsonValue(),
              subscription_uid: fc.jsonValue(),
              uid: fc.jsonValue(),
              business_uid: fc.jsonValue(),
              purchase_state: fc.jsonValue(),
              app_code_name: fc.jsonValue(),
            },
            { requiredKeys: [] },
          ),
        ),
      },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(fc.oneof(anyEnvelope, fc.array(anyEnvelope), fc.jsonValue()), async (body) => {
        expect((await deliver(target, JSON.stringify(body))).status).toBe(200)
      }),
      { numRuns: 150 },
    )
  })

  it('B11 with an unknown event is stored, counted and delivered to onUnrecognised', async () => {
    const { marketplace, deliver } = await createScene()
    const reported: unknown[] = []
    marketplace.onUnrecognised(({ envelope }) => void reported.push(envelope))
    const unknown = [
      { entity_name: 'application', event_type: 'rated', data: { business_id: B1 } },
      { entity_name: 'moon', event_type: 'update', data: {} },
    ]
    for (const envelope of unknown) {
      const { status, body } = await deliver(envelope)
      expect({ status, body }).toEqual({
        status: 200,
        body: { received: true, id: expect.any(String), issues: [expect.stringContaining('entity_name')] },
      })
    }
    await until('both are reported', () => reported.length === 2)
    expect(reported).toEqual(expect.arrayContaining(unknown))
    expect((await marketplace.health()).counts).toMatchObject({ unrecognised: 2, subscriptions: 0 })
    const kept = await marketplace.journal.list({ kind: 'unrecognised' })
    expect(kept.map(({ payload }) => payload)).toEqual([...unknown].reverse())
  })

  it('B11 with several unknown events in an array passes all of them to one call, and a single one as such a list too', async () => {
    const { marketplace, deliver } = await createScene()
    const reported: unknown[] = []
    marketplace.onUnrecognised(({ envelope, envelopes }) => void reported.push({ envelope, envelopes }))
    const odd = (stars: number) => ({ entity_name: 'application', event_type: 'rated', data: { stars } })
    for (const body of [odd(1), [odd(2)], [odd(3), noticeOf('s1'), odd(4)], []]) {
      await deliver(body)
      await marketplace.settled()
    }
    expect(reported).toEqual([
      { envelope: odd(1), envelopes: [odd(1)] },
      { envelope: odd(2), envelopes: [odd(2)] },
      { envelope: [odd(3), odd(4)], envelopes: [odd(3), odd(4)] },
      { envelope: [], envelopes: [] },
    ])
  })

  it('B12 with an array of good and bad envelopes does not lose the good one', async () => {
    const { platform, marketplace, deliver } = await createScene()
    const drop = platform.faults.add({ on: 'delivery', kind: 'drop' })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    drop.remove()
    const bad = [null, [], 'text', { entity_name: 'purchasable_subscription', event_type: 'update', data: 7 }]
    const { status, body } = await deliver([...bad, noticeOf(uid), noticeOf('a\u0000b')])
    expect({ status, ids: (body.ids as string[]).length }).toEqual({ status: 200, ids: 6 })
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect((await marketplace.health()).counts).toMatchObject({ subscriptions: 1, unrecognised: 1 })
  })

  it('B12 that is empty is refused; null and [] are stored', async () => {
    const { marketplace, target } = await receiving()
    expect(await deliver(target, '')).toMatchObject({ status: 400, body: { code: 'body_not_json' } })
    for (const text of ['null', '[]']) {
      expect(await deliver(target, text)).toMatchObject({
        status: 200,
        body: { issues: [expect.any(String)] },
      })
    }
    expect((await marketplace.journal.list()).map(({ payload }) => payload)).toEqual([[], null])
  })
})
