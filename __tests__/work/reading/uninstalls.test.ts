import { describe, expect, it } from '@jest/globals'
import { MINUTE } from '../../../lib/base/clock.js'
import { createBusinesses } from '../../support/scenes/many-businesses.js'

describe('D17 an uninstall', () => {
  it('alone takes no access away', async () => {
    const world = await createBusinesses(1)
    const before = world.reads()
    await world.uninstall(1)
    await world.advance(1_000)
    expect(world.reads()).toBe(before + 1)
    await world.advance(5 * MINUTE)
    expect(await world.out()).toEqual([])
  })

  it('takes no access away with a token that is refused for less than a minute', async () => {
    const world = await createBusinesses(1)
    world.serve('no token')
    await world.uninstall(1)
    await world.advance(MINUTE - 1_000)
    expect(await world.out()).toEqual([])
    world.serve('served')
    await world.advance(10 * MINUTE)
    expect(await world.out()).toEqual([])
    expect(world.changes).toHaveLength(1)
  })

  it.each(['before', 'after'])('takes access away together with a token refused %s it', async (order) => {
    const world = await createBusinesses(2)
    if (order === 'after') await world.uninstall(1)
    world.serve('no token', [1])
    if (order === 'after') await world.track(1)
    else {
      await world.track(1)
      await world.advance(10_000)
      await world.uninstall(1)
    }
    await world.advance(2 * MINUTE)
    expect(await world.explain(1)).toMatchObject({ entitled: false, known: true, reason: 'revoked' })
    expect(world.changes.at(-1)).toEqual({
      business_uid: 'b1',
      from: 'purchased',
      to: null,
      gone: 'revoked',
    })
    world.serve('served')
    await world.install(1)
    await world.advance(1_000)
    expect(await world.out()).toEqual([])
  })

  it.each([
    ['delivered out of order', '2024-05-01T10:00:00.000+02:00', '2024-05-01T08:59:59.000+01:00', false],
    ['followed by an install', '2024-05-01T10:00:00.000+02:00', '2024-05-01T09:00:01.000+01:00', true],
    ['at a zero date', '0001-01-01T00:00:00Z', '2024-05-01T09:00:00Z', false],
    ['followed by an install at a time that is none', '2024-05-01T10:00:00.000+02:00', 'soon', true],
    [
      'at a time without an offset, and an install before',
      '2024-05-01T10:00:00',
      '2024-05-01T09:00:00Z',
      false,
    ],
  ])('%s: the later of the two counts', async (_how, uninstall, install, stays) => {
    const world = await createBusinesses(2)
    await world.uninstall(1, { event_time: uninstall })
    await world.install(1, { event_time: install })
    world.serve('no token', [1])
    await world.advance(5 * MINUTE)
    const { entitled, reason } = await world.explain(1)
    expect([entitled, reason]).toEqual(stays ? [true, 'purchased'] : [false, 'revoked'])
  })

  it('of another app takes no access away, even if a token is refused', async () => {
    const world = await createBusinesses(2)
    await world.uninstall(1, { app_code_name: 'other' })
    world.serve('no token', [1])
    await world.track(1)
    await world.advance(5 * MINUTE)
    expect(await world.out()).toEqual([])
  })
})
