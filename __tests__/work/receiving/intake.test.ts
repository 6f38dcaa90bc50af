import { describe, expect, it } from '@jest/globals'
import { HOUR } from '../../../lib/base/clock.js'
import type { NewEvent } from '../../../lib/store/port/store.js'
import { createIntake } from '../../../lib/work/receiving/intake.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'

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
    const { accept, stored, time, intake } = setUp()
    const many = Array.from({ length: 70 }, () => accept(17))
    for (const late of many.slice(65))
      await expect(late).rejects.toMatchObject({ code: 'delivery_turned_away' })
    await Promise.all(many.slice(0, 65))
    const first = accept(1_000)
    const late = expect(accept(17)).rejects.toMatchObject({ code: 'delivery_turned_away' })
    await time.advance(2_500)
    await Promise.all([first, late])
    expect([stored.length, intake.turnedAway()]).toEqual([66, 6])
    await time.advance(HOUR + 1)
    expect(intake.turnedAway()).toBe(0)
  })

  it('wait behind shorter ones, for which the longest of them are refused', async () => {
    const { accept } = setUp()
    const stored: number[] = []
    const refused: number[] = []
    const lengths = [1_000, ...Array.from({ length: 62 }, () => 350), 999, 350, 20, 400]
    const outcomes = lengths.map((length) =>
      accept(length).then(
        () => stored.push(length),
        () => refused.push(length),
      ),
    )
    await Promise.all(outcomes)
    expect(refused).toEqual([999, 400])
    expect(stored).toEqual([1_000, 20, ...Array.from({ length: 63 }, () => 350)])
  })
})

function setUp() {
  const time = createVirtualClock()
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
    ...{ purchasableUids: [], codeNames: [], isAccess: () => undefined, clock: time.forProcess() },
  })
  const accept = (length: number) => intake.accept(Array.from({ length }, () => ({ value: 1, text: null })))
  return { accept, intake, stored, time, classified: () => count }
}
