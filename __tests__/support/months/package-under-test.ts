import type * as Package from '../../../lib/index.js'

/**
 * The package that lives through the months: this tree's, or another version's, so that an invariant can be seen to fail
 * there: `MONTHS_LIB=/somewhere/else/lib/index npx jest __tests__/faults/months.test.ts`.
 */
export const { createMarketplace } = require(
  process.env.MONTHS_LIB ?? '../../../lib/index.js',
) as typeof Package
