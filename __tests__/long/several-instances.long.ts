/**
 * Runs several instances on one PostgreSQL for minutes while everything fails: `npm run test:long`.
 *
 * CHAOS_SECONDS (300 for each) and CHAOS_INSTANCES (2,3,4) set the length and the number. CHAOS_SEED repeats a
 * schedule.
 */
import { randomInt } from 'node:crypto'
import { describe, expect, it } from '@jest/globals'
import { runChaos } from '../support/chaos/run.js'

const { CHAOS_SECONDS = '300', CHAOS_INSTANCES = '2,3,4', CHAOS_SEED } = process.env
const forMs = Number(CHAOS_SECONDS) * 1_000

describe('several instances, for minutes', () => {
  it.each(CHAOS_INSTANCES.split(',').map(Number))(
    '%i of them keep every promise while everything fails at random',
    async (instances) => {
      const seed = Number(CHAOS_SEED ?? randomInt(2 ** 31))
      const { figures, wrong } = await runChaos({
        instances,
        forMs,
        stormMs: 20_000,
        seed,
        // With three instances, `purchased` must be confirmed all the time. With the others, only events request
        // reads.
        maxStaleMs: instances === 3 ? 20_000 : 3_600_000,
      })
      process.stdout.write(`${figures}\n`)
      // Printed at once, because the other runs take minutes more.
      process.stdout.write(wrong)
      expect(wrong).toBe('')
    },
    forMs + 300_000,
  )
})
