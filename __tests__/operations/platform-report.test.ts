import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { systemClock } from '../../lib/base/clock.js'
import { EVENTS } from '../../lib/events/registry.js'
import type { PlatformReport } from '../../lib/index.js'
import { createSeenFacts } from '../../lib/operations/platform-report/seen-facts.js'
import { createFieldCounts, shapeOf } from '../../lib/operations/platform-report/shapes.js'
import { createStoredFacts } from '../../lib/operations/platform-report/stored-facts.js'
import type { JournalEntry, StoredSubscription } from '../../lib/store/port/store.js'
import { sampleDelivery } from '../../lib/testing/index.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { createScene, DELIVERY_SECRET, OUR_ITEM } from '../support/scene.js'
import { anyDelivery } from '../support/scenes/any-delivery.js'
import { classify } from '../support/scenes/classify.js'
import { customEvents } from '../support/scenes/own-events.js'

const none = () => []
const UPDATED = 'purchasable_subscription/updated'

describe.each(ENGINE_NAMES)('platformReport() on %s', (name) => {
  const engine = useEngine(name)
  const scene = async (options: Parameters<typeof createScene>[0] = {}) =>
    createScene({ store: await engine.freshAddress(), ...options })

  it('has the fields of each event with their types, and says which the interface document does not have', async () => {
    const { marketplace, deliver } = await scene({ events: customEvents })
    const plan = { name: 'gold', seats: [{ id: 3 }, { id: null }] }
    await deliver(
      sampleDelivery(UPDATED, { plan, purchase_state: 'on_hold', purchase_price: 5, buyer_uid: undefined }),
    )
    await deliver(sampleDelivery(UPDATED, { purchase_state: 'held for Ada' }))
    await deliver({ entity_name: 'invoice', event_type: 'paid', data: { business_uid: 'b1', total: '3' } })
    await deliver({ entity_name: 'moon', event_type: 'update', 'b-1': 1 })
    const { stored } = await marketplace.platformReport()
    expect(stored).toMatchObject({ entries: 4, records: { count: 0, fields: [] } })
    expect(stored.events.map(({ event, deliveries }) => [event, deliveries])).toEqual([
      ['invoice/paid', 1],
      [UPDATED, 2],
      ['unrecognised', 1],
    ])
    const updated = fieldsOf(stored, UPDATED)
    expect(updated['data.purchase_state']).toEqual({
      types: { string: 2 },
      documented: true,
      words: [{ word: 'on_hold', count: 1, known: false }],
    })
    expect(updated['data.purchase_price']).toMatchObject({
      types: { number: 1, string: 1 },
      documented: true,
    })
    expect(updated['data.buyer_uid']).toMatchObject({ types: { string: 1 } })
    expect(updated['data.plan.seats[].id']).toEqual({
      types: { number: 1, null: 1 },
      documented: false,
      words: [],
    })
    expect(fieldsOf(stored, 'invoice/paid')).toMatchObject({
      entity_name: { documented: null, words: [{ word: 'invoice', known: true }] },
      'data.total': { types: { string: 1 }, documented: null },
    })
    expect(fieldsOf(stored, 'unrecognised')).toMatchObject({
      entity_name: { words: [{ word: 'moon', known: false }] },
      event_type: { words: [{ word: 'update', known: true }] },
      '*': { types: { number: 1 } },
    })
  })

  it('counts what came again within a minute, by its identifiers and by its payload', async () => {
    const { marketplace, deliver, jump } = await scene()
    const install = (app_id: string) =>
      sampleDelivery('app_subscription/installed', { business_id: 'b1', app_id })
    for (const app of ['ours', 'other', 'ours']) await deliver(install(app))
    for (const price of ['1.00', '2.00', '2.00'])
      await deliver(sampleDelivery(UPDATED, { purchase_price: price }))
    const { events } = (await marketplace.platformReport()).stored
    expect(events.map(({ event, repeats }) => [event, repeats])).toEqual([
      ['app_subscription/installed', { sameIdentifiers: 1, samePayload: 1 }],
      [UPDATED, { sameIdentifiers: 2, samePayload: 1 }],
    ])
    if (name === 'PostgreSQL') return
    // The time of SQLite follows the clock of the process.
    jump(61_000)
    await deliver(install('ours'))
    const [installed] = (await marketplace.platformReport()).stored.events
    expect(installed).toMatchObject({ deliveries: 4, repeats: { sameIdentifiers: 1, samePayload: 1 } })
  })

  it('has the time from an event to the read that showed its change, and the fields of records', async () => {
    const { marketplace, platform } = await scene()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await platform.settled()
    await marketplace.settled()
    platform.set(uid, { purchase_state: 'pending', coupon: 'ADA-10' } as object)
    await platform.settled()
    await marketplace.settled()
    const { stored } = await marketplace.platformReport()
    for (const event of ['purchasable_subscription/create', 'purchasable_subscription/update']) {
      const { untilRead } = stored.events.find((each) => each.event === event) ?? {}
      expect([event, untilRead]).toEqual([
        event,
        { count: 1, medianMs: expect.any(Number), longestMs: untilRead?.medianMs },
      ])
      expect(untilRead?.longestMs).toBeLessThan(60_000)
    }
    const fields = byPath(stored.records.fields)
    expect(stored.records.count).toBe(1)
    expect(fields.coupon).toEqual({ types: { string: 1 }, documented: false, words: [] })
    expect(fields.purchase_state?.words).toEqual([{ word: 'pending', count: 1, known: false }])
  })

  it('has how deliveries were sent, the lifetimes of tokens and the shapes of refusals', async () => {
    const { marketplace, platform, target } = await scene()
    platform.faults.expiresIn = '3600'
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await platform.settled()
    await marketplace.settled()
    platform.faults.expiresIn = undefined
    platform.faults.add({ on: 'read', kind: 'status', status: 503 })
    platform.purchase({ business_uid: 'b2', payment: 'succeeded' })
    await platform.settled()
    await marketplace.settled()
    const headers = {
      'content-type': 'text/plain',
      'x-shop': 'ada',
      'user-agent': 'Hook/2.1 (ada@example.com)',
    }
    await fetch(target, { method: 'POST', headers, body: JSON.stringify(sampleDelivery(UPDATED)) })
    const { seen, stored } = await marketplace.platformReport()
    const sent = seen.events.find(({ event }) => event === UPDATED)
    expect(sent).toMatchObject({ deliveries: 1, examined: 1, userAgents: [{ name: 'Hook/2.1', count: 1 }] })
    expect(sent?.headers.map((each) => each.name)).toEqual(
      expect.arrayContaining(['content-type', 'x-shop', 'user-agent']),
    )
    expect(seen.events.find(({ event }) => event === 'purchasable_subscription/create')?.deliveries).toBe(2)
    expect(seen.tokens).toEqual({
      count: 2,
      expiresIn: { number: 0, string: 1, none: 1, other: 0 },
      shortestSeconds: 3600,
      longestSeconds: 3600,
    })
    expect(seen.refusals).toEqual([
      {
        call: 'read',
        status: 503,
        contentType: expect.any(String),
        fields: expect.any(Array),
        count: expect.any(Number),
      },
    ])
    expect(Date.parse(String(seen.since))).toBeLessThanOrEqual(Date.parse(String(stored.since)))
  })

  it('has no value of a delivery, and is frozen plain JSON', async () => {
    const { marketplace, deliver, platform, target } = await scene()
    const values = {
      ...{
        business_id: 'b-Qz71',
        subscription_uid: 's-Qz72',
        purchasable_uid: OUR_ITEM,
        uid: 's-Qz72',
        business_uid: 'b-Qz71',
      },
      ...{
        display_name: 'app-Qz',
        purchase_state: 'Qz state',
        buyer_uid: 777001,
        mail: 'ada@Qz.example',
        total: 777002,
      },
    }
    for (const name of Object.keys(EVENTS) as (keyof typeof EVENTS)[])
      await deliver(
        sampleDelivery(name, { ...values, of: { 'b-Qz71': ['Qz 1', { 'ada@Qz.example': 'Qz 2' }] } }),
      )
    await deliver({ entity_name: 'Qz-1', event_type: 'b-Qz71', data: 'Qz text' })
    await deliver(['Qz text', { 'Qz 9': 777003 }])
    platform.purchase({ business_uid: 'b-Qz71', payment: 'succeeded', subscription_uid: 's-Qz72' })
    await platform.settled()
    await marketplace.settled()
    const report = await marketplace.platformReport()
    const text = JSON.stringify(report)
    expect(text).not.toMatch(/Qz|77700\d|ada/)
    expect(text).not.toContain(DELIVERY_SECRET)
    expect(text).not.toContain(new URL(target).host)
    expect(JSON.parse(text)).toEqual(report)
    expect(Object.isFrozen(report) && Object.isFrozen(report.stored.events[0]?.fields[0]?.types)).toBe(true)
  })

  it('has what other processes have seen before they closed', async () => {
    const store = await engine.freshAddress()
    const first = await createScene({ store })
    const report = async (of = first) => (await of.marketplace.platformReport()).seen
    expect(await report()).toMatchObject({ since: null, events: [], refusals: [] })
    await first.deliver(sampleDelivery(UPDATED))
    expect((await report()).events).toMatchObject([{ event: UPDATED, deliveries: 1 }])
    await first.deliver(sampleDelivery(UPDATED))
    await first.marketplace.close()
    // As the command line, which receives nothing.
    const { baseUrl, authUrl } = first.platform
    const second = await createScene({ store, worker: false, platform: { baseUrl, authUrl } })
    const all = await report(second)
    expect(all.events).toMatchObject([{ event: UPDATED, deliveries: 2, examined: 2 }])
    await second.deliver(sampleDelivery(UPDATED))
    expect((await report(second)).events).toMatchObject([{ deliveries: 3 }])
    expect(await report(second)).toMatchObject({ since: all.since, events: [{ deliveries: 3 }] })
    await second.marketplace.close()
  })

  it('names no header, agent, field or media type that is a secret or an identifier, in capitals or as a part', async () => {
    const { marketplace, platform, target } = await scene()
    const { uid } = platform.purchase({ business_uid: 'alphabiz', payment: 'succeeded' })
    await platform.settled()
    await marketplace.settled()
    const secret = DELIVERY_SECRET.toLowerCase()
    for (const [name, agent] of [
      [`x-${secret}`, DELIVERY_SECRET],
      ['x-biz-alphabiz', `sender/${DELIVERY_SECRET.slice(0, 20)}`],
      ['x-trace-4711', 'AlphaBiz/1.0'],
      [uid.replace(/\W/g, '-'), 'f3a9d0c2-1111-4222-8333-444455556666'],
    ] as const)
      await fetch(target, {
        method: 'POST',
        headers: { [name]: 'v', 'user-agent': agent },
        body: JSON.stringify(sampleDelivery(UPDATED, { uid, business_uid: 'alphabiz' })),
      })
    const { seen } = await marketplace.platformReport()
    const sent = seen.events.find(({ event }) => event === UPDATED)
    expect(sent?.userAgents).toEqual([{ name: '*', count: 4 }])
    const text = JSON.stringify(seen).toLowerCase()
    for (const hidden of [secret, 'alphabiz', '4711', uid.toLowerCase()]) expect(text).not.toContain(hidden)
    expect(sent?.headers).toContainEqual({ name: 'content-type', count: 4 })
  })

  it('names no header, agent or field that has an identifier of the delivery, however short, also of an unknown event', async () => {
    const { marketplace, target } = await scene()
    const hidden = ['acme', 'ada', 'item', '471', 'b-1', 'shopsys', 'alphabiz']
    const data = { business_uid: 'acme', buyer_uid: 'Ada', purchasable_uid: 'item', uid: 's-1' }
    const send = (delivery: object, headers: Record<string, string>) =>
      fetch(target, { method: 'POST', headers, body: JSON.stringify(delivery) })
    for (const uid of ['acme', 'ada', 'item'])
      await send(sampleDelivery(UPDATED, data), { [`x-of-${uid}`]: '', 'user-agent': `${uid}/1.0` })
    const unknown = {
      entity_name: 'moon',
      data: { business_id: '471', app_id: 'b-1', subscription_uid: 'shopsys' },
    }
    await send(unknown, { 'x-myshopsys': '', 'user-agent': 'sender/471' })
    await send(unknown, { 'x-b-1': '', 'user-agent': 'b-1/2' })
    await send({ data: { business_id: 'alphabiz-eu' } }, { 'x-alphabiz': '', 'user-agent': 'alphabiz/1' })
    const { seen } = await marketplace.platformReport()
    expect(seen.events.map(({ event, userAgents }) => [event, userAgents])).toEqual([
      [UPDATED, [{ name: '*', count: 3 }]],
      ['unrecognised', [{ name: '*', count: 3 }]],
    ])
    const names = seen.events.flatMap(({ headers }) => headers.map((each) => each.name)).join()
    expect(hidden.filter((uid) => names.includes(uid))).toEqual([])
    expect(names).toContain('content-type')
  })

  it('names no field of a record that has an identifier of it', async () => {
    const { marketplace, platform } = await scene()
    const { uid } = platform.purchase({ business_uid: 'acme', payment: 'succeeded' })
    await platform.settled()
    await marketplace.settled()
    const odd = {
      purchase_state: 'suspended',
      buyer_uid: 'babbage',
      babbagePrefs: 1,
      seats: { vip_babbage: 1 },
      ACMESettings: 1,
      myacme: 1,
      other: 1,
    }
    platform.set(uid, odd as object)
    await platform.settled()
    await marketplace.settled()
    const { records } = (await marketplace.platformReport()).stored
    expect(JSON.stringify(records).toLowerCase()).not.toMatch(/babbage|acme/)
    expect(Object.keys(byPath(records.fields))).toEqual(expect.arrayContaining(['*', 'seats.*', 'other']))
  })

  it('names no field and no word of what is stored that has an identifier in it, also of another delivery', async () => {
    const { marketplace, deliver } = await scene()
    await deliver(sampleDelivery(UPDATED, { buyer_uid: 'adalovelace', purchasable_uid: 'acme' }))
    await deliver(
      sampleDelivery(UPDATED, { settings_acme: 1, settingsAcme: 1, adalovelace: 1, plain_setting: 1 }),
    )
    await deliver({ entity_name: 'acme', event_type: 'adalovelace', data: 1 })
    const { stored } = await marketplace.platformReport()
    const text = JSON.stringify(stored).toLowerCase()
    for (const hidden of ['acme', 'adalovelace']) expect(text).not.toContain(hidden)
    expect(fieldsOf(stored, UPDATED)).toHaveProperty(['data.plain_setting'])
  })

  it('counts the time until a read from the first of events that came again within a minute', async () => {
    const { marketplace, platform, deliver, jump } = await scene()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await platform.settled()
    await marketplace.settled()
    const again = () =>
      deliver(sampleDelivery('purchasable_subscription/update', { subscription_uid: uid, business_id: 'b1' }))
    await again()
    await marketplace.settled()
    jump(30_000)
    platform.set(uid, { purchase_state: 'suspended' })
    await again()
    await marketplace.settled()
    const { events } = (await marketplace.platformReport()).stored
    const lag = events.find(({ event }) => event === 'purchasable_subscription/update')?.untilRead
    expect(lag?.count).toBe(1)
    // The time of PostgreSQL does not follow the clock of the process.
    expect(lag?.longestMs).toBeGreaterThanOrEqual(name === 'SQLite' ? 30_000 : 0)
  })

  it('rejects `closed` after close()', async () => {
    const { marketplace } = await scene()
    await marketplace.close()
    await expect(marketplace.platformReport()).rejects.toMatchObject({ code: 'closed' })
  })
})

