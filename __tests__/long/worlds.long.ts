import '../support/months/disk.js'
import '../support/simulation/quick-construction.js'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { useEngine } from '../support/engines/engines.js'
import type { VirtualClock } from '../support/machine/virtual-clock.js'
import { liveCalmly } from '../support/months/calm.js'
import { FAULT_NAMES } from '../support/months/faults.js'
import type { Invariant } from '../support/months/invariants.js'
import { faultsOf } from '../support/months/many.js'
import { SABOTAGES } from '../support/months/sabotage.js'
import { createSharedPostgres } from '../support/months/shared-postgres.js'
import { liveThrough, type WorldResult } from '../support/months/world.js'
import { breaksOf } from '../support/simulation/breaks.js'
import { createDatabase, type Database } from '../support/simulation/database.js'
import { simulate } from '../support/simulation/run.js'

/** Worlds that take longer than the ordinary run has, and broken packages, each of which the worlds must detect. */
jest.setTimeout(300_000)

describe('a simulated world detects a sabotage:', () => {
  let database: Database
  const change: Database['change'] = (statement) => database.change(statement)

  beforeAll(async () => {
    database = await createDatabase()
  })
  afterAll(() => database.close())

  it.each(breaksOf({ change }))('%s: %s', async (_what, promised, broken, tilt = {}) => {
    const kept = new Set<string>()
    for (let seed = 1; seed <= 200; seed++) {
      const { failures } = await simulate(seed, database, { broken, tilt, patienceMs: 30 * 60_000 })
      if (failures.some((each) => each.promised === promised)) return
      for (const each of failures) kept.add(each.promised)
    }
    throw new Error(`not detected in 200 worlds; detected were: ${[...kept].join(', ')}`)
  })
})

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
