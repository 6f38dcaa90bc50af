import { describe, expect, it } from '@jest/globals'
import { DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import { internals } from '../../support/internals.js'
import { type Businesses, createBusinesses } from '../../support/scenes/many-businesses.js'

describe('in virtual time', () => {
  it.each([1, 4])('D7 a read that lags %d times is repeated until it shows the change', async (times) => {
    const world = await createBusinesses(1, internals({ pollMs: SECOND }))
    const before = world.reads()
    world.fail('older', times)
    world.move('b1', 'suspended')
    await world.update(1)
    await world.advance(SECOND)
    expect(await stateIn(world)).toBe('purchased')
    await world.advance(20 * MINUTE)
    expect(await stateIn(world)).toBe('suspended')
    expect(world.reads() - before).toBe(times + 1)
    expect(statesIn(world)).toEqual(['purchased', 'suspended'])
  })

  it('D7, D10 the reconcile finds a change that a read missed because it lagged too long, and a lost event', async () => {
    const world = await createBusinesses(1, { freshness: { reconcileEveryMs: HOUR, maxStaleMs: 30 * DAY } })
    world.fail('older', 5)
    world.move('b1', 'suspended')
    await world.update(1)
    await world.advance(30 * MINUTE)
    expect(await stateIn(world)).toBe('purchased')
    await world.advance(1.2 * HOUR)
    expect(await stateIn(world)).toBe('suspended')
    world.move('b1', 'purchased')
    await world.advance(MINUTE)
    expect(await stateIn(world)).toBe('suspended')
    await world.advance(1.2 * HOUR)
    expect(await stateIn(world)).toBe('purchased')
    expect(statesIn(world)).toEqual(['purchased', 'suspended', 'purchased'])
  })

  it('D10 the reconcile comes in the half of maxStaleMs at the latest, so that no answer becomes stale between two', async () => {
    const world = await createBusinesses(1, { freshness: { reconcileEveryMs: DAY, maxStaleMs: 6 * HOUR } })
    for (let hour = 0; hour < 24; hour++) {
      await world.advance(HOUR)
      expect(await world.out()).toEqual([])
    }
  })

  it('D12 a record that disappears is denied after three reads over a minute, and not before', async () => {
    const world = await createBusinesses(1, internals({ pollMs: SECOND }))
    const before = world.reads()
    world.serve('empty')
    await world.update(1)
    await world.advance(59 * SECOND)
    expect(await world.out()).toEqual([])
    await world.advance(5 * SECOND)
    expect(world.reads() - before).toBe(3)
    expect(await world.explain(1)).toMatchObject({ entitled: false, reason: 'missing' })
    world.serve('served')
    await world.update(1)
    await world.advance(SECOND)
    expect(await world.out()).toEqual([])
    expect(statesIn(world)).toEqual(['purchased', null, 'purchased'])
  })

  it('D12 a record that is hidden for two reads stays unchanged', async () => {
    const world = await createBusinesses(1, internals({ pollMs: SECOND }))
    world.serve('empty')
    await world.update(1)
    await world.advance(40 * SECOND)
    world.serve('served')
    await world.advance(10 * MINUTE)
    expect(await world.out()).toEqual([])
    expect(statesIn(world)).toEqual(['purchased'])
  })
})

const stateIn = async (world: Businesses) => (await world.rows(1))[0]?.state
const statesIn = (world: Businesses) => world.changes.map(({ to }) => to)
