import { describeConformance } from '../support/conformance/describe-conformance.js'

/** `npm run test:long` runs every check on every store. */
describeConformance({ all: false })
