import type { Part } from '../part.js'
import { MUTANTS } from './mutants.js'
import { SABOTAGES, TESTS } from './tests.js'
import { BODIES, KILLS, POWER_CUTS } from './trials.js'
import { MONTHS, SECONDS } from './worlds.js'

/** All kinds of evidence, in the order of the page. */
export const PARTS: readonly Part[] = [KILLS, POWER_CUTS, BODIES, SECONDS, MONTHS, TESTS, SABOTAGES, MUTANTS]
