import '../support/months/disk.js'
import { describe, expect, it, jest } from '@jest/globals'
import { liveCalmly } from '../support/months/calm.js'
import type { Invariant } from '../support/months/invariants.js'
import { SABOTAGES } from '../support/months/sabotage.js'
import { liveThrough } from '../support/months/world.js'

jest.setTimeout(120_000)

/** Each invariant of `months.test.ts` is broken on purpose, and the worlds must detect it. */
describe('an invariant of months', () => {
  const controls = Object.entries(SABOTAGES).flatMap(([invariant, broken]) =>
    broken.map((each) => [invariant, each.what, each] as const),
  )
  it.each(controls)(
    'fails when it is broken on purpose: %s, because %s',
    async (invariant, what, { fault, instances, sabotage }) => {
      const { broken } =
        fault === 'none at all'
          ? await liveCalmly(1, { days: 20, habit: 'with handlers', instances, sabotage })
          : await liveThrough(1, [fault], { sabotage })
      const found = broken.map((each) => each.invariant)
      expect({ what, found }).toEqual({ what, found: expect.arrayContaining([invariant as Invariant]) })
    },
  )
})
