import { createRequire } from 'node:module'
import { relative } from 'node:path'

const { default: Sequencer } = createRequire(import.meta.url)('@jest/test-sequencer')

/** The test files of more than nine seconds, slowest first, so that none of them begins last. */
const SLOWEST = [
  'faults/life/months.test.ts',
  'store/store-conformance.test.ts',
  'faults/storage/copied.test.ts',
  'sqlite/current-node.test.ts',
  'faults/reading/ends.test.ts',
  'faults/handling/suspects.test.ts',
  'faults/answers/buyers-in-outage.test.ts',
  'postgres/postgres-hangs.test.ts',
  'faults/life/alive.test.ts',
  'postgres/postgres-outages.test.ts',
  'cli/store.test.ts',
  'cli/effects.test.ts',
  'faults/instances/instances.test.ts',
  'faults/storage/schema.test.ts',
  'docs/snippets.test.ts',
  'faults/deliveries/crowd.test.ts',
  'faults/answers/waiting.test.ts',
  'example-app/examples.test.ts',
  'faults/storage/restored.test.ts',
  'faults/storage/power-cut.test.ts',
  'faults/handling/changes-now.test.ts',
  'example-app/example-page.test.ts',
  'example-app/example-page.picture.test.ts',
  'faults/deliveries/deliverers.test.ts',
  'faults/handling/queue-plans.test.ts',
  'faults/reading/meaning.test.ts',
  'faults/reading/platform-tokens.test.ts',
  'faults/storage/batches.test.ts',
  'scripts/mutate.test.ts',
  'cli/import.test.ts',
  'postgres/postgres-instances.test.ts',
  'example-app/example-page.looks.test.ts',
  'faults/storage/failed-syncs.test.ts',
  'package/types.test.ts',
  'console/page.test.ts',
  'faults/instances/several-instances.test.ts',
  'faults/storage/storage.test.ts',
  'example-app/example-page.stories.test.ts',
  'package/package.test.ts',
  'faults/answers/stale-answers.test.ts',
  'faults/handling/late-handlers.test.ts',
  'entitlement/fresh-answers.test.ts',
  'docs/states.test.ts',
  'faults/life/health-and-log.test.ts',
  'faults/life/silence.test.ts',
  'faults/handling/handlers.test.ts',
  'faults/life/life-cycle.test.ts',
  'faults/reading/moves.test.ts',
  'cli/doctor.test.ts',
  'faults/reading/platform.test.ts',
  'faults/handling/old-rows.test.ts',
  'faults/deliveries/hostile.test.ts',
  'faults/storage/acknowledged-is-on-disk.test.ts',
  'faults/answers/superseded.test.ts',
  'marketplace/failing-store.test.ts',
  'marketplace/simulation.test.ts',
  'entitlement/entitlement.test.ts',
  'faults/reading/clocks.test.ts',
  'package/api-docs.test.ts',
  'faults/reading/requested-reads-first.test.ts',
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
