import { describe, expect, it, jest } from '@jest/globals'
import { DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import { createBusinesses } from '../../support/scenes/many-businesses.js'

jest.setTimeout(300_000)

describe('D97 a subscription moves to another business, an event names that business,', () => {
  it.each([SECOND, 20 * SECOND, 3 * MINUTE, 11 * MINUTE])(
    'and the platform shows the move %d ms later: a verification finds it',
    async (lagMs) => {
      const world = await createBusinesses(5)
      await world.update(8, 's1')
      await world.advance(lagMs)
      world.give('s1', 8)
      await world.advance(17 * MINUTE - lagMs)
      await expectMoved(world)
    },
  )

  it('and the platform shows the move only after the last verification: the reconcile finds it', async () => {
    const world = await createBusinesses(5)
    await world.update(8, 's1')
    await world.advance(HOUR)
    world.give('s1', 8)
    await world.advance(1.2 * DAY)
    await expectMoved(world)
  })

  it.each(['no token', 'not found', 'empty'] as const)(
    'and the platform answers reads of that business with "%s" for three minutes, after it is missing for the first',
    async (how) => {
      const world = await createBusinesses(5)
      world.serve(how, [8])
      world.give('s1', 8)
      await world.update(8, 's1')
      await world.advance(3 * MINUTE)
      expect((await world.explain(1)).reason).toBe('missing')
      world.serve('served', [8])
      await world.advance(12 * MINUTE)
      await expectMoved(world)
    },
  )

  it('and it moves on to a third, or back, while the reads lag', async () => {
    const world = await createBusinesses(5)
    await world.update(8, 's1')
    await world.advance(2 * SECOND)
    await world.update(9, 's1')
    await world.advance(MINUTE)
    world.give('s1', 9)
    await world.update(8, 's2')
    await world.update(2, 's2')
    await world.advance(15 * MINUTE)
    expect(await entitled(world, [1, 2, 8, 9])).toEqual([2, 9])
    world.give('s1', 1)
    await world.update(1, 's1')
    await world.advance(15 * MINUTE)
    expect(await entitled(world, [1, 2, 8, 9])).toEqual([1, 2])
  })

  it('after a forged event has named a stranger first, and its token is refused for 40 min', async () => {
    const world = await createBusinesses(5)
    world.serve('no token', [8, 9])
    world.give('s6', 8)
    await world.update(9, 's6')
    await world.advance(SECOND)
    await world.update(8, 's6')
    await world.advance(40 * MINUTE)
    expect((await world.explain(8)).entitled).toBe(false)
    world.serve('served', [8])
    await world.advance(30 * MINUTE)
    expect(await entitled(world, [8, 9])).toEqual([8])
  })
})

describe('D97 a forged event that names another business for a subscription', () => {
  it('costs no call for that business while the platform shows the subscription', async () => {
    const world = await createBusinesses(5)
    for (let times = 0; times < 20; times++) await world.update(9, 's1')
    await world.advance(2 * DAY)
    expect(world.calls(9)).toBe(0)
    expect(await world.out()).toEqual([])
  })

  it.each(['no token', 'empty'] as const)(
    'costs a bounded number of calls once the subscription has ended, when the answer for that business is "%s"',
    async (how) => {
      const world = await createBusinesses(5)
      world.serve(how, [9])
      await world.update(9, 's1')
      world.serve('no token', [1])
      await world.uninstall(1)
      await world.advance(5 * DAY)
      const calls = world.calls(9)
      expect(calls).toBeLessThanOrEqual(30)
      await world.advance(4 * DAY)
      expect(world.calls(9)).toBe(calls)
      expect(await world.out()).toEqual([1])
    },
  )
})

type World = Awaited<ReturnType<typeof createBusinesses>>

async function expectMoved(world: World) {
  expect(await entitled(world, [1, 8])).toEqual([8])
  const of = world.changes.filter(({ business_uid }) => ['b1', 'b8'].includes(business_uid))
  expect(of.map(({ business_uid, to }) => [business_uid, to])).toEqual([
    ['b1', 'purchased'],
    ['b1', null],
    ['b8', 'purchased'],
  ])
}

async function entitled(world: World, numbers: readonly number[]) {
  const answers = []
  for (const i of numbers) if ((await world.explain(i)).entitled) answers.push(i)
  return answers
}
