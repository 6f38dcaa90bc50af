import { describe, expect, it } from '@jest/globals'
import { causeOf } from '../../lib/console/server/attention/cause.js'
import { createScene } from '../support/scene.js'
import { consoleCaller, mountConsole } from '../support/scenes/console.js'
import { until } from '../support/until.js'

describe('the groups of failures', () => {
  it('are one for each cause, however many businesses it struck', async () => {
    const { marketplace, platform, operator } = await stage()
    marketplace.on('application/installed', ({ data }) => {
      throw new Error(`Cannot set up ${data.business_id}: the ledger answered 503`)
    })
    for (const business of ['milano', 'berlin', 'shop-7', '42']) platform.install(business)
    await platform.settled()
    await until('four are dead', async () => (await marketplace.health()).counts?.dead === 4)
    const { body } = await operator.read('attention')
    expect(body.groups).toMatchObject([
      { count: 4, error: 'Error: Cannot set up #: the ledger answered 503', name: 'application/installed' },
    ])
  })

  it('are listed by their size, whichever failed last', async () => {
    const { marketplace, platform, operator } = await stage()
    marketplace.on('application/installed', ({ data }) => {
      throw new Error(data.business_id === 'last' ? 'no room' : 'no ledger')
    })
    for (const business of ['b1', 'b2', 'last']) {
      platform.install(business)
      await platform.settled()
    }
    await until('three are dead', async () => (await marketplace.health()).counts?.dead === 3)
    const { body } = await operator.read('attention')
    expect(body.groups).toMatchObject([
      { count: 2, error: 'Error: no ledger' },
      { count: 1, error: 'Error: no room' },
    ])
  })

  it('differ by handler, class, message, and short numbers', () => {
    const texts = ['Error: a', 'TypeError: a', 'Error: b', 'Error: a 503', 'Error: a 502', 'Error: x.5432']
    expect(new Set(texts.map((error) => cause(error))).size).toBe(6)
  })
})

describe('the cause of a failure', () => {
  it.each([
    ['the business', 'Error: no room for shop-1 in shop-10', 'Error: no room for # in shop-10'],
    ['the subscription', 'Error: sub:s-1.', 'Error: sub:#.'],
    ['the entry', 'Error: entry e-1', 'Error: entry #'],
    ['an identifier of the payload', 'Error: buyer anna, 77', 'Error: buyer #, #'],
    ['a UUID', 'Error: 427e4b4e-7226-46fc-b413-be288e4fa468', 'Error: #'],
    ['a time', 'Error: at 2026-03-01T12:00:00.123Z', 'Error: at #'],
    ['a hash', 'Error: 0123456789abcdef01', 'Error: #'],
    ['a long number', 'Error: request 1234567', 'Error: request #'],
  ])('leaves out %s', (_what, error, expected) => {
    expect(cause(error)).toBe(expected)
  })

  it.each([
    'Error: 503 from 127.0.0.1:5432',
    'Error: ORA-00942, E11000',
    'Error: the facade and defaced words',
    'Error: purchased by nobody',
    'Error: 7',
  ])('keeps %s', (error) => {
    expect(cause(error)).toBe(error)
  })

  it('has at most 300 characters, and words for an entry without an error', () => {
    expect(cause(`Error: ${'x '.repeat(900)}`)).toHaveLength(300)
    expect(cause(null)).toBe('no error was recorded')
  })

  it('looks at a bounded part of a payload', () => {
    const data = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`n${n}`, n]))
    expect(causeOf({ ...ENTRY, error: 'Error: late', payload: { ...data, uid: 'late' } })).toBe('Error: late')
  })
})

const ENTRY = { id: 'e-1', business_uid: 'shop-1', subscription_uid: 's-1' }

function cause(error: string | null): string {
  const record = { buyer_uid: 'anna', state: 'purchased', requestId: 77, id: 7 }
  return causeOf({ ...ENTRY, error, payload: { data: { record, list: [null, { a: 1 }] } } })
}

