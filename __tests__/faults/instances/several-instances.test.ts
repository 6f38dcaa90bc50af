import { randomInt } from 'node:crypto'
import { describe, it } from '@jest/globals'
import { runChaos } from '../../support/chaos/run.js'

// __tests__/long runs the same for minutes, with up to four instances.
describe('C5, C14, D6, D19, G1, G2, G3, H5, H6 several instances on one PostgreSQL', () => {
  it('keep every promise while processes, database, network and platform fail at random', async () => {
    const seed = Number(process.env.CHAOS_SEED ?? randomInt(2 ** 31))
    const { figures, wrong } = await runChaos({
      instances: 2,
      forMs: 8_000,
      stormMs: 8_000,
      seed,
      maxStaleMs: 3_600_000,
    })
    if (wrong) throw new Error(`${wrong}\n${figures}`)
  }, 300_000)
})
