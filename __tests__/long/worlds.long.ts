import '../support/months/disk.js'
import '../support/simulation/quick-construction.js'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { MINUTE } from '../../lib/base/clock.js'
import { useEngine } from '../support/engines/engines.js'
import type { VirtualClock } from '../support/machine/virtual-clock.js'
import { liveCalmly } from '../support/months/calm.js'
import { FAULT_NAMES, faultsOf } from '../support/months/faults.js'
import { SABOTAGES_OF_MONTHS } from '../support/months/sabotages.js'
import { liveThrough, type WorldResult } from '../support/months/world.js'
import { LIFE_NAMES, live } from '../support/second-oracle/lives/lives.js'
import { simulate } from '../support/simulation/run.js'
import { sabotagesOfSeconds } from '../support/simulation/sabotages.js'
import { createDatabase, type Database } from '../support/world/database.js'
import { DOCUMENTED_SABOTAGES, detect } from '../support/world/detection.js'
import { createSharedPostgres } from '../support/world/postgres-database.js'
import { IN_MONTHS, IN_SECONDS, type Promised } from '../support/world/promises.js'
import type { DocumentedSabotage } from '../support/world/sabotage.js'

/** Worlds that take longer than the ordinary run has, and broken packages, each of which the worlds must detect. */
jest.setTimeout(300_000)

describe('a world of seconds', () => {
  let database: Database
  const sabotages = sabotagesOfSeconds({ change: (statement) => database.change(statement) })

  beforeAll(async () => {
    database = await createDatabase()
  })
  afterAll(() => database.close())

  it.each(sabotages)('detects a sabotage: $what: $promised', async ({ promised, tilt = {}, ...sabotage }) => {
    const kept = new Set<string>()
    for (let seed = 1; seed <= 200; seed++) {
      const { broken } = await simulate(seed, database, { sabotage, tilt, patienceMs: 30 * MINUTE })
      if (broken.some((each) => each.promised === promised)) return
      for (const each of broken) kept.add(each.promised)
    }
    throw new Error(`not detected in 200 worlds; detected were: ${[...kept].join(', ')}`)
  })

  it('has a sabotage for each of its promises', () => expectEach(IN_SECONDS, sabotages))
})

/** Only the second oracle judges, worlds and its short lives. */
describe('the second oracle alone', () => {
  let database: Database
  const sabotages = sabotagesOfSeconds({ change: (statement) => database.change(statement) })

  beforeAll(async () => {
    database = await createDatabase()
  })
  afterAll(() => database.close())

  it.each(sabotages)(
    'detects a sabotage in seconds: $what',
    async ({ promised: _, tilt = {}, ...sabotage }) => {
      for (let seed = 1; seed <= 100; seed++) {
        const given = { sabotage, tilt, patienceMs: 30 * MINUTE, isFirstAway: true }
        const { broken } = await simulate(seed, database, given)
        if (broken.length > 0) return
      }
      for (const name of LIFE_NAMES) if ((await live(name, database, sabotage)).length > 0) return
      throw new Error('not detected in 100 worlds and the short lives')
    },
  )

  it.each(SABOTAGES_OF_MONTHS)(
    'detects a sabotage in months: $what',
    async ({ promised: _, fault, instances, ...sabotage }) => {
      for (let seed = 1; seed <= 3; seed++) {
        const { broken } =
          fault === 'none at all'
            ? await liveCalmly(seed, { days: 20, habit: 'with handlers', instances, sabotage })
            : await liveThrough(seed, [fault], { sabotage })
        if (broken.some(({ promised }) => promised === 'documented')) return
      }
      throw new Error('not detected in 3 worlds')
    },
  )
})

/** Sabotages of sentences of the documents that the second oracle does not notice, and why. */
const UNNOTICED: Record<string, string> = {
  'a subscription that was never read and is given up after three tries':
    'nothing can be seen from outside: far more than twelve tries are made in the 72 h that it takes too',
}

/** Sabotages of sentences of the documents. The worlds that meet them have fixed seeds, and the healthy package passes them. */
describe('the documents', () => {
  it(
    'are kept in each life and world that meets a sabotage',
    async () => {
      const { noticed, failed } = await detect({ what: 'nothing', breaks: 'nothing', fault: 'platform' })
      expect({ noticed, failed }).toEqual({ noticed: {}, failed: [] })
    },
    15 * MINUTE,
  )

  it.each(DOCUMENTED_SABOTAGES.filter(({ what }) => !UNNOTICED[what]))(
    'are broken by a sabotage, which the second oracle notices: $what',
    async (sabotage) => expect((await detect(sabotage)).noticed.second).toEqual(expect.any(String)),
    15 * MINUTE,
  )

  it.each(Object.entries(UNNOTICED))('seem to be kept beside %s, because %s', async (what) => {
    const sabotage = DOCUMENTED_SABOTAGES.find((each) => each.what === what)
    expect((await detect(sabotage as DocumentedSabotage)).noticed.second).toBeUndefined()
  })
})

describe('a world of months', () => {
  it.each(SABOTAGES_OF_MONTHS)(
    'detects a sabotage: $what: $promised',
    async ({ promised, fault, instances, ...sabotage }) => {
      const found = new Set<string>()
      for (let seed = 1; seed <= 3 && !found.has(promised); seed++) {
        const { broken } =
          fault === 'none at all'
            ? await liveCalmly(seed, { days: 20, habit: 'with handlers', instances, sabotage })
            : await liveThrough(seed, [fault], { sabotage })
        for (const each of broken) found.add(each.promised)
      }
      expect([...found]).toContain(promised)
    },
  )

  it('has a sabotage for each of its promises', () => expectEach(IN_MONTHS, SABOTAGES_OF_MONTHS))
})

describe('months that are longer than the retention', () => {
  it.each(['only asks', 'with handlers'] as const)(
    'keep every invariant for an app that lives %s',
    async (habit) => {
      expectWhole(await liveCalmly(1, { days: 96, habit, instances: 1 }))
    },
  )
})

describe('months of an app', () => {
  const engine = useEngine('PostgreSQL')

  it.each(FAULT_NAMES)('keep every invariant with days of the fault %s', async (name) => {
    expectWhole(await liveThrough(1, [name]))
  })

  it('keep every invariant with several faults', async () => {
    expectWhole(await liveThrough(1, faultsOf(1)))
  })

  it('keep every invariant with several instances', async () => {
    expectWhole(await liveCalmly(1, { days: 30, habit: 'with handlers', instances: 2 }))
  })

  it('keep every invariant on PostgreSQL', async () => {
    const address = await engine.freshAddress()
    const createDatabase = (time: VirtualClock) => createSharedPostgres(time, address)
    expectWhole(await liveCalmly(1, { days: 3, habit: 'with handlers', instances: 2, createDatabase }))
  })
})

function expectWhole({ command, broken }: WorldResult) {
  expect({ command, broken }).toEqual({ command, broken: [] })
}

function expectEach(promises: readonly Promised[], sabotages: readonly { promised: Promised }[]) {
  expect(new Set(sabotages.map(({ promised }) => promised))).toEqual(new Set(promises))
}
