import { spawnSync } from 'node:child_process'
import { existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { ENGINES, until } from './harness/databases.mjs'
import { fillStore } from './harness/fill-store.mjs'
import { PROJECT } from './harness/machine.mjs'
import { inRounds, ratios, spreadOf } from './harness/statistics.mjs'
import { BODY, install, SECRET } from './servers/deliveries.mjs'

const PATH = `/x/${SECRET}`
const EVENTS_A_BUSINESS = 5
const EVENTS_A_POST = 100

/**
 * Compares the working tree with another commit: both builds run in turns in one run, so that other work of the machine
 * affects both alike.
 */
export async function beside(bench, { commit, million, print }) {
  const builds = [
    { build: 'here', path: join(PROJECT, 'dist', 'lib') },
    { build: commit, path: buildOf(commit, join(bench.folder, 'other')) },
  ]
  const sizes = million ? [1_000, 1_000_000] : [1_000]
  const cases = Object.entries(ENGINES).flatMap(([engine, inWords]) => [
    ...sizes.map((count) => ({
      engine,
      count,
      name: `${inWords}, ${count.toLocaleString('en')} subscriptions`,
    })),
    { engine, name: `${inWords}, draining` },
  ])
  const rounds = bench.quick ? 3 : 7
  for (const [number, one] of cases.entries()) {
    const items = builds.map(({ build, path }, side) => {
      return { ...one, path, id: `${number}_${side}`, name: `${one.name}, ${build}` }
    })
    for (const item of one.count ? items : []) {
      print(`filling ${item.name}`)
      item.store = await filledStore(bench, item)
    }
    const measure = (item, round) => (one.count ? receive(bench, item) : drain(bench, item, round))
    const rows = await inRounds({ items, rounds, note: print, measure })
    const [here, other] = rows.map(({ values }) => values)
    console.log(`\n${one.name}: median (least–most) of ${rounds} rounds`)
    console.table(
      Object.fromEntries(
        Object.keys(here).map((column) => [
          column,
          {
            here: inWords(here[column], 1),
            [commit]: inWords(other[column], 1),
            ratio: inWords(ratios(here[column], other[column]), 2),
          },
        ]),
      ),
    )
  }
}

/** Builds a commit in a worktree at `folder`, with the packages of this one. Returns the folder of its `lib`. */
function buildOf(commit, folder) {
  const run = (program, ...args) =>
    spawnSync(program, args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  const git = (...args) => spawnSync('git', args, { cwd: PROJECT, stdio: ['ignore', 'ignore', 'inherit'] })
  git('worktree', 'prune')
  if (git('worktree', 'add', '--detach', folder, commit).status !== 0)
    throw new Error(`cannot check out ${commit}`)
  symlinkSync(join(PROJECT, 'node_modules'), join(folder, 'node_modules'))
  run('node', 'scripts/build-console-page.mjs')
  // Commits before 1.0.0 were built twice.
  const [config, output] = existsSync(join(folder, 'tsconfig.build.json'))
    ? ['tsconfig.build.json', 'lib']
    : ['tsconfig.esm.json', 'esm']
  run('npx', 'tsc', '-p', config)
  const built = join(folder, 'dist', output)
  if (!existsSync(join(built, 'index.js'))) throw new Error(`cannot build ${commit}`)
  return built
}

/** Removes the worktree of the other commit. */
export function removeOther(folder) {
  spawnSync('git', ['worktree', 'remove', '--force', join(folder, 'other')], {
    cwd: PROJECT,
    stdio: 'ignore',
  })
}

/** An app of one of the builds. */
const appOf = ({ platformUrl }, { path, store, options }) => [
  'beside',
  { platformUrl, build: path, store, options },
]

async function filledStore(bench, { engine, count, id, path }) {
  const store = await bench.newStore(engine, `beside_${id}`)
  await fillStore(bench, { store, count, app: appOf(bench, { path, store }) })
  return store
}

async function receive(bench, { engine, count, path, store }) {
  const app = await bench.start(...appOf(bench, { path, store, options: { worker: false } }))
  try {
    const target = { port: app.ready.port, path: PATH, body: BODY, spread: count }
    await app.calm()
    await bench.load.post({ ...target, count: bench.quick ? 5_000 : 20_000, durationMs: 4_000 })
    const used = await cpuSince(bench, engine, app)
    const { requests, requestsPerSecond } = await bench.load.post({
      ...target,
      durationMs: bench.quick ? 1_500 : 4_000,
    })
    return { ...(await used(requests)), 'deliveries/s': requestsPerSecond }
  } finally {
    await app.stop()
  }
}

/** The handlers of a backlog wait, then all return at once. */
async function drain(bench, { engine, id, path }, round) {
  const count = bench.quick ? 20_000 : 100_000
  const store = await bench.newStore(engine, `drain_${id}_${round}`)
  const app = await bench.start(...appOf(bench, { path, store }))
  try {
    const body = JSON.stringify(
      Array.from({ length: EVENTS_A_POST }, (_, i) =>
        install('uninstalled', `business-0000000-${i % (EVENTS_A_POST / EVENTS_A_BUSINESS)}`),
      ),
    )
    const posts = count / EVENTS_A_POST
    const target = { port: app.ready.port, path: PATH, body, spread: posts }
    await bench.load.post({ ...target, count: posts, connections: 4 })
    const used = await cpuSince(bench, engine, app)
    await app.ask('open')
    await until('the backlog is handled', async () => (await app.ask('drained')).handled >= count, 300_000)
    const { handled, seconds } = await app.ask('drained')
    return { ...(await used(handled)), 'events/s': handled / seconds }
  } finally {
    await app.stop()
  }
}

/** Begins to count CPU time. The result ends it, and returns µs for each of `count`. */
async function cpuSince({ postgres }, engine, app) {
  const server = engine === 'postgres' ? await postgres() : undefined
  const [ownBefore, databaseBefore] = [await app.ask('cpu'), server?.cpu()]
  return async (count) => {
    const own = ((await app.ask('cpu')) - ownBefore) / count
    if (!server) return { 'CPU µs, process': own }
    const database = (server.cpu() - databaseBefore) / count
    return { 'CPU µs, process': own, 'CPU µs, PostgreSQL': database, 'CPU µs, both': own + database }
  }
}

function inWords(values, digits) {
  const { median, min, max } = spreadOf(values)
  return `${median.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`
}
