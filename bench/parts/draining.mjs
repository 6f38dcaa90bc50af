import { ENGINES, until } from '../harness/databases.mjs'
import { inRounds } from '../harness/statistics.mjs'
import { install, SECRET } from '../servers/deliveries.mjs'

const LANES_A_BATCH = 50
const ENTRIES_A_LANE = 5
const BATCH = LANES_A_BATCH * ENTRIES_A_LANE

/** Measures how fast handlers that return at once work off a backlog. */
export async function draining(bench) {
  const { quick, note } = bench
  const count = quick ? 10_000 : 200_000
  const rounds = quick ? 1 : 3
  const items = Object.entries(ENGINES).map(([id, name]) => ({ id, name }))
  const rows = await inRounds({
    items,
    rounds,
    note,
    measure: ({ id }, round) => measure(bench, id, round, count),
  })
  return {
    title: 'Draining a backlog',
    about: `${count.toLocaleString('en')} pending entries, ${ENTRIES_A_LANE} for each of ${(count / ENTRIES_A_LANE).toLocaleString('en')} businesses, default options; from the first call of a handler to the last.`,
    columns: [
      { id: 'perSecond', name: 'events/s', digits: 0 },
      { id: 'cpuMicros', name: 'CPU µs per event', digits: 0 },
      { id: 'gapMs', name: 'longest gap of the event loop, ms', digits: 1 },
    ],
    rows,
  }
}

async function measure({ platformUrl, load, start, newStore }, engine, round, count) {
  const settings = { store: await newStore(engine, `draining_${round}`), platformUrl, front: 'plain' }
  // Its handler never returns, so everything waits. Then it is killed, as in a crash.
  const receiver = await start('marketplace', {
    ...settings,
    handlers: 'hung',
    options: { bodyLimitBytes: 1_048_576 },
    internals: { acceptTimeoutMs: 60_000, leaseMs: 1_000 },
  })
  const envelopes = Array.from({ length: BATCH }, (_, i) =>
    install('uninstalled', `business-0000000-${i % LANES_A_BATCH}`),
  )
  await load.post({
    port: receiver.ready.port,
    path: `/x/${SECRET}`,
    body: JSON.stringify(envelopes),
    count: count / BATCH,
    connections: 4,
    spread: count / BATCH,
  })
  receiver.kill()
  // Waits until its leases have expired and PostgreSQL has noticed its end.
  await new Promise((resolve) => setTimeout(resolve, 1_500))

  const drainer = { front: 'none', handlers: 'draining', watchLoop: true }
  const worker = await start('marketplace', { ...settings, ...drainer })
  try {
    const before = await worker.ask('cpu')
    await until(
      'the backlog is worked off',
      async () => (await worker.ask('drained')).handled >= count,
      600_000,
    )
    const { handled, seconds } = await worker.ask('drained')
    const cpuMicros = ((await worker.ask('cpu')) - before) / handled
    return { perSecond: handled / seconds, cpuMicros, gapMs: await worker.ask('gap') }
  } finally {
    await worker.stop()
  }
}
