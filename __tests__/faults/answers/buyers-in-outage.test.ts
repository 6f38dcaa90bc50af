import { describe, expect, it, jest } from '@jest/globals'
import { HOUR, MINUTE } from '../../../lib/base/clock.js'
import { type Businesses, createBusinesses, type Service } from '../../support/scenes/many-businesses.js'

jest.setTimeout(300_000)

const ANSWERS = [
  ['no token', 'unreadable', /refuses the reads of \d of \d businesses .*token_refused/],
  ['not found', 'unreadable', /refuses the reads of \d of \d businesses/],
  ['empty', 'missing', /no longer shows the subscriptions of \d of \d businesses/],
] as [Service, string, RegExp][]

describe.each(ANSWERS)(
  'D98 a business buys, and the platform answers its reads with "%s":',
  (how, no, words) => {
    it('while it answers all like that, the answer is unknown, and health is degraded within minutes', async () => {
      const world = await createBusinesses(6)
      world.serve(how, [1, 2, 3, 4, 5, 6, 7])
      await world.update(7)
      await world.advance(10 * MINUTE)
      expect(await world.health()).toEqual(['degraded', expect.stringMatching(words)])
      await world.advance(5 * HOUR)
      expect(await world.explain(7)).toMatchObject({ known: false, reason: 'not_read_yet' })
      expect(await world.out()).toEqual([])
      expect(await world.health()).toEqual(['degraded', expect.stringMatching(words)])
      world.serve('served', [1, 2, 3, 4, 5, 6, 7])
      await world.advance(5 * HOUR)
      expect(await world.explain(7)).toMatchObject({ entitled: true })
      expect(await world.health()).toEqual(['ok'])
    })

    it('while others are served, the answer is a definite no after the last verification', async () => {
      const world = await createBusinesses(6)
      world.serve(how, [7])
      const before = callsOf(world)
      await world.update(7)
      await world.advance(10 * MINUTE)
      expect(await world.explain(7)).toMatchObject({ known: false, reason: 'not_read_yet' })
      await world.advance(10 * MINUTE)
      expect(await world.explain(7)).toMatchObject({ known: true, entitled: false, reason: no })
      // Nobody else was read meanwhile, so some of the others were read for this.
      expect(callsOf(world) - before).toBeGreaterThan(0)
      expect(callsOf(world) - before).toBeLessThanOrEqual(12)
      expect(await world.health()).toEqual(['ok'])
    })

    it('when the outage is over for others, its no becomes definite, if the platform still answers so', async () => {
      const world = await createBusinesses(6)
      world.serve(how, [1, 2, 3, 4, 5, 6, 7])
      await world.update(7)
      await world.advance(HOUR)
      world.serve('served', [1, 2, 3, 4, 5, 6])
      await world.advance(2 * HOUR)
      expect(await world.explain(7)).toMatchObject({ known: true, entitled: false, reason: no })
    })
  },
)

describe('D98 the first business of all buys, and the platform refuses it a token,', () => {
  it('and nobody else could show whether it serves anybody: a definite no, and health is degraded', async () => {
    const world = await createBusinesses(0)
    world.serve('no token', [1])
    await world.update(1)
    await world.advance(HOUR)
    expect(await world.explain(1)).toMatchObject({ known: true, reason: 'unreadable' })
    expect((await world.health())[0]).toBe('degraded')
    expect(world.calls(1)).toBeLessThanOrEqual(12)
  })
})

describe('D98 forged events name subscriptions that do not exist', () => {
  it('while others are served: all are a definite no, health is ok, and few of the others are read for it', async () => {
    const world = await createBusinesses(6)
    world.serve('no token', range(11, 60))
    const before = callsOf(world)
    for (const i of range(11, 60)) await world.update(i)
    await world.advance(20 * MINUTE)
    for (const i of range(11, 60)) expect((await world.explain(i)).reason).toBe('unreadable')
    expect(callsOf(world) - before).toBeLessThanOrEqual(12)
    expect(await world.health()).toEqual(['ok'])
  })

  it('while nobody is served, nobody gets access, and a business that paid keeps it', async () => {
    const world = await createBusinesses(6)
    world.serve('no token')
    world.serve('no token', range(11, 20))
    for (const i of range(11, 20)) await world.update(i)
    await world.advance(HOUR)
    for (const i of range(11, 20))
      expect(await world.explain(i)).toMatchObject({ known: false, entitled: false })
    expect(await world.out()).toEqual([])
  })
})

