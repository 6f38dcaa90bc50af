import { expect, it } from '@jest/globals'
import { HOUR, MINUTE } from '../../lib/base/clock.js'
import { createTurnedAway } from '../../lib/store/accepting/turned-away.js'
import { eventOf } from '../support/events.js'

it('counts what was turned away within about the last hour, also while it goes on', () => {
  let now = 0
  const turnedAway = createTurnedAway({ monotonic: () => now })
  expect(turnedAway.lately()).toBeNull()
  turnedAway.counted([{ ...eventOf('s1'), payload: '{"entity_name":"app","event_type":"moved"}' }])
  for (let minute = 0; minute < 300; minute++) {
    now += MINUTE
    expect(turnedAway.refused('full')).toMatchObject({ code: 'delivery_turned_away' })
    turnedAway.deleted(500)
    const { refused, deleted, counted } = turnedAway.lately() ?? { refused: 0, deleted: 0, counted: [] }
    expect(refused).toBeGreaterThanOrEqual(Math.min(minute + 1, 50))
    expect(refused).toBeLessThanOrEqual(61)
    expect([deleted, counted.length]).toEqual([
      500 * refused,
      minute < 50 ? 1 : minute > 60 ? 0 : counted.length,
    ])
  }
  now += HOUR
  expect(turnedAway.lately()).toBeNull()
})
