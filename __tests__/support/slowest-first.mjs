import { createRequire } from 'node:module'
import { relative } from 'node:path'

const { default: Sequencer } = createRequire(import.meta.url)('@jest/test-sequencer')

/** The slowest test files, slowest first, so that none of them begins last. */
const SLOWEST = [
  'faults/life/months.test.ts',
  'faults/handling/suspects.test.ts',
  'console/page.test.ts',
  'cli/store.test.ts',
  'store/store-conformance.test.ts',
  'entitlement/entitlement.test.ts',
  'example-app/example-page.looks.test.ts',
  'postgres/postgres-outages.test.ts',
  'marketplace/simulation.test.ts',
  'example-app/examples.test.ts',
  'cli/import.test.ts',
  'example-app/example-page.test.ts',
  'faults/handling/queue-plans.test.ts',
  'cli/cli.test.ts',
  'cli/dev.test.ts',
  'faults/life/life-cycle.test.ts',
  'faults/life/alive.test.ts',
  'package/package.test.ts',
  'cli/secrets.test.ts',
  'postgres/postgres-store.test.ts',
  'faults/storage/storage.test.ts',
]

/** Orders test files by their known durations. Jest itself orders them by size on a machine without earlier runs. */
export default class SlowestFirst extends Sequencer {
  sort(tests) {
    const place = ({ path, context }) => {
      const at = SLOWEST.indexOf(relative('__tests__', relative(context.config.rootDir, path)))
      return at < 0 ? SLOWEST.length : at
    }
    return super.sort(tests).sort((a, b) => place(a) - place(b))
  }
}
