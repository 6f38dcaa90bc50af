import { cpSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { startChild } from '../harness/child.mjs'
import { until } from '../harness/databases.mjs'
import { inRounds, medianOf } from '../harness/statistics.mjs'
import { BODY, businessOf, notice, SECRET } from '../servers/deliveries.mjs'

/** Measures the same questions at 1,000, 100,000 and 1,000,000 subscriptions, on both engines. */
export async function sizes(bench) {
  const { quick, note } = bench
  const counts = quick ? { small: 1_000, large: 20_000 } : { small: 1_000, middle: 100_000, large: 1_000_000 }
  const rounds = quick ? 1 : 5
  const items = []
  for (const engine of ['sqlite', 'postgres']) {
    for (const [role, count] of Object.entries(counts)) {
      const name = `${engine === 'sqlite' ? 'SQLite' : 'PostgreSQL'}, ${count.toLocaleString('en')} subscriptions`
      note(`making ${name}`)
      items.push({ id: `${engine}/${role}`, name, count, ...(await makeStore(bench, engine, role, count)) })
    }
  }
  const rows = await inRounds({ items, rounds, note, measure: (item) => measure(bench, item) })
  return {
    title: 'Sizes',
    about: `Twice as many journal rows as subscriptions; ${rounds} rounds. Deliveries go to subscriptions all over the table, and \`worker: false\` keeps reads of the platform out of the figure. Statistics of PostgreSQL are as its own autovacuum left them.`,
    columns: [
      { id: 'perSecond', name: 'receiving, requests/s', digits: 0 },
      { id: 'cpuMicros', name: 'CPU µs per request', digits: 0 },
      { id: 'gapMs', name: 'longest gap of the event loop, ms', digits: 1 },
      { id: 'handledMs', name: 'delivery to handler, ms', digits: 2 },
      { id: 'coldMs', name: 'cold isEntitled, ms', digits: 3 },
      { id: 'pointReadMs', name: 'point read of the store, ms', digits: 3 },
      { id: 'listMs', name: 'journal.list, ms', digits: 2 },
      { id: 'healthMs', name: 'health(), ms', digits: 2 },
      { id: 'startMs', name: 'start, ms', digits: 0 },
      { id: 'logBytes', name: 'write-ahead log, bytes per delivery', digits: 0 },
      { id: 'rowBytes', name: 'disk, bytes per subscription and its two journal rows', digits: 0 },
    ],
    rows,
    beside: { column: 'perSecond', row: (id) => id.replace(/\/.*/, '/small'), name: 'receiving, × smallest' },
  }
}

/** One subscription is created as in an app; the others are its copies. */
async function makeStore({ folder, platformUrl, runtimes, cores, load, postgres }, engine, role, count) {
  const store =
    engine === 'sqlite'
      ? `sqlite:${join(folder, `sizes-${role}.db`)}`
      : await (await postgres()).createDatabase(`sizes_${role}`)
  const options = { node: runtimes.judged.path, cores: cores?.server }
  const app = await startChild('servers/marketplace.mjs', { store, platformUrl, front: 'plain' }, options)
  await load.post({
    port: app.ready.port,
    path: `/x/${SECRET}`,
    body: JSON.stringify(notice('create')),
    count: 1,
    connections: 1,
  })
  await until('the first subscription is read', () => app.ask('isEntitled', businessOf(0)))
  await until('its change is handled', async () => {
    const { counts } = await app.ask('health')
    return counts.requested === 0 && counts.pending === 0
  })
  await app.stop()
  const seeding = await startChild('servers/seed.mjs', { store, count }, options)
  await seeding.ask('seed')
  await seeding.stop()
  return engine === 'sqlite' ? fileStore(store) : databaseStore(await postgres(), store)
}

/**
 * `copy` has the rows from the beginning, whatever was measured before. If there are many, a few more make no
 * difference.
 */
const COPIED_UP_TO = 100_000

function fileStore(store) {
  const path = store.slice('sqlite:'.length)
  return {
    bytes: async () => statSync(path).size,
    logPosition: async () => Number.NaN,
    async copy(count) {
      if (count > COPIED_UP_TO) return store
      for (const end of ['', '-wal', '-shm']) rmSync(`${path}-copy${end}`, { force: true })
      cpSync(path, `${path}-copy`)
      return `${store}-copy`
    },
  }
}

function databaseStore(server, store) {
  const name = new URL(store).pathname.slice(1)
  const figure = async (sql) => Number((await server.sql(sql))[0].figure)
  return {
    bytes: () => figure(`select pg_database_size('${name}') as figure`),
    logPosition: () => figure(`select pg_current_wal_lsn() - '0/0'::pg_lsn as figure`),
    copy: (count) => (count > COPIED_UP_TO ? store : server.createDatabase(`${name}_copy`, name)),
  }
}

async function measure({ quick, platformUrl, runtimes, cores, load }, { count, bytes, logPosition, copy }) {
  const rowBytes = (await bytes()) / count
  const store = await copy(count)
  const options = { node: runtimes.judged.path, cores: cores?.server }
  const asked = await startChild('servers/sizes.mjs', { store, platformUrl, count }, options)
  const questions = async () => ({
    startMs: asked.ready.startMs,
    ...(await asked.ask('cold', quick ? 100 : 300)),
    listMs: await asked.ask('list', 20),
    healthMs: await asked.ask('health', 20),
  })
  const answered = await asked.calm().then(questions).finally(asked.stop)

  const working = await startChild(
    'servers/marketplace.mjs',
    { store, platformUrl, front: 'plain', handlers: 'at-once' },
    options,
  )
  const bodies = Array.from({ length: 30 }, (_, i) => JSON.stringify(notice('update', (i * 31) % count)))
  const times = await working
    .calm()
    .then(() => working.ask('untilHandled', working.ready.port, bodies))
    .finally(working.stop)

  const receiver = await startChild(
    'servers/marketplace.mjs',
    { store, platformUrl, front: 'plain', watchLoop: true, options: { worker: false } },
    options,
  )
  try {
    const target = { port: receiver.ready.port, path: `/x/${SECRET}`, body: BODY, spread: count }
    await receiver.calm()
    await load.post({ ...target, count: quick ? 5_000 : 20_000, durationMs: 4_000 })
    await receiver.ask('gap')
    const before = await receiver.ask('cpu')
    const logBefore = await logPosition()
    const { requests, requestsPerSecond: perSecond } = await load.post({
      ...target,
      durationMs: quick ? 700 : 4_000,
    })
    const cpuMicros = ((await receiver.ask('cpu')) - before) / requests
    const logBytes = ((await logPosition()) - logBefore) / requests
    const gapMs = await receiver.ask('gap')
    return { ...answered, handledMs: medianOf(times), perSecond, cpuMicros, gapMs, logBytes, rowBytes }
  } finally {
    await receiver.stop()
  }
}