describe('the shape of a JSON', () => {
  it('has none of its values, whatever it is', () => {
    const secret = fc.oneof(
      fc.uuid(),
      fc.emailAddress(),
      fc.stringMatching(/^[a-z]{8,20}$/),
      fc.integer({ min: 100_000 }),
    )
    const json = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        secret,
        fc.array(tie('value')),
        fc.dictionary(fc.oneof(fc.uuid(), fc.constantFrom('data', 'plan')), tie('value')),
      ),
    })).value
    fc.assert(
      fc.property(json, fc.context(), (value, context) => {
        const texts = valuesIn(value)
        // A name that is also a value, as in a map by business.
        const [first] = texts
        const delivery = { data: value, ...(first === undefined ? {} : { [first]: 1 }) }
        const counts = createFieldCounts({ isDocumented: () => null, words: {} })
        counts.add(delivery)
        const shown = JSON.stringify([
          counts.facts(() => false),
          shapeOf(delivery).map(({ path, type }) => [path, type]),
        ])
        context.log(shown)
        expect(texts.filter((text) => shown.includes(text))).toEqual([])
      }),
      { numRuns: 500 },
    )
  })

  it('has only documented names where it is not looked at as a whole, and none that is a value in other letters', () => {
    const pathsOf = (json: unknown) => shapeOf(json).map(({ path }) => path)
    const wide = {
      late: { x: Array.from({ length: 1_200 }, (_, i) => i) },
      bizname: 1,
      data: { of: 'bizname' },
    }
    expect(pathsOf(wide)).toEqual(expect.arrayContaining(['*.*', '*', 'data', 'data.*']))
    expect(pathsOf(wide).join()).not.toContain('bizname')
    const deep = JSON.parse(`{"deepname":1,"a":${'{"b":'.repeat(8)}"deepname"${'}'.repeat(8)}}`)
    expect(pathsOf(deep).join()).not.toContain('deepname')
    expect(pathsOf({ AlphaBiz: 1, of: 'alphabiz' })).toEqual(['*', 'of'])
  })

  it('is bounded in its fields, words and levels', () => {
    const counts = createFieldCounts({ isDocumented: () => null, words: { state: () => false } })
    const letters = (i: number) => [...String(i)].map((digit) => 'abcdefghij'[Number(digit)]).join('')
    for (let i = 0; i < 500; i++) counts.add({ [letters(i)]: 1, state: `s_${letters(i)}` })
    const facts = counts.facts(() => false)
    expect(facts).toHaveLength(201)
    expect(facts.find(({ path }) => path === '…')?.types).toEqual({ number: 301 })
    expect(facts.find(({ path }) => path === 'state')?.words).toHaveLength(20)
    const wide = shapeOf(Array.from({ length: 100_000 }, () => ({ a: 1 })))
    expect(wide.length).toBeLessThanOrEqual(1_000)
    expect(shapeOf(JSON.parse(`${'{"a":'.repeat(400)}1${'}'.repeat(400)}`)).length).toBeLessThan(20)
  })
})

