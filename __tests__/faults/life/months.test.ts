import '../../support/months/disk.js'
import { afterAll, describe, expect, it, jest } from '@jest/globals'
import { HOUR } from '../../../lib/base/clock.js'
import { useEngine } from '../../support/engines/engines.js'
import type { VirtualClock } from '../../support/machine/virtual-clock.js'
import { liveCalmly } from '../../support/months/calm.js'
import { FAULT_NAMES, FAULTS } from '../../support/months/faults.js'
import { liveThrough, type WorldResult } from '../../support/months/world.js'
import { createSharedPostgres } from '../../support/world/postgres-database.js'
import { addTally, PROMISES, type Tally, tallyLines } from '../../support/world/promises.js'

/**
 * Weeks and months of one app, with operators who make mistakes and correct them. `simulation.test.ts` mixes faults that
 * last for seconds. These faults last for days: a wrong address over a weekend, a handler that fails for ever, a clock
 * that leaps, an app that is down.
 *
 * A world depends only on its seed. It has its own platform behind `platform.fetch`, buyers who pay, miss and leave, an
 * operator who deploys, closes and kills, a real SQLite file, and a clock that jumps from timer to timer, or further when
 * no work is under way. The app uses only the public interface of the package. Every invariant was seen to fail on 0.1.0.
 *
 * | Invariant | What is checked again and again |
 * |---|---|
 * | in | While `health()` is ok, a business that buys or pays again has access within 10 s, and one that stops paying has none. Until a purchase could be read, the answer is "not known", never "no". |
 * | honest | A minute after events have met a fault, `health()` is not ok and explains the fault. |
 * | healed | 1.2 reconciles and an hour after the correction, after dead entries were replayed, payers have access, others do not, and `health()` is ok. A purchase that no delivery named has access a minute after its `track`. |
 * | ended | An entry is `done` after its handler returned, or `dead` after `onHandlerError` reported its end. It leaves the journal only after one of the two. |
 * | apart | Two handlers of one subscription never run at once. |
 * | budget | A subscription that has been settled for 30 h costs at most a read and a token in 0.8 reconciles, and a refused business at most one of each in half an hour. |
 * | id | A change has the same id at every try, even after kills and power cuts. |
 * | calm | Without a fault, `health()` of every instance is ok on every day, and no entry is dead. |
 * | right | Without a fault, every answer is right a minute after a delivered event that a read shows, and otherwise within the time that its evidence allows (`customers.ts`). A payer is never out, and nobody is `stale`. |
 * | open | A map that the app's change handler writes, as the README shows, becomes the truth with the answers. |
 * | harmless | Somebody who has the delivery secret costs bounded rows. No delivery of a customer who was read before is refused, none of its effects comes more than a second later, and no purchase that was acknowledged is lost. A sender is at work in every tenth world. |
 * | checked | Each invariant is checked. A check that a fault makes impossible is skipped and counted; `world/promises.ts` bounds how many, by reason. |
 *
 * Here the worlds are short. `long/worlds.long.ts` has those of full length, and the month of several faults. The counts
 * are printed at the end, here and by `npm run simulate`.
 *
 * `MONTHS_SEED=7 npx jest __tests__/faults/life/months.test.ts` repeats a seed. `npm run simulate -- --months 50` makes many
 * worlds.
 */
const { MONTHS_SEED } = process.env
/** `npm run simulate -- --months` draws others. */
const SEED = Number(MONTHS_SEED ?? 1)
/** Of a world with a sender. */
const SENDER_SEED = 10
/** With `npm run test:long` the same faults last for days. */
const longestMs = 8 * HOUR

jest.setTimeout(300_000)

const checks: Tally = {}
afterAll(() => void process.stderr.write(`the checks of months\n${tallyLines(checks).join('\n')}\n`))

describe('the ordinary days of an app', () => {
  it('M60 keep every invariant for an app with handlers', async () => {
    expectWhole(await liveCalmly(SEED, { days: 8, habit: 'with handlers', instances: 2 }))
  })

  it('M61 keep every invariant for an app that only asks', async () => {
    expectWhole(await liveCalmly(SEED, { days: 15, habit: 'only asks', instances: 1 }))
  })
})

describe('an ordinary day of an app', () => {
  const engine = useEngine('PostgreSQL')

  it('M60 keeps every invariant on PostgreSQL', async () => {
    const address = await engine.freshAddress()
    const createDatabase = (time: VirtualClock) => createSharedPostgres(time, address)
    expectWhole(await liveCalmly(SEED, { days: 1, habit: 'with handlers', instances: 2, createDatabase }))
  })
})

describe('the days of an app', () => {
  it.each(FAULT_NAMES.map((name) => [FAULTS[name].id, FAULTS[name].what, name] as const))(
    '%s keep every invariant with %s',
    async (_id, _what, name) => expectWhole(await liveThrough(SEED, [name], { longestMs })),
  )

  it('M70 keep every invariant without a fault, beside floods of a sender', async () => {
    expectWhole(await liveCalmly(SENDER_SEED, { days: 8, habit: 'with handlers', instances: 2 }))
  })

  it('are the same whenever their seed is repeated', async () => {
    const live = () => liveThrough(3, ['kills'])
    expect(await live()).toEqual(await live())
    const liveOrdinarily = () => liveCalmly(3, { days: 3, instances: 2 })
    expect(await liveOrdinarily()).toEqual(await liveOrdinarily())
  })
})

function expectWhole({ command, broken, tally }: WorldResult) {
  addTally(checks, tally)
  const sentences = broken.map(({ promised, message }) => `${PROMISES[promised]}: ${message}`)
  if (sentences.length > 0) throw new Error([command, ...sentences].join('\n  '))
}
