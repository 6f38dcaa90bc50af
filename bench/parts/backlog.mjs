import { ENGINES, until } from '../harness/databases.mjs'
import { received } from '../harness/receive.mjs'
import { inRounds, medianOf, withRatios } from '../harness/statistics.mjs'
import { BODY, install, notice, SECRET } from '../servers/deliveries.mjs'

const FAILING_KEYS = 1_000
const HUNG_KEYS = 8
/** The number of envelopes in one delivery while the backlog is created. */
const BATCH = 250

/** Measures receiving and handling while many entries wait behind a handler that fails and one that never returns. */
export async function backlog(bench) {
  const { quick, note } = bench
  const counts = quick ? { large: 20_000 } : { middle: 100_000, large: 1_000_000 }
  const rounds = quick ? 1 : 5
  const rows = []
  for (const [engine, inWords] of Object.entries(ENGINES)) {
    const empty = await startServer(bench, engine, 'empty')
    const loaded = await startServer(bench, engine, 'loaded')
    try {
      let pending = 0
      for (const [role, count] of Object.entries(counts)) {
        note(`making ${count.toLocaleString('en')} entries on ${inWords}`)
        await add(bench, loaded, count - pending)
        pending = count
        const items = [
          {
            id: `${engine}/${role}`,
            name: `${inWords}, ${count.toLocaleString('en')} pending`,
            server: loaded,
            other: empty,
          },
          {
            id: `${engine}/${role}/empty`,
            name: `${inWords}, empty, in turn with it`,
            server: empty,
            other: loaded,
          },
        ]
        rows.push(
          ...(await inRounds({ items, rounds, note, measure: (item, round) => measure(bench, item, round) })),
        )
      }
    } finally {
      await empty.stop()
      await loaded.stop()
    }
  }
  return {
    title: 'Backlog',
    about: `Half of the entries stand behind ${FAILING_KEYS} heads that have failed and are due in an hour, half behind ${HUNG_KEYS} whose handler never returns. Meanwhile deliveries come in whose handler returns at once. ${rounds} rounds, in turns with a store that has no backlog; who is not measured is stopped.`,
    columns: [
      { id: 'perSecond', name: 'receiving, requests/s', digits: 0 },
      { id: 'cpuMicros', name: 'CPU µs per request', digits: 0 },
      { id: 'handledMs', name: 'delivery to handler, ms', digits: 2 },
      { id: 'lookMs', name: 'look for work, ms', digits: 2 },
      { id: 'gapMs', name: 'longest gap of the event loop, ms', digits: 1 },
      { id: 'ratio', name: 'receiving, × empty', digits: 2 },
    ],
    rows: withRatios(rows, 'perSecond', (id) => `${id.replace(/\/empty$/, '')}/empty`),
  }
}

async function startServer({ platformUrl, start, newStore }, engine, role) {
  const hour = 3_600_000
  return start('marketplace', {
    store: await newStore(engine, `backlog_${role}`),
    platformUrl,
    front: 'plain',
    handlers: 'failing-and-hung',
    watchLoop: true,
    options: {
      handlers: { concurrency: 32, timeoutMs: hour, retryDelaysMs: [hour] },
      bodyLimitBytes: 1_048_576,
    },
    internals: { acceptTimeoutMs: 60_000 },
  })
}

/** Delivers many envelopes in one delivery. */
async function add({ load }, server, count) {
  const envelopes = Array.from({ length: BATCH }, (_, i) =>
    i % 2 === 0
      ? install('installed', 'failing-0000000')
      : install('uninstalled', `hung-${(i >> 1) % HUNG_KEYS}`),
  )
  await load.post({
    port: server.ready.port,
    path: `/x/${SECRET}`,
    body: JSON.stringify(envelopes),
    count: Math.ceil(count / BATCH),
    connections: 4,
    spread: FAILING_KEYS,
  })
  const heads = Math.min(FAILING_KEYS, Math.ceil(count / BATCH))
  await until(
    'the heads have failed',
    async () => (await server.ask('health')).counts?.retrying >= heads,
    60_000,
  )
}

async function measure({ load, quick }, { server, other }, round) {
  other.freeze()
  try {
    const target = { port: server.ready.port, path: `/x/${SECRET}`, body: BODY }
    await load.post({ ...target, count: quick ? 5_000 : 20_000, durationMs: 4_000 })
    await server.ask('gap')
    const { perSecond, cpuMicros } = await received({
      load,
      child: server,
      target,
      durationMs: quick ? 700 : 4_000,
    })
    const gapMs = await server.ask('gap')
    await quiet(server)
    const bodies = Array.from({ length: 20 }, (_, i) => JSON.stringify(notice('update', round * 100 + i + 1)))
    const times = await server.ask('untilHandled', server.ready.port, bodies)
    // The look would find the changes that the reads for these deliveries have made.
    await quiet(server)
    return { perSecond, cpuMicros, handledMs: medianOf(times), lookMs: await server.ask('look', 100), gapMs }
  } finally {
    other.thaw()
  }
}

/** Waits until the deliveries and changes are handled and the subscriptions read; the backlog stays. */
async function quiet(server) {
  let last
  await until('the deliveries are handled', async () => {
    const { handled } = await server.ask('drained')
    const { counts } = await server.ask('health')
    const isSame = counts.requested === 0 && handled === last
    last = handled
    await new Promise((resolve) => setTimeout(resolve, 200))
    return isSame
  })
}