describe('what processes have seen', () => {
  it('is bounded, and they examine every hundredth delivery after the first hundred', async () => {
    const facts = seenFacts()
    for (let i = 0; i < 1_000; i++) {
      const letters = [...String(i)].map((digit) => 'abcdefghij'[Number(digit)]).join('')
      facts.noteDelivery(
        'a',
        { [`x-${letters}`]: 'v', 'user-agent': `agent-${letters}/1 secret-words` },
        none,
      )
      facts.noteRefusal(
        'read',
        {
          status: 400 + i,
          contentType: null,
          json: { error: 'no' },
          retryAfter: null,
          isPage: false,
        },
        [],
      )
      facts.noteToken(i)
    }
    const { events, refusals, tokens } = await facts.facts()
    expect(events).toMatchObject([{ deliveries: 1_000, examined: 109 }])
    expect(events[0]?.headers).toHaveLength(100)
    expect(events[0]?.userAgents).toHaveLength(20)
    expect(refusals).toHaveLength(50)
    expect(tokens).toMatchObject({ shortestSeconds: 0, longestSeconds: 999 })
    expect(JSON.stringify(events)).not.toContain('secret')
  })

  it('has a user agent only as a product, a content type only as a type, and no text of a refusal', async () => {
    const facts = seenFacts()
    for (const agent of [
      'a b@c',
      '\u001b[31m',
      'x'.repeat(60),
      'ada@example.com',
      'Mozilla/5.0 (ada)',
      'curl/8',
    ])
      facts.noteDelivery('', { 'user-agent': agent }, none)
    facts.noteDelivery('', undefined as never, none)
    const contentType = 'text/html; charset=ada'
    facts.noteRefusal(
      'token',
      {
        status: 403,
        contentType,
        json: { errors: [{ code: 'ada' }, { code: 1 }] },
        retryAfter: null,
        isPage: false,
      },
      [],
    )
    const { events, refusals } = await facts.facts()
    expect(events).toMatchObject([{ event: 'unrecognised', deliveries: 7 }])
    expect(events[0]?.userAgents.map(({ name }) => name)).toEqual(['*', 'a', 'Mozilla/5.0', 'curl/8'])
    expect(refusals).toEqual([
      {
        ...{ call: 'token', status: 403, contentType: 'text/html', count: 1 },
        fields: ['errors: array', 'errors[].code: number', 'errors[].code: string', 'errors[]: object'],
      },
    ])
  })

  it('shows the version of a user agent only if it can be no address and no identifier, and each name once a delivery', async () => {
    const facts = seenFacts()
    for (const version of [
      '',
      '/1',
      '/2.31.0',
      '/203.0.113.45',
      '/4917',
      '/1.2345',
      '/1.0-ada',
      `/${'1'.repeat(50)}`,
    ])
      facts.noteDelivery('a', { 'user-agent': `sender${version}`, 'x-1234': '', 'x-2345': '' }, none)
    const [{ userAgents, headers } = {}] = (await facts.facts()).events
    expect(userAgents).toEqual([
      { name: 'sender/*', count: 4 },
      ...['sender', 'sender/1', 'sender/2.31.0', '*'].map((name) => ({ name, count: 1 })),
    ])
    expect(headers).toContainEqual({ name: '*', count: 8 })
  })

  it('has no name of a field of a refusal, and no media type, that has a short identifier', async () => {
    const facts = seenFacts()
    const json = { acme_settings: 1, settingsTng: 2, tng: 3, code: 4 }
    const reply = { status: 403, json, retryAfter: null, isPage: false }
    facts.noteRefusal('read', { ...reply, contentType: 'application/x-acme' }, ['acme', 'TNG'])
    expect((await facts.facts()).refusals).toMatchObject([
      { contentType: null, fields: ['*: number', 'code: number'] },
    ])
  })

  it('has no name of a field of a refusal, and no media type, that repeats what was sent', async () => {
    const facts = seenFacts()
    const json = {
      errors: { my_app: 1, tokalphabiz: [], alphabiz: {}, code: 'x' },
      SECRETVALUE: 2,
      secretva: 3,
    }
    const contentType = 'application/tokalphabiz'
    facts.noteRefusal('read', { status: 403, contentType, json, retryAfter: null, isPage: false }, [
      'alphabiz',
      'tokalphabiz',
    ])
    expect((await facts.facts()).refusals).toMatchObject([
      {
        contentType: null,
        fields: [
          '*: number',
          'errors.*: array',
          'errors.*: number',
          'errors.*: object',
          'errors.code: string',
          'errors: object',
        ],
      },
    ])
  })

  it('is whole for two who ask at once', async () => {
    const facts = seenFacts()
    facts.noteDelivery('a', {}, none)
    const both = await Promise.all([facts.facts(), facts.facts()])
    expect(both.map(({ events }) => events[0]?.deliveries)).toEqual([1, 1])
  })

  it('begins with the process that began first, whichever stores first', async () => {
    const store = storeOfFacts()
    const [first, second] = [1_000, 2_000].map((at) => seenFacts({ store, now: () => at }))
    first?.noteDelivery('a', {}, none)
    second?.noteDelivery('a', {}, none)
    expect(await second?.facts()).toMatchObject({ since: new Date(2_000).toISOString() })
    for (const each of [first, second])
      expect(await each?.facts()).toMatchObject({
        since: new Date(1_000).toISOString(),
        events: [{ deliveries: 2 }],
      })
  })

  it('is kept for the next try while the store does not take it, and adds up', async () => {
    let isUp = false
    const facts = seenFacts({ store: storeOfFacts(() => isUp) })
    facts.noteDelivery('a', { accept: '*/*' }, none)
    await expect(facts.facts()).rejects.toThrow('down')
    facts.noteDelivery('a', { accept: '*/*' }, none)
    isUp = true
    await facts.facts()
    facts.noteToken(5)
    await facts.close()
    expect(await facts.facts()).toMatchObject({
      events: [{ event: 'a', deliveries: 2, headers: [{ name: 'accept', count: 2 }] }],
      tokens: { count: 1, shortestSeconds: 5, longestSeconds: 5 },
    })
  })
})

