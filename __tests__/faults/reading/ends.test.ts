import { describe, expect, it, jest } from '@jest/globals'
import { DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import { type Businesses, createBusinesses, type Service } from '../../support/scenes/many-businesses.js'

jest.setTimeout(120_000)

/** Days of the usual settings in hours. */
const SHORT = { freshness: { reconcileEveryMs: 2 * HOUR, maxStaleMs: 6 * HOUR } }

/** The events that may announce an end. */
const EVENTS = {
  uninstall: (world: Businesses, i: number) => world.uninstall(i),
  update: (world: Businesses, i: number) => world.update(i),
  'a record that shows an end': (world: Businesses, i: number) => world.updated(i, 'canceled'),
  nothing: async () => {},
}
type Event = keyof typeof EVENTS

/** The reads of a business that has left, its event, and when it is out: after the one time, by the other. */
const ENDS: [title: string, how: Service, event: Event, afterMs: number, byMs: number, reason: string][] = [
  ['after an uninstall', 'no token', 'uninstall', 50 * SECOND, 2 * MINUTE, 'revoked'],
  ['after its own record', 'no token', 'a record that shows an end', 0, 5 * SECOND, 'ended'],
  ['after an update', 'no token', 'update', 55 * MINUTE, 65 * MINUTE, 'ended'],
  ['without an event after maxStaleMs', 'no token', 'nothing', 6 * HOUR, 9 * HOUR, 'ended'],
  ['after an update and an error sent with 200', 'error with 200', 'update', 0, 65 * MINUTE, 'ended'],
  ['after an update and an empty list', 'empty', 'update', 0, 3 * MINUTE, 'missing'],
  [
    'D96 after an uninstall, if tokens are given',
    'not found',
    'uninstall',
    55 * MINUTE,
    65 * MINUTE,
    'ended',
  ],
]

describe.each([1, 2, 25])('D60 one of %d businesses leaves, and the platform refuses it:', (count) => {
  it.each(ENDS)('%s (%s) it is out in time', async (_title, how, event, afterMs, byMs, reason) => {
    const world = await createBusinesses(count, event === 'nothing' ? SHORT : {})
    world.serve(how, [1])
    await EVENTS[event](world, 1)
    await world.advance(afterMs)
    if (afterMs > 0) expect((await world.rows(1))[0]?.gone).toBeNull()
    await world.advance(byMs - afterMs)
    expect(await world.out()).toEqual([1])
    expect(await world.explain(1)).toMatchObject({ reason, known: true })
    expect(world.changes.filter((change) => change.to === null)).toMatchObject([
      { business_uid: 'b1', from: 'purchased', to: null, gone: reason },
    ])
    expect(await world.health()).toEqual(['ok'])
  })
})

describe('D17 an uninstall takes no access away', () => {
  it.each([
    ['alone', {}, 0],
    ['with a token that is refused for less than a minute', {}, MINUTE - SECOND],
    ['of another app, even with a refused token', { app_code_name: 'other' }, 5 * MINUTE],
  ])('%s', async (_how, data, refusedMs) => {
    const world = await createBusinesses(2)
    if (refusedMs > 0) world.serve('no token', [1])
    await world.uninstall(1, data)
    await world.track(1)
    await world.advance(refusedMs)
    expect(await world.out()).toEqual([])
    world.serve('served')
    await world.advance(10 * MINUTE)
    expect(await world.out()).toEqual([])
    expect(world.changes).toHaveLength(2)
  })
})

describe('D17 a business leaves, and the sender repeats its uninstall during each read:', () => {
  it('it is out in time, with one change', async () => {
    const world = await createBusinesses(5)
    world.serve('no token', [1])
    await world.uninstall(1)
    world.sendDuringCalls('application/uninstalled', 1)
    await world.advance(2 * MINUTE)
    expect(await world.out()).toEqual([1])
    expect(await world.explain(1)).toMatchObject({ reason: 'revoked', known: true })
    expect(world.changes.filter((change) => change.to === null)).toHaveLength(1)
  })
})

describe('D17 a business leaves, and the sender makes up an install of it:', () => {
  it.each([
    ['after its uninstall', false],
    ['before it, with a later date', true],
  ])('%s it is out an hour later', async (_when, isBefore) => {
    const world = await createBusinesses(5)
    const inMs = (ms: number) => ({ event_time: new Date(world.clock.now() + ms).toISOString() })
    if (isBefore) await world.install(1, inMs(20 * HOUR))
    await world.advance(2 * HOUR)
    world.serve('no token', [1])
    await world.uninstall(1, inMs(0))
    if (!isBefore) await world.install(1, inMs(SECOND))
    await world.advance(55 * MINUTE)
    expect(await world.out()).toEqual([])
    await world.advance(10 * MINUTE)
    expect(await world.out()).toEqual([1])
    expect(await world.explain(1)).toMatchObject({ reason: 'ended', known: true })
  })
})

describe('D65 a business with two subscriptions leaves, and the event of one is lost:', () => {
  it('the update of the other one counts for both, since a token is the whole business’s', async () => {
    const world = await createBusinesses(5, SHORT)
    await world.track(1, 's1-2')
    await world.advance(MINUTE)
    world.serve('no token', [1])
    await world.update(1)
    await world.advance(1.5 * HOUR)
    expect(await world.out()).toEqual([])
    await world.advance(2.5 * HOUR)
    expect(await world.out()).toEqual([1])
    expect((await world.rows(1)).map(({ gone }) => gone)).toEqual(['ended', 'ended'])
  })

  it('with a token, the refused reads of the other one say nothing about it', async () => {
    const world = await createBusinesses(5, SHORT)
    await world.track(1, 's1-2')
    await world.advance(MINUTE)
    world.serve('not found', [1])
    await world.update(1)
    await world.advance(4 * HOUR)
    expect((await world.rows(1)).map(({ gone }) => gone)).toEqual(['ended', null])
    expect(await world.out()).toEqual([])
  })
})

describe('D26, D61 the platform fails for everybody, and nobody is out:', () => {
  it.each([
    ['empty', 40],
    ['no token', 5],
    ['forbidden', 5],
    ['empty', 2],
    ['empty', 3],
    ['no token', 2],
    ['no token', 3],
    ['error with 200', 5],
  ] as const)('%s for all of %d businesses, with a restart each hour', async (how, count) => {
    const world = await createBusinesses(count, { instances: count === 40 ? 1 : 2 })
    world.serve(how)
    await world.update(1)
    await world.advance(10 * MINUTE)
    expect(await world.health()).toEqual(['degraded', expect.stringMatching(/of \d+ businesses/)])
    for (let hour = 0; hour < 8; hour++) {
      await world.advance(HOUR)
      await world.restart()
      if (hour % 4 === 0) expect(await world.out()).toEqual([])
    }
    await world.advance(MINUTE)
    expect(await world.out()).toEqual([])
    expect(await world.health()).toEqual(['degraded', expect.stringMatching(/of \d+ businesses/)])
    world.serve('served')
    await world.advance(3 * HOUR)
    expect(await world.health()).toEqual(['ok'])
    expect(world.changes).toHaveLength(count)
  })

  it.each([2, 5])(
    'for all of %d businesses, which have canceled, and have paid until later',
    async (count) => {
      const world = await createBusinesses(count, { entitledWhen: () => true })
      for (const i of numbersUpTo(count)) {
        world.move(`b${i}`, 'canceled')
        await world.update(i)
      }
      await world.advance(30 * MINUTE)
      world.serve('empty')
      await world.advance(30 * HOUR)
      expect(await world.out()).toEqual([])
      expect(await world.health()).toEqual(['degraded', expect.stringMatching(/of \d+ businesses/)])
      world.serve('served')
      await world.advance(3 * HOUR)
      expect(await world.health()).toEqual(['ok'])
    },
  )

  it('D64 after four days all are served within minutes of the first, and the one that left is out', async () => {
    const world = await createBusinesses(25)
    world.serve('no token')
    for (let day = 0; day < 4; day++) {
      await world.advance(DAY)
      await world.update(2)
    }
    await world.uninstall(1)
    await world.advance(HOUR)
    expect(await world.explain(3)).toMatchObject({ reason: 'stale' })
    world.serve(
      'served',
      Array.from({ length: 24 }, (_, i) => i + 2),
    )
    await world.update(2)
    await world.advance(4 * MINUTE)
    for (const i of [2, 3, 10, 25]) expect(await world.explain(i)).toMatchObject({ reason: 'purchased' })
    expect(await world.explain(1)).toMatchObject({ reason: 'revoked' })
    expect(world.changes.filter((change) => change.to === null)).toMatchObject([{ business_uid: 'b1' }])
    expect(await world.health()).toEqual(['ok'])
  })

  it('with four instances on one database', async () => {
    const world = await createBusinesses(40, { instances: 4 })
    world.serve('empty')
    await world.update(1)
    await world.advance(10 * MINUTE)
    for (let instance = 0; instance < 4; instance++)
      expect(await world.health(instance)).toEqual([
        'degraded',
        expect.stringMatching(/no longer shows .* of 40 businesses/),
      ])
    await world.advance(3 * HOUR)
    expect(await world.out()).toEqual([])
  })

  it.each([
    ['uninstall', 30, 40, 3 * SECOND],
    ['uninstall', 30, 40, 10 * MINUTE],
    ['update', 30, 40, 3 * HOUR],
    ['a record that shows an end', 30, 40, 3 * HOUR],
    ['a record that shows an end', 3, 3, 3 * SECOND],
    ['a record that shows an end', 5, 5, 3 * SECOND],
    ['a record that shows an end', 30, 30, 3 * SECOND],
  ] as [Event, number, number, number][])(
    'while ends are forged by %s for %d of %d: for %d ms',
    async (event, forged, count, ms) => {
      const world = await createBusinesses(count)
      world.serve('no token')
      for (const i of numbersUpTo(forged)) await EVENTS[event](world, i)
      await world.advance(ms)
      expect(await world.out()).toEqual([])
      expect(await world.health()).toEqual(['degraded', expect.stringMatching(/of \d+ businesses/)])
      world.serve('served')
      await world.advance(2 * HOUR)
      expect(await world.out()).toEqual([])
      expect(await world.health()).toEqual(['ok'])
      expect(world.changes).toHaveLength(count)
    },
  )

  it.each([5 * MINUTE, 30 * MINUTE, 2 * HOUR])(
    '%d ms after the uninstalls of all were forged',
    async (ms) => {
      const world = await createBusinesses(10)
      for (let i = 1; i <= 10; i++) await world.uninstall(i)
      await world.advance(ms)
      world.serve('no token')
      for (let i = 1; i <= 6; i++) {
        await world.update(i)
        await world.advance(20 * MINUTE)
        expect(await world.out()).toEqual([])
      }
      expect(await world.health()).toEqual(['degraded', expect.stringMatching(/of 10 businesses/)])
    },
  )

  it('for those 30 of 40 whose uninstalls are forged, too: they are held back, and health is degraded', async () => {
    const world = await createBusinesses(40)
    const forged = numbersUpTo(30)
    world.serve('no token', forged)
    for (const i of forged) await world.uninstall(i)
    await world.advance(HOUR)
    expect(await world.out()).toEqual([])
    expect(await world.health()).toEqual(['degraded', expect.stringMatching(/refuses the reads of 30 of 40/)])
    world.serve('served')
    await world.advance(2 * HOUR)
    expect(await world.out()).toEqual([])
    expect(world.changes).toHaveLength(40)
  })

  it('refused credentials and an outage end nothing, however long they last', async () => {
    for (const how of ['wrong secret', 'down'] as const) {
      const world = await createBusinesses(2, SHORT)
      world.serve(how)
      await world.uninstall(1)
      await world.updated(1, 'canceled')
      await world.advance(9 * HOUR)
      expect(await world.explain(1)).toMatchObject({ reason: 'stale', known: false })
      expect(world.changes).toHaveLength(2)
    }
  })

  it('all of five refused without an event for longer than maxStaleMs are stale, not ended', async () => {
    const world = await createBusinesses(5, SHORT)
    world.serve('no token')
    await world.advance(12 * HOUR)
    for (const i of [1, 5]) expect(await world.explain(i)).toMatchObject({ reason: 'stale', known: false })
    expect((await world.health())[0]).toBe('degraded')
    world.serve('served')
    await world.advance(3 * HOUR)
    expect(await world.out()).toEqual([])
  })
})

describe('D66 the platform fails for more than half of the businesses:', () => {
  it.each([
    ['empty', 32, 40],
    ['empty', 28, 40],
    ['no token', 32, 40],
    ['empty', 9, 12],
  ] as const)(
    '%s for %d of %d, which regular reads find one after the other: nobody is out',
    async (how, failing, count) => {
      const world = await createBusinesses(count)
      world.serve(how, numbersUpTo(failing))
      for (let hour = 0; hour < 36; hour += 3) {
        await world.advance(3 * HOUR)
        expect(await world.out()).toEqual([])
      }
      expect((await world.health())[0]).toBe('degraded')
      world.serve('served')
      await world.advance(90 * MINUTE)
      expect(await world.health()).toEqual(['ok'])
    },
  )

  it('and an update of one of them comes now and then: nobody is out', async () => {
    const world = await createBusinesses(40)
    world.serve('no token', numbersUpTo(32))
    for (let i = 1; i <= 16; i++) {
      await world.update(i * 2)
      await world.advance(15 * MINUTE)
    }
    expect(await world.out()).toEqual([])
    expect((await world.health())[0]).toBe('degraded')
  })

  it('one of two that ended without an event comes back: the other one is read within minutes', async () => {
    const world = await createBusinesses(20)
    world.serve('empty', [1, 2])
    await world.advance(40 * HOUR)
    expect(await world.out()).toEqual([1, 2])
    world.serve('served')
    await world.refresh(1)
    await world.advance(2 * MINUTE)
    expect(await world.out()).toEqual([])
  })
})

describe('D95 the platform recovers for some businesses first:', () => {
  it.each([
    ['empty', 'update', 1],
    ['no token', 'update', 1],
    ['empty', 'update', 7],
    ['no token', 'update', 7],
    ['no token', 'uninstall', 7],
  ] as [Service, Event, number][])(
    '%s for the others ends none of them, not even those that %s named during the outage (%d)',
    async (how, event, named) => {
      const world = await createBusinesses(7)
      world.serve(how)
      for (const i of numbersUpTo(named)) await EVENTS[event](world, i)
      await world.advance(2 * HOUR)
      world.serve('served', [1, 2, 3, 4])
      await world.advance(50 * MINUTE)
      expect(await world.out()).toEqual([])
      world.serve('served')
      await world.advance(HOUR)
      expect(await world.out()).toEqual([])
      expect(world.changes).toHaveLength(7)
      if (named === 1) expect(await world.health()).toEqual(['ok'])
    },
  )

  it.each(['no token', 'forbidden'] as const)('also after an outage of days (%s)', async (how) => {
    const world = await createBusinesses(7, SHORT)
    world.serve(how)
    await world.advance(10 * HOUR)
    world.serve('served', [1, 2, 3, 4])
    await world.advance(3 * HOUR)
    expect(world.changes).toHaveLength(7)
    for (const i of [5, 6, 7]) expect(await world.explain(i)).toMatchObject({ reason: 'stale' })
  })

  it('a business that none of those events named and that is not shown again is out in time', async () => {
    const world = await createBusinesses(3)
    world.serve('empty')
    await world.update(1)
    await world.advance(HOUR)
    world.serve('served', [1, 2])
    await world.advance(2 * HOUR)
    expect(await world.out()).toEqual([3])
    expect(await world.health()).toEqual(['ok'])
  })
})

describe('D62 several leave:', () => {
  it.each([
    ['are out within minutes', 2, 2, 3 * MINUTE],
    ['are out within minutes', 5, 25, 4 * MINUTE],
    ['are held back: that is an outage', 3, 3, 10 * MINUTE],
  ])('%s, %d of %d within a minute', async (what, leaving, count, ms) => {
    const world = await createBusinesses(count)
    world.serve('no token', numbersUpTo(leaving))
    for (const i of numbersUpTo(leaving)) await world.uninstall(i)
    await world.advance(ms)
    const areOut = what.startsWith('are out')
    expect(await world.out()).toEqual(areOut ? numbersUpTo(leaving) : [])
    expect((await world.health())[0]).toBe(areOut ? 'ok' : 'degraded')
  })

  it('everybody, one after the other over days: each is out in time, and health is ok', async () => {
    const world = await createBusinesses(6)
    for (let i = 1; i <= 6; i++) {
      world.serve('no token', [i])
      await (i % 2 === 0 ? world.uninstall(i) : world.updated(i, 'canceled'))
      await world.advance(3 * MINUTE)
      expect(await world.out()).toEqual(numbersUpTo(i))
      expect(await world.health()).toEqual(['ok'])
      await world.advance(3 * HOUR)
    }
    expect(await world.health()).toEqual(['ok'])
  })
})

describe('D63 after an end', () => {
  it('a mistake of the platform is over within seconds of its end', async () => {
    const world = await createBusinesses(2)
    world.serve('no token', [1])
    await world.updated(1, 'canceled')
    await world.advance(3 * SECOND)
    expect(await world.out()).toEqual([1])
    world.serve('served')
    await world.advance(6 * SECOND)
    expect(await world.out()).toEqual([])
    expect(world.changes.at(-1)).toMatchObject({ from: null, to: 'purchased', gone: null })
  })

  it('a business that buys again is back within seconds of its event, and without one at a later read', async () => {
    const world = await createBusinesses(2)
    for (const isAnnounced of [true, false]) {
      world.serve('no token', [1])
      await world.uninstall(1)
      await world.advance(5 * HOUR)
      expect(await world.out()).toEqual([1])
      world.serve('served')
      if (isAnnounced) await world.install(1)
      await world.advance(isAnnounced ? 2 * SECOND : 5 * HOUR)
      expect(await world.out()).toEqual([])
      await world.advance(2 * HOUR)
    }
  })

  it('a business that stays refused costs no more reads than the reconcile, and health stays ok', async () => {
    const world = await createBusinesses(2)
    world.serve('no token', [1])
    await world.uninstall(1)
    await world.advance(2 * DAY)
    const before = world.reads()
    await world.advance(2 * DAY)
    // Each read of the refused one ends at the token endpoint or after it.
    expect(world.reads() - before).toBeLessThanOrEqual(8)
    expect(await world.health()).toEqual(['ok'])
    expect(await world.counts()).toMatchObject({ refused: 0, active: 1 })
  })

  it('a record in an event that gives access clears an announced end', async () => {
    const world = await createBusinesses(2)
    world.serve('down', [1])
    await world.updated(1, 'canceled')
    await world.updated(1, 'purchased')
    world.serve('no token', [1])
    await world.advance(30 * MINUTE)
    expect(await world.out()).toEqual([])
  })

  it('a record that is found clears an announced end', async () => {
    const world = await createBusinesses(2)
    await world.updated(1, 'canceled')
    await world.advance(20 * MINUTE)
    world.serve('no token', [1])
    await world.track(1)
    await world.advance(30 * MINUTE)
    expect(await world.out()).toEqual([])
  })

  it('a canceled subscription that is refused stays canceled, without a change', async () => {
    const world = await createBusinesses(2, SHORT)
    world.move('b1', 'canceled')
    await world.update(1)
    await world.advance(MINUTE)
    world.serve('no token', [1])
    await world.uninstall(1)
    await world.advance(9 * HOUR)
    expect(await world.explain(1)).toMatchObject({ reason: 'not_purchased', known: true })
    expect(world.changes.at(-1)).toMatchObject({ from: 'purchased', to: 'canceled' })
    expect(await world.health()).toEqual(['ok'])
  })

  it.each(['no token', 'empty'] as const)(
    'a canceled subscription that still gives access ends when the platform does not show it any more: %s',
    async (service) => {
      const world = await createBusinesses(4, {
        entitledWhen: ({ purchase_state }) => purchase_state === 'purchased' || purchase_state === 'canceled',
      })
      world.move('b1', 'canceled')
      await world.update(1)
      await world.advance(10 * MINUTE)
      expect(await world.out()).toEqual([])
      world.serve(service, [1])
      await world.uninstall(1)
      await world.advance(HOUR)
      expect(await world.explain(1)).toMatchObject({ entitled: false, known: true })
      expect(world.changes.at(-1)).toMatchObject({ from: 'canceled', to: null })
    },
  )

  it('a paid-through subscription that is not shown any more when its paid time ends counts no longer', async () => {
    const paid = { until: Number.POSITIVE_INFINITY }
    const world = await createBusinesses(2, {
      entitledWhen: ({ purchase_state }, { now }) =>
        purchase_state === 'purchased' ||
        (purchase_state === 'canceled' && now < paid.until && { entitled: true, until: paid.until }),
    })
    paid.until = world.clock.now() + 2 * HOUR
    world.move('b1', 'canceled')
    await world.update(1)
    await world.advance(HOUR)
    expect(await world.out()).toEqual([])
    world.serve('empty', [1])
    await world.advance(HOUR + 10 * MINUTE)
    expect(await world.out()).toEqual([1])
    expect(await world.counts()).toMatchObject({ active: 1, refused: 0 })
    world.serve('empty', [2])
    await world.update(2)
    await world.advance(10 * MINUTE)
    expect(await world.out()).toEqual([1, 2])
    expect(await world.health()).toEqual(['ok'])
  })
})

const numbersUpTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1)
