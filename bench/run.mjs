import { spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { BENCH, coresOf, describeCpu, folderOnDisk, inWords, PROJECT, runtimes } from './harness/machine.mjs'
import { openMeasuredParts } from './harness/measured-parts.mjs'

/**
 * `npm run bench [-- --quick] [-- --only receiving,durable] [-- --out folder]`: installs the missing packages to
 * compare with, builds the package, measures, and writes a table and JSON. The exit code is 0 unless an
 * error occurred; a missed aim is not an error. A whole run leaves out the parts that were measured since the last one, by
 * a run that was interrupted or with `--only`, as long as the code is the same. `--beside <commit>` compares the working tree
 * with that commit instead.
 *
 * The minutes apply to a machine with two cores, for a quick run and a full one.
 */
const PARTS = {
  receiving: { minutes: [0.25, 6] },
  durable: { minutes: [0.3, 7] },
  sizes: { minutes: [0.5, 20] },
  backlog: { minutes: [0.3, 15] },
  draining: { minutes: [0.2, 3] },
  flood: { minutes: [1.5, 20] },
  convergence: { minutes: [0.4, 5] },
  entitlement: { minutes: [0.1, 0.3] },
  memory: { minutes: [0.1, 3] },
  starting: { minutes: [0.2, 0.5] },
  // It takes longest, so an interrupted run has the others.
  snapshot: { minutes: [0.7, 45] },
}

const dateOf = (time) => time.toISOString().slice(0, 10)
const RESULTS = join(BENCH, 'results')
const begunAt = performance.now()
const minutesLeft = new Map()

function print(text) {
  const seconds = (performance.now() - begunAt) / 1_000
  console.log(`${seconds.toFixed(0).padStart(5)} s  ${text}`)
}

function readArguments() {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      out: { type: 'string', default: RESULTS },
      beside: { type: 'string' },
      million: { type: 'boolean', default: false },
    },
  })
  const parts = values.only?.split(',') ?? Object.keys(PARTS)
  const unknown = parts.filter((part) => !Object.hasOwn(PARTS, part))
  if (unknown.length > 0)
    throw new Error(`no such part: ${unknown}; there are ${Object.keys(PARTS).join(', ')}`)
  return { ...values, parts }
}

/** Installs the packages of the benchmarks if one is missing, and builds the package. */
function prepare() {
  const require = createRequire(join(BENCH, 'package.json'))
  const { dependencies } = require('./package.json')
  const isMissing = Object.keys(dependencies).some((name) => !existsSync(join(BENCH, 'node_modules', name)))
  if (isMissing) {
    print('installing the packages to compare with: npm ci in bench')
    run('npm', ['ci', '--no-audit', '--no-fund'], BENCH)
  }
  print('building the package')
  run('npm', ['run', '--silent', 'build'], PROJECT)
}