function seenFacts({ store = storeOfFacts(), now = Date.now } = {}) {
  return createSeenFacts({
    store,
    secrets: ['my_app', 'secretvalue'],
    clock: { ...systemClock, now },
  })
}

function storeOfFacts(isUp = () => true as boolean): Parameters<typeof createSeenFacts>[0]['store'] {
  let stored: string | null = null
  const up = <T>(value: T) => (isUp() ? Promise.resolve(value) : Promise.reject(new Error('down')))
  return {
    platformFacts: () => up(stored),
    async addPlatformFacts(add) {
      await up(null)
      // A write takes longer than a read.
      await new Promise((resolve) => setImmediate(resolve))
      stored = add(stored)
    },
  }
}

describe('the facts of the store', () => {
  it('have no value of any delivery, also of several together', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyDelivery(), { minLength: 1, maxLength: 5 }), async (deliveries) => {
        const receivedAt = new Date(0).toISOString()
        const rows = deliveries.map(({ delivery }) => {
          const found = classify(delivery)
          const [businessUid, subscriptionUid] = found.recognised
            ? [found.subject.business_uid, found.subject.subscription_uid]
            : [null, null]
          const kind = found.recognised ? 'event' : 'unrecognised'
          const name = found.recognised ? found.name : ''
          return { kind, name, businessUid, subscriptionUid, payload: delivery, receivedAt } as JournalEntry
        })
        const records = deliveries.map(({ delivery }) => ({
          ...{ subscriptionUid: 's', businessUid: 'b' },
          record: (delivery as { data?: unknown } | null)?.data ?? null,
        }))
        const store = {
          listEntries: async () => rows,
          listSubscriptions: async () => records as unknown as StoredSubscription[],
        }
        const facts = await createStoredFacts({ store, registry: EVENTS, secrets: [], clock: systemClock })()
        expect(facts.entries).toBe(rows.length)
        const shown = JSON.stringify(facts)
        const values = deliveries.flatMap((each) => each.values)
        expect(values.filter((value) => shown.includes(value))).toEqual([])
      }),
      { numRuns: 200 },
    )
  })

  it('name no secret of the app', async () => {
    const payload = { data: { lighthouse_x: 1, LightHouse: 1, other: 1 } }
    const entry = { kind: 'unrecognised', payload, receivedAt: new Date(0).toISOString() }
    const store = {
      listEntries: async () => [{ ...entry, businessUid: null, subscriptionUid: null } as JournalEntry],
      listSubscriptions: async () => [],
    }
    const given = { store, registry: EVENTS, secrets: ['lighthouse'], clock: systemClock }
    const { events } = await createStoredFacts(given)()
    expect(events[0]?.fields.map(({ path }) => path)).toEqual(['data', 'data.*', 'data.other'])
  })

  it('are those of the newest 10,000 entries, and read no more', async () => {
    let read = 0
    const entry = {
      ...{ kind: 'unrecognised', payload: 1, receivedAt: new Date(0).toISOString() },
      ...{ businessUid: null, subscriptionUid: null },
    } as JournalEntry
    const store = {
      async listEntries({ limit = 0 }) {
        read += limit
        return Array.from({ length: limit }, () => entry)
      },
      listSubscriptions: async () => [],
    }
    const { entries, events } = await createStoredFacts({
      store,
      registry: EVENTS,
      secrets: [],
      clock: systemClock,
    })()
    expect([entries, events[0]?.deliveries, read]).toEqual([10_000, 10_000, 10_000])
  })
})

function fieldsOf({ events }: PlatformReport['stored'], event: string) {
  return byPath(events.find((each) => each.event === event)?.fields ?? [])
}

function byPath<Field extends { path: string }>(
  fields: readonly Field[],
): Record<string, Omit<Field, 'path'>> {
  return Object.fromEntries(fields.map(({ path, ...rest }) => [path, rest]))
}

function valuesIn(value: unknown): string[] {
  if (typeof value === 'string' || typeof value === 'number') return [String(value)]
  return Object.values(value as object).flatMap(valuesIn)
}
