import type * as Package from '../../../lib/index.js'

/**
 * The package that the months test: that of this tree, or another version's, to see an invariant fail there:
 * `MONTHS_LIB=/somewhere/else/lib/index npx jest __tests__/faults/months.test.ts`.
 */
export const { createMarketplace } = require(
  process.env.MONTHS_LIB ?? '../../../lib/index.js',
) as typeof Package