function run(command, args, cwd) {
  const { status } = spawnSync(command, args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} has failed`)
}

async function main() {
  const { quick, parts, out, beside: commit, million } = readArguments()
  prepare()
  const { startChild, killChildren } = await import('./harness/child.mjs')
  const { startPostgres, startRedis } = await import('./harness/databases.mjs')
  const { startLoad } = await import('./harness/load.mjs')
  const { writeReport } = await import('./harness/report.mjs')
  const { beside, removeOther } = await import('./beside.mjs')
  const { path: folder, isOnDisk } = folderOnDisk()
  const cores = coresOf()
  const nodes = runtimes()
  const leftOut = []
  const leaveOut = (text) => {
    leftOut.push(text)
    print(`left out: ${text}`)
  }
  const stops = []
  const end = async () => {
    for (const stop of stops.splice(0).reverse()) await stop().catch(() => {})
    killChildren()
    removeOther(folder)
    rmSync(folder, { recursive: true, force: true })
  }
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => end().finally(() => process.exit(1)))

  /** Starts at the first call, and ends with the run. */
  const once = (start) => {
    let started
    return () => {
      started ??= start().then((it) => {
        if (it) stops.push(it.stop)
        return it
      })
      return started
    }
  }
  try {
    print(`Node ${nodes.all.map(({ version }) => version).join(' and ')}; ${inWords(cores)}`)
    if (!isOnDisk)
      leaveOut('syncs to disk: every folder that can be used is in memory, where a sync costs nothing')
    if (nodes.judged.version.split('.')[0] < 24)
      leaveOut(
        `Node 24, where speed is judged: its package is missing here, so Node ${nodes.judged.version} stands for it`,
      )
    const load = await startLoad({ node: nodes.judged.path, cores: cores?.load, onRefused: print })
    stops.push(load.stop)
    /** Starts `servers/<name>.mjs` on the server's core, with the Node on which speed is judged. */
    const start = (name, settings, options) =>
      startChild(`servers/${name}.mjs`, settings, {
        node: nodes.judged.path,
        cores: cores?.server,
        ...options,
      })
    const platform = await start('platform', {}, { cores: cores?.load })
    stops.push(platform.stop)
    const postgres = once(() => startPostgres({ folder, cores: cores?.database }))
    const bench = {
      quick,
      folder,
      cores,
      load,
      runtimes: nodes,
      leaveOut,
      start,
      platformUrl: `http://127.0.0.1:${platform.ready.port}`,
      postgres,
      redis: once(() => startRedis({ folder, cores: cores?.database })),
      /** The address of an empty store. */
      newStore: async (engine, name) =>
        engine === 'sqlite'
          ? `sqlite:${join(folder, `${name}.db`)}`
          : (await postgres()).createDatabase(name),
    }
    if (commit !== undefined) {
      await beside(bench, { commit, million, print })
      return
    }
    const isWhole = parts.length === Object.keys(PARTS).length && !quick
    const measured = openMeasuredParts({ node: nodes.judged.version, quick })
    const former = isWhole ? parts.filter((part) => measured.parts[part]) : []
    if (former.length > 0)
      print(`${former.join(', ')}: measured since the last whole run, with this code. The rest follows`)
    leftOut.push(...former.flatMap((part) => measured.leftOut[part]))
    const done = new Set(former)
    const rest = parts.filter((part) => !done.has(part))
    for (const part of rest) minutesLeft.set(part, PARTS[part].minutes[quick ? 0 : 1])

    const results = {
      command: ['npm run bench', ...(process.argv.length > 2 ? ['--', ...process.argv.slice(2)] : [])].join(
        ' ',
      ),
      quick,
      node: nodes.judged.version,
      cores: inWords(cores),
      leftOut,
    }
    for (const part of rest) {
      const partBegunAt = performance.now()
      const leftOutBefore = leftOut.length
      const note = (text) => {
        const later = [...minutesLeft].reduce(
          (sum, [name, minutes]) => sum + (name === part ? 0 : minutes),
          0,
        )
        const own = minutesLeft.get(part) - (performance.now() - partBegunAt) / 60_000
        print(`${part}, ${text}, some ${Math.ceil(Math.max(own, 0.1) + later)} min left`)
      }
      const { [part]: measure } = await import(`./parts/${part}.mjs`)
      try {
        const figures = await measure({ ...bench, note })
        measured.add(part, {
          figures,
          leftOut: leftOut.slice(leftOutBefore),
          date: dateOf(new Date()),
          cpu: describeCpu(),
        })
        done.add(part)
      } catch (error) {
        leaveOut(`${part} has broken: ${String(error.message).slice(0, 300)}`)
        console.error(error)
        process.exitCode = 1
      }
      minutesLeft.delete(part)
    }
    if (parts.some((part) => ['durable', 'sizes', 'backlog', 'snapshot', 'draining', 'flood'].includes(part)))
      results.databases = [
        (await bench.postgres().catch(() => undefined))?.version,
        parts.includes('durable') && (await bench.redis())?.version,
      ].filter(Boolean)
    const inOrder = parts.filter((part) => done.has(part))
    results.parts = Object.fromEntries(inOrder.map((part) => [part, measured.parts[part]]))
    const listed = (byPart) => [...new Set(inOrder.map((part) => byPart[part]))].sort().join(' and ')
    results.date = listed(measured.dates)
    results.cpu = listed(measured.cpus)
    writeReport(results, out, { print, isForReaders: isWhole && out === RESULTS })
    if (isWhole && done.size === parts.length) measured.remove()
  } finally {
    await end()
  }
}

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})