describe('the outcome of a replay', () => {
  it('is handled, or failed again with what', async () => {
    const { marketplace, platform, operator } = await stage()
    let error: string | undefined = 'no room'
    marketplace.on('application/installed', () => {
      if (error) throw new Error(error)
    })
    platform.install('b1')
    await until('it is dead', async () => (await marketplace.health()).counts?.dead === 1)
    const replay = async () => {
      const { body } = await operator.act('replay', { status: 'dead', reason: 'a test' })
      const outcome = async () => (await operator.read('outcomes', { ids: body.ids.join() })).body.entries[0]
      return until('there is an outcome', async () => {
        const row = await outcome()
        return row.status !== 'pending' && row
      })
    }
    error = 'still no room'
    expect(await replay()).toMatchObject({ status: 'dead', attempts: 1, error: 'Error: still no room' })
    error = undefined
    expect(await replay()).toMatchObject({ status: 'done' })
  })

  it('is asked for at most a hundred entries at once', async () => {
    const { operator } = await stage()
    const ids = (count: number) => Array.from({ length: count }, (_, n) => `e${n}`).join()
    expect(await operator.read('outcomes', { ids: ids(100) })).toMatchObject({
      status: 200,
      body: { entries: [] },
    })
    expect((await operator.read('outcomes', { ids: ids(101) })).status).toBe(400)
  })

  it('reads one entry at a time, because a payload may be large', async () => {
    const { app, marketplace, url, deliver } = await createScene()
    let [running, most] = [0, 0]
    async function get(id: string) {
      most = Math.max(most, ++running)
      return marketplace.journal.get(id).finally(() => running--)
    }
    mountConsole(app, { ...marketplace, journal: { ...marketplace.journal, get } })
    const { id } = await deliver({ entity_name: 'invoice', event_type: 'paid', data: {} })
    const ids = [...Array.from({ length: 99 }, (_, n) => `e${n}`), id].join()
    const { body } = await consoleCaller(`${url}/ops`, 'operator').read('outcomes', { ids })
    expect([body.entries.map((entry: { id: string }) => entry.id), most]).toEqual([[id], 1])
  })
})

describe('the numbers of health', () => {
  it('are those of health(), each in words of its own, times in their units', async () => {
    const { marketplace, deliver, operator } = await stage()
    await deliver({ odd: true })
    const { counts } = await marketplace.health()
    const { body } = await operator.read('health')
    const numbers = body.numbers as { words: string; text: string }[]
    expect(numbers).toHaveLength(Object.keys(counts ?? {}).length)
    const words = numbers.map((each) => each.words)
    expect(new Set(words).size).toBe(words.length)
    for (const each of words) expect(each).toMatch(/^[A-Z][\w ,-]{6,}$/)
    for (const { text } of numbers) expect(text).toMatch(/^(?:\d[\d,]*\+?|none|\d+ (?:s|min|h))$/)
    expect(numbers).toContainEqual({ words: 'Unrecognised deliveries', text: '1' })
    expect(numbers).toContainEqual({ words: 'Age of the oldest requested read', text: 'none' })
  })
})

describe('the deliveries that arrive', () => {
  it('continue after the one seen last, as far as 500 entries, and else say that there is a gap', async () => {
    const { deliver, marketplace, operator } = await stage()
    const ids: string[] = []
    for (let i = 0; i < 130; i++) ids.push((await deliver({ any: i })).id)
    await marketplace.settled()
    const live = async (after?: string) => {
      const { body } = await operator.read('live', after === undefined ? {} : { after })
      return body as { entries: { id: string }[]; last: string; hasGap: boolean }
    }
    const newest = ids.toReversed()
    const first = await live()
    expect(first).toMatchObject({ last: newest[0], hasGap: false })
    expect(first.entries.map(({ id }) => id)).toEqual(newest.slice(0, 100))
    const since = await live(newest[120])
    expect(since.hasGap).toBe(false)
    expect(since.entries.map(({ id }) => id)).toEqual(newest.slice(0, 121))
    const whole = await live('of another time')
    expect([whole.entries.length, whole.hasGap]).toEqual([130, false])
    for (let i = 0; i < 400; i++) await deliver({ more: i })
    const behind = await live(ids[0])
    expect([behind.entries.length, behind.hasGap]).toEqual([500, true])
  })
})

async function stage() {
  const scene = await createScene({ handlers: { retryDelaysMs: [] } })
  mountConsole(scene.app, scene.marketplace)
  return { ...scene, operator: consoleCaller(`${scene.url}/ops`, 'operator') }
}
