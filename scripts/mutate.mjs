/**
 * Changes the code in small ways, one at a time, and reports which changes no test notices.
 *
 *   npm run mutate                          the pure modules, each with the tests that cover it
 *   npm run mutate -- lib/entitlement/decide.ts
 *   npm run mutate -- lib/store/acceptance.ts store.test.ts,bodies.test.ts    any module with tests of your choice
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const CONCLUDING = ['failures', 'gone', 'read', 'records', 'refusals'].map(
  (each) => `conclude-${each}.test.ts`,
)
const LOOPING = ['lease-loop-looks.test.ts', 'lease-loop-end.test.ts']
/** Pure modules and their tests. */
const PURE = {
  'lib/base/backoff.ts': ['backoff.test.ts'],
  'lib/entitlement/decide.ts': ['decide.test.ts'],
  'lib/entitlement/purchase-state.ts': ['contract.test.ts'],
  'lib/testing/transitions.ts': ['contract.test.ts'],
  'lib/events/classify.ts': [
    'classify.test.ts',
    'classify-own-events.test.ts',
    'classify-unrecognised.test.ts',
    'event-definitions.test.ts',
    'contract.test.ts',
  ],
  'lib/events/define-event.ts': ['event-definitions.test.ts'],
  'lib/events/subject.ts': ['classify.test.ts', 'event-definitions.test.ts'],
  'lib/express/reply-denied.ts': ['accept-header.test.ts'],
  'lib/express/delivery-secret.ts': ['delivery-secret.test.ts', 'receiver-refusals.test.ts'],
  'lib/base/deadlines.ts': ['deadlines.test.ts'],
  'lib/base/health.ts': ['health.test.ts', 'problems-of-counts.test.ts'],
  'lib/base/ids.ts': ['ids.test.ts'],
  'lib/option-checks.ts': ['marketplace/options.test.ts'],
  'lib/options.ts': ['marketplace/options.test.ts'],
  'lib/platform/http.ts': ['error-replies.test.ts', 'retry-after.test.ts'],
  'lib/platform/limit.ts': ['limit.test.ts'],
  'lib/base/record.ts': ['records.test.ts'],
  'lib/base/waiting.ts': ['base/waiting.test.ts', 'slices.test.ts'],
  'lib/work/reading/facts.ts': [...CONCLUDING, 'read-rules.test.ts', 'refresh-subscription.test.ts'],
  'lib/work/reading/conclude-read.ts': [
    ...CONCLUDING,
    'end-evidence.test.ts',
    'refresh-subscription.test.ts',
  ],
  'lib/operations/health/problems-of-counts.ts': ['problems-of-counts.test.ts'],
  'lib/work/reading/outcomes.ts': ['read-outcomes.test.ts'],
  'lib/work/leases/classes.ts': ['leases/classes.test.ts'],
  'lib/work/reading/schedule.ts': ['conclude-failures.test.ts', 'read-rules.test.ts'],
  'lib/work/receiving/requested-reads.ts': ['requested-reads.test.ts'],
}
/** Modules that depend on a clock, a store or a disk, and have tests of their own. Run when named. */
const OTHERS = {
  'lib/base/batches.ts': ['base/batches.test.ts'],
  'lib/entitlement/decision-cache.ts': ['decision-cache.test.ts'],
  'lib/entitlement/load-decision.ts': ['load-decision.test.ts', 'wait-for-read.test.ts'],
  'lib/postgres/notifications.ts': ['notifications.test.ts'],
  'lib/sqlite/file/checkpoints.ts': ['checkpoints.test.ts'],
  'lib/sqlite/mutex.ts': ['mutex.test.ts'],
  'lib/sqlite/file/wal.ts': ['wal.test.ts', 'sqlite-writes.test.ts'],
  'lib/store/acceptance.ts': ['acceptance.test.ts'],
  'lib/work/handling/call-handler.ts': ['call-handler.test.ts'],
  'lib/work/leases/lease.ts': ['lease.test.ts'],
  'lib/work/leases/lease-loop.ts': LOOPING,
  'lib/work/reading/refresh-subscription.ts': ['refresh-subscription.test.ts'],
  'lib/work/leases/slots.ts': ['slots.test.ts'],
}
/** The share of mutants that the tests of a pure module must detect. */
const AIM = 95

const root = fileURLToPath(new URL('..', import.meta.url))
const [module, tests] = process.argv.slice(2)
const chosen = module ? { [module]: tests?.split(',') ?? PURE[module] ?? OTHERS[module] } : PURE
if (module && !chosen[module]) {
  console.error(`No tests are listed for ${module}: name them, as in the comment of ${import.meta.filename}`)
  process.exit(2)
}

const rows = Object.entries(chosen).map(([file, testFiles]) => mutate(file, testFiles))
console.log('\n| Module | Mutants | Noticed | Share |\n|---|---|---|---|')
for (const { file, mutants, noticed, share } of rows) {
  console.log(`| ${file} | ${mutants} | ${noticed} | ${share.toFixed(1)} % |`)
}
const below = rows.filter(({ file, share }) => file in PURE && share < AIM)
for (const { file } of below) console.log(`Below the aim of ${AIM} %: ${file}`)
process.exit(below.length > 0 ? 1 : 0)

function mutate(file, testFiles) {
  const folder = join(root, 'reports', 'mutation', file.replaceAll('/', '-'))
  mkdirSync(folder, { recursive: true })
  const report = join(folder, 'mutation.json')
  const settings = join(folder, 'stryker.json')
  writeFileSync(
    settings,
    JSON.stringify({
      testRunner: 'jest',
      jest: { configFile: 'jest.mutate.config.mjs', enableFindRelatedTests: false },
      plugins: ['@stryker-mutator/jest-runner'],
      mutate: [file],
      coverageAnalysis: 'perTest',
      // Stryker rewrites a tsconfig with TypeScript's API, which TypeScript 7 does not have. These tests need no
      // tsconfig.
      tsconfigFile: 'none',
      reporters: ['clear-text', 'json'],
      jsonReporter: { fileName: report },
      clearTextReporter: { allowColor: false, logTests: false },
      ignorePatterns: ['dist', 'bench', 'example-app', 'reports'],
      tempDirName: join('reports', 'sandbox'),
      concurrency: 2,
      timeoutMS: 5_000,
    }),
  )
  const run = spawnSync('npx', ['stryker', 'run', settings], {
    cwd: root,
    stdio: 'inherit',
    // Not UTC, so that no time is correct by chance.
    env: { ...process.env, MUTATE_TESTS: testFiles.join(','), TZ: 'Asia/Kathmandu' },
  })
  if (run.status !== 0) process.exit(run.status ?? 1)
  const { files } = JSON.parse(readFileSync(report, 'utf8'))
  const found = Object.values(files).flatMap(({ mutants }) => mutants)
  const counted = found.filter(({ status }) => !['Ignored', 'CompileError', 'RuntimeError'].includes(status))
  const noticed = counted.filter(({ status }) => status === 'Killed' || status === 'Timeout')
  return {
    file,
    mutants: counted.length,
    noticed: noticed.length,
    share: counted.length === 0 ? 100 : (100 * noticed.length) / counted.length,
  }
}