describe.each(ANSWERS)(
  'D99 the platform answers all reads with "%s" for hours, and is well again:',
  (how) => {
    it('who bought meanwhile is in three minutes after the businesses that were known', async () => {
      const world = await createBusinesses(6)
      world.serve(how, range(1, 9))
      await world.update(7)
      await world.advance(5 * HOUR)
      await world.update(8)
      await world.advance(HOUR)
      await world.update(9)
      await world.advance(5 * MINUTE)
      world.serve('served', range(1, 9))
      await untilKnownAreBack(world)
      await world.advance(3 * MINUTE)
      for (const i of [7, 8, 9]) expect(await world.explain(i)).toMatchObject({ entitled: true })
    })

    it('whoever bought and is read first brings the others back, the known ones too', async () => {
      const world = await createBusinesses(6)
      world.serve(how, range(1, 8))
      await world.update(7)
      await world.advance(5 * HOUR)
      await world.update(8)
      await world.advance(5 * MINUTE)
      world.serve('served', range(1, 8))
      await world.update(8)
      await world.advance(4 * MINUTE)
      expect((await world.counts()).refused).toBe(0)
      for (const i of [7, 8]) expect(await world.explain(i)).toMatchObject({ entitled: true })
    })
  },
)

describe('D99 a business buys, and the platform lags eleven minutes behind its event,', () => {
  it('a read in between, because another business is shown again, does not make its no definite', async () => {
    const world = await createBusinesses(6)
    world.serve('no token', [1])
    await world.update(1)
    world.serve('empty', [7])
    await world.update(7)
    await world.advance(4 * MINUTE)
    const before = world.calls(7)
    world.serve('served', [1])
    await world.update(1)
    await world.advance(6 * MINUTE)
    expect(world.calls(7)).toBeGreaterThan(before)
    expect(await world.explain(7)).toMatchObject({ known: false, reason: 'not_read_yet' })
    await world.advance(MINUTE)
    world.serve('served', [7])
    await world.advance(4 * MINUTE)
    expect(await world.explain(7)).toMatchObject({ entitled: true })
  })
})

describe('D99 forged events name 1,000 subscriptions during an outage,', () => {
  it('who bought after them is in within minutes, and few of them are read for it', async () => {
    const world = await createBusinesses(6)
    const forged = range(1_001, 2_000)
    world.serve('no token', [...range(1, 8), ...forged])
    await world.update(7)
    for (const i of forged) {
      await world.update(i)
      await world.advance(100)
    }
    await world.update(8)
    await world.advance(5 * HOUR)
    world.serve('served', range(1, 8))
    await untilKnownAreBack(world)
    const before = callsOf(world, forged)
    await world.advance(3 * MINUTE)
    expect(await world.explain(8)).toMatchObject({ entitled: true })
    await world.advance(7 * MINUTE)
    // Each of the eight that are shown again causes 20 reads at most. The others are those that were due by themselves.
    expect(callsOf(world, forged) - before).toBeLessThan(400)
    await world.advance(5 * HOUR)
    expect(await world.explain(7)).toMatchObject({ entitled: true })
  })
})

/**
 * The platform shows all of the known businesses again. They come back at a random time, and what follows is measured in
 * seconds: with jumps of a minute, about thirty reads would take one.
 */
async function untilKnownAreBack(world: Businesses) {
  for (let waited = 0; (await world.counts()).refused > 0; waited += MINUTE) {
    if (waited > HOUR) throw new Error('the known businesses are not back after an hour')
    await world.advance(MINUTE)
  }
  world.lookClosely()
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
}

function callsOf(world: Businesses, which = range(1, 6)): number {
  return which.reduce((sum, i) => sum + world.calls(i), 0)
}
