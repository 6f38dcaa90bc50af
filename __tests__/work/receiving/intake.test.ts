import { describe, expect, it } from '@jest/globals'
import { HOUR } from '../../../lib/base/clock.js'
import type { NewEvent } from '../../../lib/store/port/store.js'
import { createIntake } from '../../../lib/work/receiving/intake.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'

describe('A226 long arrays of somebody who has the delivery secret', () => {
  it('are classified a few elements at a time, so that a short delivery is stored before them', async () => {
    const { accept, classified, stored } = setUp()
    const long = [accept(1_000), accept(1_000)]
    await new Promise((resolve) => setImmediate(resolve))
    await accept(1)
    expect(stored).toEqual([1])
    expect(classified()).toBeLessThan(100)
    await Promise.all(long)
    expect([classified(), stored]).toEqual([2_001, [1, 1, 1]])
  })

  it('wait in a bounded number, and are refused and counted when their senders have given up', async () => {
    const { accept, stored, jump, intake } = setUp()
    const many = Array.from({ length: 70 }, () => accept(17))
    for (const late of many.slice(64))
      await expect(late).rejects.toMatchObject({ code: 'delivery_turned_away' })
    await Promise.all(many.slice(0, 64))
    const next = [accept(17), accept(17)]
    await new Promise((resolve) => setImmediate(resolve))
    jump(2_500)
    await next[0]
    await expect(next[1]).rejects.toMatchObject({ code: 'delivery_turned_away' })
    expect([stored.length, intake.turnedAway()]).toEqual([65, 7])
    jump(HOUR + 1)
    expect(intake.turnedAway()).toBe(0)
  })
})

function setUp() {
  const { clock, jump } = jumpingClock()
  const stored: number[] = []
  let count = 0
  const intake = createIntake({
    classify() {
      count++
      return { recognised: false, isKnownEvent: false, issues: [] }
    },
    store: {
      async accept(events: readonly NewEvent[]) {
        stored.push(events.length)
        return []
      },
    },
    ...{ purchasableUids: [], codeNames: [], isAccess: () => undefined, clock },
  })
  const accept = (length: number) => intake.accept(Array.from({ length }, () => ({ value: 1, text: null })))
  return { accept, intake, stored, jump, classified: () => count }
}
