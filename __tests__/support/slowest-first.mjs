import { createRequire } from 'node:module'
import { relative } from 'node:path'

const { default: Sequencer } = createRequire(import.meta.url)('@jest/test-sequencer')

/** The test files of more than ten seconds, slowest first, so that none of them begins last. */
const SLOWEST = [
  'faults/life/months.test.ts',
  'store/store-conformance.test.ts',
  'faults/handling/suspects.test.ts',
  'faults/life/alive.test.ts',
  'cli/import.test.ts',
  'console/page.test.ts',
  'docs/states.test.ts',
  'postgres/postgres-outages.test.ts',
  'faults/handling/queue-plans.test.ts',
  'faults/reading/ends.test.ts',
  'faults/instances/several-instances.test.ts',
  'faults/storage/schema.test.ts',
  'example-app/example-page.test.ts',
  'package/package.test.ts',
  'faults/answers/waiting.test.ts',
  'faults/handling/changes-now.test.ts',
  'example-app/examples.test.ts',
  'docs/snippets.test.ts',
  'faults/deliveries/crowd.test.ts',
  'faults/instances/instances.test.ts',
  'faults/reading/moves.test.ts',
  'faults/answers/buyers-in-outage.test.ts',
  'faults/answers/stale-answers.test.ts',
  'faults/storage/restored.test.ts',
  'faults/reading/meaning.test.ts',
  'package/api-docs.test.ts',
  'faults/reading/platform-tokens.test.ts',
  'faults/handling/handlers.test.ts',
  'faults/storage/storage.test.ts',
  'postgres/postgres-instances.test.ts',
  'cli/store.test.ts',
  'cli/cli.test.ts',
  'cli/secrets.test.ts',
  'faults/reading/requested-reads-first.test.ts',
  'faults/storage/killed.test.ts',
  'operations/import.test.ts',
  'faults/storage/batches.test.ts',
  'faults/storage/failed-syncs.test.ts',
  'package/types.test.ts',
  'cli/dev.test.ts',
  'example-app/demo.test.ts',
  'faults/handling/late-handlers.test.ts',
  'entitlement/fresh-answers.test.ts',
  'faults/deliveries/deliverers.test.ts',
  'faults/answers/superseded.test.ts',
  'faults/reading/clocks.test.ts',
  'faults/life/health-and-log.test.ts',
  'postgres/postgres-hangs.test.ts',
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
