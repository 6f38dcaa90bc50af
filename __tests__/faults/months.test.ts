import '../support/months/disk.js'
import { describe, expect, it, jest } from '@jest/globals'
import { FAULT_NAMES, FAULTS, type FaultName } from '../support/months/faults.js'
import { INVARIANTS } from '../support/months/invariants.js'
import { faultsOf } from '../support/months/many.js'
import { liveThrough, repeat, type WorldResult } from '../support/months/world.js'

/**
 * Weeks and months of one app, with operators who make mistakes and correct them. `simulation.test.ts` mixes the faults
 * of seconds; these last for days: a wrong address over a weekend, a handler that fails for ever, a clock that leaps,
 * an app that was down. A world depends on its seed alone: a platform of its own behind `platform.fetch`, buyers who
 * pay, miss and leave, an operator who deploys, closes and kills, a real SQLite file, and a clock that jumps from timer to
 * timer, and further when nothing is under way. It uses the package by its public interface only, so the same worlds also
 * run on other versions (`MONTHS_LIB=/path/to/lib/index`): each invariant was seen to fail on 0.1.0.
 *
 * | Invariant | Its promise, checked again and again |
 * |---|---|
 * | in | `health()` is ok: a business that buys or pays again has access within 10 s, one that stops paying has none, and until a purchase could be read the answer is "not known", never "no" |
 * | honest | something is wrong and events make the app meet it: a minute later `health()` is not ok, with an explanation |
 * | healed | 1.2 reconciles and an hour after the correction: payers have access, others not, `health()` ok but for dead entries |
 * | ended | an entry is `done` after its handler returned, `dead` after `onDead`, and leaves the journal after one of them |
 * | apart | two handlers of one subscription never run at once |
 * | budget | settled for 30 h: at most a read and a token in 0.8 reconciles; half-hourly for a business that is refused |
 * | id | a change keeps its id, also over kills and power cuts |
 *
 * `MONTHS_SEED=7 npx jest __tests__/faults/months.test.ts` repeats a seed; `npm run simulate -- --months 50` makes many worlds.
 */
const { MONTHS_SEED } = process.env
const SEED = Number(MONTHS_SEED ?? 1 + Math.floor(Math.random() * 1_000_000))

jest.setTimeout(120_000)

describe('the days of an app', () => {
  it.each(FAULT_NAMES.map((name) => [FAULTS[name].id, FAULTS[name].what, name] as const))(
    '%s keep every invariant with %s',
    async (_id, _what, name) => expectWhole(await liveThrough(SEED, [name])),
  )

  it('keep every invariant during a month of several faults', async () => {
    expectWhole(await liveThrough(SEED, faultsOf(SEED)))
  })

  it('are the same whenever their seed is repeated', async () => {
    const live = () => liveThrough(3, ['kills'])
    expect(await live()).toEqual(await live())
  })
})

function expectWhole({ seed, faults, broken }: WorldResult) {
  const sentences = broken.map(({ invariant, message }) => `${INVARIANTS[invariant]}: ${message}`)
  if (sentences.length > 0) throw new Error([repeat(seed, faults as FaultName[]), ...sentences].join('\n  '))
}
