import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT } from '../harness/machine.mjs'
import { inRounds } from '../harness/statistics.mjs'

/** Measures what the package costs an app before the first request: time at the start, and the bytes of its files. */
export async function starting(bench) {
  const { runtimes, quick, note, newStore } = bench
  const rounds = quick ? 3 : 9
  const url = await newStore('postgres', 'starting')
  const kept = await newStore('sqlite', 'starting')
  const items = [
    ...runtimes.all.map(({ path: node, version, id }) => ({
      id: `sqlite-${id}`,
      name: `SQLite, a new file, Node ${version.split('.')[0]}`,
      node,
      store: (round) => newStore('sqlite', `starting-${id}-${round}`),
    })),
    { id: 'sqlite-again', name: 'SQLite, again', node: runtimes.judged.path, store: () => kept },
    { id: 'postgres-again', name: 'PostgreSQL, again', node: runtimes.judged.path, store: () => url },
  ]
  // The first start creates the tables.
  for (const { node, store } of items.slice(-2)) await startOnce(bench, { node, store: store() })
  note(`${rounds} rounds`)
  const rows = await inRounds({
    items,
    rounds,
    note: () => {},
    measure: async ({ node, store }, round) => startOnce(bench, { node, store: await store(round) }),
  })
  return {
    title: 'Starting and installing',
    about: `From the \`import\` of the package until \`start()\` has resolved, ${rounds} rounds in new processes. Files: the bytes of all of them after \`npm pack\`, installed without development packages. \`du\` shows more, because each takes whole blocks.`,
    columns: [
      { id: 'importMs', name: 'import, ms', digits: 0 },
      { id: 'createMs', name: 'createMarketplace, ms', digits: 1 },
      { id: 'startMs', name: 'start(), ms', digits: 0 },
      { id: 'totalMs', name: 'in all, ms', digits: 0 },
      { id: 'megabytes', name: 'files, MB', digits: 2 },
      { id: 'packages', name: 'packages', digits: 0 },
    ],
    rows: [...rows, ...installed(bench)],
  }
}

async function startOnce({ platformUrl, start }, { node, store }) {
  const child = await start('start', { store, platformUrl }, { node })
  await child.stop()
  return child.ready
}

function installed({ folder, note, leaveOut }) {
  note('packing and installing')
  const target = join(folder, 'installed')
  mkdirSync(target)
  writeFileSync(join(target, 'package.json'), '{ "private": true }')
  const npm = (args, cwd) => spawnSync('npm', args, { cwd, encoding: 'utf8' })
  const packed = npm(['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], PROJECT)
  const file = join(folder, packed.stdout.trim().split('\n').at(-1))
  const install = [
    'install',
    file,
    '--omit=dev',
    '--omit=peer',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
  ]
  const { status, stderr } = npm(install, target)
  if (status !== 0) {
    leaveOut(
      `size of the package with its dependencies: npm install has failed (${stderr.trim().split('\n').at(-1)})`,
    )
    return []
  }
  const modules = join(target, 'node_modules')
  const row = (id, name, values) => ({ id, name, values })
  return [
    row('itself', 'the package itself', {
      megabytes: [sizeOf(join(modules, 'marketplace-webhooks')) / 1e6],
      packages: [1],
    }),
    row('with-dependencies', 'with its dependencies, without Express and database libraries', {
      megabytes: [sizeOf(modules) / 1e6],
      packages: [countOf(modules)],
    }),
  ]
}

function sizeOf(path) {
  const stat = statSync(path)
  if (!stat.isDirectory()) return stat.size
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
}

function countOf(modules) {
  return readdirSync(modules)
    .filter((name) => !name.startsWith('.'))
    .reduce((sum, name) => sum + (name.startsWith('@') ? readdirSync(join(modules, name)).length : 1), 0)
}
