import { cpSync, rmSync, statSync } from 'node:fs'
import { ENGINES, until } from '../harness/databases.mjs'
import { fillStore } from '../harness/fill-store.mjs'
import { received } from '../harness/receive.mjs'
import { inRounds, medianOf, withRatios } from '../harness/statistics.mjs'
import { BODY, notice, SECRET } from '../servers/deliveries.mjs'

/** Measures the same questions at 1,000, 100,000 and 1,000,000 subscriptions, on both engines. */
export async function sizes(bench) {
  const { quick, note } = bench
  const counts = quick ? { small: 1_000, large: 20_000 } : { small: 1_000, middle: 100_000, large: 1_000_000 }
  const rounds = quick ? 1 : 5
  const items = []
  for (const [engine, inWords] of Object.entries(ENGINES)) {
    for (const [role, count] of Object.entries(counts)) {
      const name = `${inWords}, ${count.toLocaleString('en')} subscriptions`
      note(`making ${name}`)
      items.push({ id: `${engine}/${role}`, name, count, ...(await makeStore(bench, engine, role, count)) })
    }
  }
  const rows = await inRounds({ items, rounds, note, measure: (item) => measure(bench, item) })
  return {
    title: 'Sizes',
    about: `Twice as many journal rows as subscriptions; ${rounds} rounds, and each begins without a backlog. Deliveries go to subscriptions all over the table, and \`worker: false\` keeps reads of the platform out of the figure. Statistics of PostgreSQL are as its own autovacuum left them.`,
    columns: [
      { id: 'perSecond', name: 'receiving, requests/s', digits: 0 },
      { id: 'cpuMicros', name: 'CPU µs per request', digits: 0 },
      { id: 'allCpuMicros', name: 'with the database', digits: 0 },
      { id: 'gapMs', name: 'longest gap of the event loop, ms', digits: 1 },
      { id: 'handlingGapMs', name: 'longest gap while handlers and reads work it off, ms', digits: 1 },
      { id: 'handledMs', name: 'delivery to handler, ms', digits: 2 },
      { id: 'lookMs', name: 'look for work, ms', digits: 2 },
      { id: 'coldMs', name: 'cold isEntitled, ms', digits: 3 },
      { id: 'pointReadMs', name: 'point read of the store, ms', digits: 3 },
      { id: 'listMs', name: 'journal.list, ms', digits: 2 },
      { id: 'healthMs', name: 'health(), ms', digits: 2 },
      { id: 'sweepMs', name: 'sweep, nothing to delete, ms', digits: 2 },
      { id: 'deleteMs', name: 'sweep, 100 entries deleted, ms', digits: 2 },
      { id: 'startMs', name: 'start, ms', digits: 0 },
      { id: 'logBytes', name: 'write-ahead log, bytes per delivery', digits: 0 },
      { id: 'rowBytes', name: 'disk, bytes per subscription and its two journal rows', digits: 0 },
      { id: 'ratio', name: 'receiving, × smallest', digits: 2 },
    ],
    rows: withRatios(rows, 'perSecond', (id) => id.replace(/\/.*/, '/small')),
  }
}

async function makeStore(bench, engine, role, count) {
  const store = await bench.newStore(engine, `sizes_${role}`)
  const { platformUrl } = bench
  await fillStore(bench, { store, count, app: ['marketplace', { store, platformUrl, front: 'plain' }] })
  return engine === 'sqlite' ? fileStore(store) : databaseStore(await bench.postgres(), store)
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
    database: server,
    bytes: () => figure(`select pg_database_size('${name}') as figure`),
    logPosition: () => figure(`select pg_current_wal_lsn() - '0/0'::pg_lsn as figure`),
    copy: (count) => (count > COPIED_UP_TO ? store : server.createDatabase(`${name}_copy`, name)),
  }
}

async function measure(bench, { count, bytes, logPosition, copy, database }) {
  const { platformUrl } = bench
  const rowBytes = (await bytes()) / count
  const store = await copy(count)
  const start = (server, settings) => bench.start(server, { store, platformUrl, count, ...settings })
  const answered = await askAll(bench, await start('sizes'))
  const receiver = { front: 'plain', watchLoop: true, options: { worker: false } }
  const received = await receive(bench, await start('marketplace', receiver), {
    count,
    logPosition,
    database,
  })
  const reads = { concurrency: 16 }
  const handler = { front: 'plain', handlers: 'at-once', watchLoop: true, options: { reads } }
  const handled = await handle(await start('marketplace', handler), count)
  return { ...answered, ...received, ...handled, rowBytes }
}

async function askAll({ quick }, app) {
  try {
    await app.calm()
    return {
      startMs: app.ready.startMs,
      ...(await app.ask('cold', quick ? 100 : 300)),
      listMs: await app.ask('list', 20),
      healthMs: await app.ask('health', 20),
      lookMs: await app.ask('look', 100),
      ...(await app.ask('sweep', 5)),
    }
  } finally {
    await app.stop()
  }
}

async function receive({ quick, load }, app, { count, logPosition, database }) {
  try {
    const target = { port: app.ready.port, path: `/x/${SECRET}`, body: BODY, spread: count }
    await app.calm()
    await load.post({ ...target, count: quick ? 5_000 : 20_000, durationMs: 4_000 })
    await app.ask('gap')
    const logBefore = await logPosition()
    const durationMs = quick ? 700 : 4_000
    const found = await received({ load, child: app, target, durationMs, database })
    const { perSecond, cpuMicros, allCpuMicros, requests } = found
    const logBytes = ((await logPosition()) - logBefore) / requests
    return { perSecond, cpuMicros, allCpuMicros, logBytes, gapMs: await app.ask('gap') }
  } finally {
    await app.stop()
  }
}

/**
 * Handles and reads what was received before, so that the next round begins without a backlog; then measures one delivery
 * after the other.
 */
async function handle(app, count) {
  try {
    await allDone(app)
    const handlingGapMs = await app.ask('gap')
    await app.calm()
    const bodies = Array.from({ length: 30 }, (_, i) => JSON.stringify(notice('update', (i * 31) % count)))
    const handledMs = medianOf(await app.ask('untilHandled', app.ready.port, bodies))
    await allDone(app)
    return { handlingGapMs, handledMs }
  } finally {
    await app.stop()
  }
}

async function allDone(app) {
  let counts
  const isDone = async () => {
    ;({ counts } = await app.ask('health'))
    return counts.pending === 0 && counts.requested === 0
  }
  await until('the deliveries are handled and their subscriptions read', isDone, 300_000).catch((cause) => {
    throw new Error(`${cause.message}: ${JSON.stringify(counts)}`, { cause })
  })
}
