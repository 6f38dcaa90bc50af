import { until } from '../harness/databases.mjs'
import { inRounds, medianOf } from '../harness/statistics.mjs'
import { BODY, SECRET, subscriptionOf } from '../servers/deliveries.mjs'

const CONCURRENCY = 16
const PAUSE_MS = 20
const BURST = 10_000

/**
 * Measures reading from the platform: how long until every requested subscription is known, and how many reads a burst
 * costs.
 */
export async function convergence(bench) {
  const { quick, note } = bench
  const count = quick ? 500 : 10_000
  const rounds = quick ? 1 : 3
  const rows = []
  for (const [suffix, pauseMs, inWords] of [
    ['', PAUSE_MS, `a platform that takes ${PAUSE_MS} ms for an answer`],
    ['-at-once', 0, 'a platform that answers at once'],
  ])
    rows.push(...(await readAll(bench, { suffix, pauseMs, inWords, count, rounds, note })))
  note('a burst of one subscription')
  rows.push(await readBurst(bench))
  rows.push(await watchInstances(bench))
  return {
    title: 'Convergence',
    about: `${count.toLocaleString('en')} subscriptions are named by \`track\`, ${CONCURRENCY} reads at once, a token and a record each; until the platform's answer is on disk for all. Beside it a loop of \`fetch\` of the same concurrency that keeps nothing. The burst: ${BURST.toLocaleString('en')} deliveries of one subscription, and the reads until none is owed. Instances: the platform changes subscriptions and delivers each change to one of four instances on one PostgreSQL; the lag is the time until all four answer \`isEntitled\` by it. They share all cores with the platform and the database.`,
    columns: [
      { id: 'seconds', name: 'seconds', digits: 2 },
      { id: 'cpuMicros', name: 'CPU µs per subscription', digits: 0 },
      { id: 'reads', name: 'reads', digits: 0 },
      { id: 'firstLagMs', name: 'lag of the first quarter, ms', digits: 0 },
      { id: 'lagMs', name: 'lag of the last quarter, ms', digits: 0 },
    ],
    rows,
  }
}

async function readAll({ cores, start, newStore }, { suffix, pauseMs, inWords, count, rounds, note }) {
  const platform = await start('platform', { pauseMs }, { cores: cores?.load })
  const platformUrl = `http://127.0.0.1:${platform.ready.port}`
  const items = [
    { id: `package${suffix}`, name: `marketplace-webhooks, ${inWords}` },
    { id: `bare${suffix}`, name: `bare fetch loop, ${inWords}` },
  ]
  try {
    return await inRounds({
      items,
      rounds,
      note,
      async measure({ id }, round) {
        const settings = { platformUrl, count, concurrency: CONCURRENCY }
        const child = await start('converge', settings)
        try {
          const before = await child.ask('cpu')
          const seconds = id.startsWith('package')
            ? await child.ask('package', await newStore('sqlite', `converge${suffix}-${round}`), 1)
            : await child.ask('bare', 1)
          return { seconds, cpuMicros: ((await child.ask('cpu')) - before) / count }
        } finally {
          await child.stop()
        }
      },
    })
  } finally {
    await platform.stop()
  }
}

async function readBurst({ cores, load, start, newStore }) {
  const platform = await start('platform', { pauseMs: PAUSE_MS }, { cores: cores?.load })
  const platformUrl = `http://127.0.0.1:${platform.ready.port}`
  const store = await newStore('sqlite', 'burst')
  const server = await start('marketplace', { store, platformUrl, front: 'plain' })
  try {
    await load.post({ port: server.ready.port, path: `/x/${SECRET}`, body: BODY, count: BURST })
    await until(
      'every requested read is done',
      async () => (await server.ask('health')).counts?.requested === 0,
    )
    const reads = await platform.ask('readsOf', subscriptionOf(0))
    return {
      id: 'burst',
      name: `${BURST.toLocaleString('en')} deliveries of one subscription`,
      values: { reads: [reads] },
    }
  } finally {
    await server.stop()
    await platform.stop()
  }
}

/** A quick run is slower, and so has another name than the aim's. */
async function watchInstances({ quick, note, start, newStore }) {
  // They share all cores.
  const anywhere = { cores: undefined }
  const perSecond = quick ? 100 : 1_000
  const seconds = quick ? 4 : 20
  // Each is changed only once, so that the state that an instance waits for stays.
  const count = perSecond * seconds
  const store = await newStore('postgres', 'instances')
  const platform = await start('platform', {}, anywhere)
  const platformUrl = `http://127.0.0.1:${platform.ready.port}`
  const settings = {
    store,
    platformUrl,
    front: 'watched',
    options: { platform: { baseUrl: platformUrl, authUrl: platformUrl }, reads: { concurrency: 25 } },
  }
  const instances = []
  try {
    for (let i = 0; i < 4; i++) instances.push(await start('marketplace', settings, anywhere))
    note(`four instances, ${perSecond} changes a second`)
    const [first] = instances
    await first.ask('trackAll', count)
    await until(
      'every subscription is read',
      async () => (await first.ask('health')).counts?.requested === 0,
      120_000,
    )
    const lags = await platform.ask('change', {
      ports: instances.map(({ ready }) => ready.port),
      count,
      perSecond,
      seconds,
    })
    const quarter = (number) => {
      const [from, to] = [number - 1, number].map((share) => (share * seconds * 1_000) / 4)
      return [medianOf(lags.filter(({ atMs }) => atMs >= from && atMs < to).map(({ lagMs }) => lagMs))]
    }
    return {
      id: quick ? 'four-instances-quick' : 'four-instances',
      name: `four instances, ${perSecond.toLocaleString('en')} changes a second for ${seconds} s`,
      values: { firstLagMs: quarter(1), lagMs: quarter(4) },
    }
  } finally {
    for (const child of [...instances, platform]) await child.stop()
  }
}
