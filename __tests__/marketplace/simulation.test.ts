import '../support/simulation/quick-construction.js'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { simulate } from '../support/simulation/run.js'
import { createDatabase, type Database } from '../support/world/database.js'
import { PROMISES } from '../support/world/promises.js'

/**
 * The whole system with several instances, in worlds that depend only on a seed. The platform lags, lies and fails.
 * Deliveries are lost, doubled and late. Instances are killed, frozen and cut off. `npm run simulate` makes any number
 * of worlds, or repeats one.
 */
/** Runs as many worlds as the time allows, within these bounds. */
const LEAST = 8
const MOST = 200
const TIME_MS = 6_000
const FIRST = 1
/** A world in which nobody answers some questions, so that some checks are skipped. */
const SKIPS = 41
/** A world that lags behind several changes to and fro when its faults end. */
const LAGS = 38_257

jest.setTimeout(180_000)

let database: Database
beforeAll(async () => {
  database = await createDatabase()
})
afterAll(() => database.close())

describe('D19 a simulated world', () => {
  it('keeps every promise, with any seed', async () => {
    const endAt = Date.now() + TIME_MS
    // Every run uses other seeds; a failure prints its seed.
    const first = 1 + Math.floor(Math.random() * 1_000_000)
    for (let made = 0; made < MOST && (made < LEAST || Date.now() < endAt); made++) {
      const { command, broken } = await simulate(first + made, database)
      if (broken[0]) throw new Error(`${command}: ${PROMISES[broken[0].promised]}: ${broken[0].message}`)
    }
  })

  it('is the same whenever its seed is run', async () => {
    const { trace } = await simulate(FIRST, database)
    expect(trace.length).toBeGreaterThan(20)
    // Another world runs in between, and must leave nothing behind.
    await simulate(FIRST + 1, database)
    expect((await simulate(FIRST, database)).trace).toEqual(trace)
  })

  it('goes on while a lag hides the last change, also if the answers are equal by chance', async () => {
    const { broken } = await simulate(LAGS, database)
    expect(broken).toEqual([])
  })

  it('counts the checks of the first oracle apart, while only the second judges', async () => {
    const { tally } = await simulate(SKIPS, database)
    expect(tally.follow?.skipped['nobody answered']).toBeGreaterThan(0)
    const { tally: ofSecond } = await simulate(SKIPS, database, { isFirstAway: true })
    expect(ofSecond).toEqual({ documented: { made: 1, skipped: {} } })
  })
})
