import { describeConformance } from '../support/conformance/describe-conformance.js'

/** Every check on every store; the ordinary run has each check on SQLite and on PostgreSQL once. */
describeConformance({ all: true })
