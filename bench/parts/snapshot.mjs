import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { until } from '../harness/databases.mjs'
import { fillStore } from '../harness/fill-store.mjs'
import { received } from '../harness/receive.mjs'
import { inRounds, withRatios } from '../harness/statistics.mjs'
import { BODY, SECRET } from '../servers/deliveries.mjs'

/** The number of deliveries between two looks at whether the server keeps up. */
const AT_ONCE = 10_000

/**
 * Measures receiving and claims on PostgreSQL after as many deliveries as come in half an hour at 500 a second, two for each
 * subscription, while a transaction in `repeatable read` is open all the time. The server keeps all dead rows for it.
 */
export async function snapshot(bench) {
  const { quick, note } = bench
  const count = quick ? 10_000 : 900_000
  const spread = count / 2
  const rounds = quick ? 1 : 5
  const quiet = await startServer(bench, 'snapshot_quiet', spread)
  const open = await startServer(bench, 'snapshot_open', spread)
  let reader
  try {
    reader = new pg.Client({ connectionString: open.store, application_name: 'report' })
    await reader.connect()
    await reader.query('begin isolation level repeatable read')
    await reader.query('select count(*) from marketplace_webhooks.subscriptions')
    // Both get theirs in turns, so that the rest of the machine affects both.
    for (let done = 0; done < count; done += AT_ONCE) {
      note(`${(done + AT_ONCE).toLocaleString('en')} of ${count.toLocaleString('en')} deliveries`)
      for (const server of [quiet, open]) await fill(bench, server, AT_ONCE, spread)
    }
    const items = [
      { id: 'open', name: 'a transaction is open', server: open, other: quiet },
      { id: 'quiet', name: 'none, in turn with it', server: quiet, other: open },
    ]
    const rows = await inRounds({ items, rounds, note, measure: (item) => measure(bench, item, spread) })
    return {
      title: 'Beside an open transaction',
      about: `PostgreSQL, ${count.toLocaleString('en')} deliveries for ${spread.toLocaleString('en')} subscriptions, read and handled, while a transaction in \`repeatable read\` is open, and without one. *Receiving* is the CPU of a process without a worker that gets 500 deliveries a second, with the database. The other figures are those of a process with a worker that gets as many, reads and handles them; then it gets as many as it takes. ${rounds} rounds in turns.`,
      columns: [
        { id: 'receivingMicros', name: 'receiving, CPU µs per request with the database', digits: 0 },
        { id: 'cpuMicros', name: 'CPU µs per request', digits: 0 },
        { id: 'allCpuMicros', name: 'with the database', digits: 0 },
        { id: 'replyMs', name: 'reply, ms', digits: 2 },
        { id: 'perSecond', name: 'at most, requests/s', digits: 0 },
        { id: 'readsMs', name: 'claim of reads, ms', digits: 2 },
        { id: 'lanesMs', name: 'claim of entries, ms', digits: 2 },
        { id: 'healthMs', name: 'health(), ms', digits: 0 },
        { id: 'ratio', name: 'CPU with the database, × quiet', digits: 2 },
      ],
      rows: withRatios(rows, 'allCpuMicros', () => 'quiet'),
    }
  } finally {
    await reader?.end()
    for (const { stop, receiver } of [quiet, open]) await Promise.all([stop(), receiver.stop()])
  }
}

async function startServer(bench, name, subscriptions) {
  const { platformUrl, start, newStore } = bench
  const store = await newStore('postgres', name)
  await fillStore(bench, {
    store,
    count: subscriptions,
    app: ['marketplace', { store, platformUrl, front: 'plain' }],
  })
  const settings = { store, platformUrl, front: 'plain', handlers: 'at-once', timesClaims: true }
  const receiver = await start('marketplace', { ...settings, options: { worker: false } })
  return { store, receiver, ...(await start('marketplace', settings)) }
}

const targetOf = (server) => ({ port: server.ready.port, path: `/x/${SECRET}`, body: BODY })

/** Delivers, and waits until all of it is handled. It does not ask for `health()`, whose counts are slow beside the transaction. */
async function fill({ load }, server, count, spread) {
  const before = await server.ask('handled')
  await untilHandled(server, before, await load.post({ ...targetOf(server), count, spread }))
}

async function untilHandled(server, before, { requests, refused }) {
  const isHandled = async () => (await server.ask('handled')) - before >= requests - refused
  await until('the deliveries are handled', isHandled, 600_000)
}

/** Waits until all that was requested is read too. `settled()` looks through the lanes, which is slow beside the transaction. */
async function settle({ store }) {
  const client = new pg.Client({ connectionString: store })
  await client.connect()
  const isSettled = async () => {
    const { rows } = await client.query(
      'select 1 from marketplace_webhooks.subscriptions where generation > settled_generation limit 1',
    )
    if (rows.length === 0) return true
    // The query takes seconds beside the transaction, and the reads need the server.
    await sleep(2_000)
    return false
  }
  try {
    await until('all is read', isSettled, 1_800_000)
  } finally {
    await client.end()
  }
}

async function measure({ load, quick, postgres }, { server, other }, spread) {
  const atRest = [other, other.receiver]
  for (const each of atRest) each.freeze()
  try {
    await fill({ load }, server, 1_000, spread)
    await settle(server)
    const each = { load, database: await postgres(), durationMs: quick ? 2_000 : 10_000 }
    const paced = { spread, connections: 16, perSecond: 500 }
    const { receiver } = server
    const handledBefore = await server.ask('handled')
    server.freeze()
    const alone = await received({
      ...each,
      child: receiver,
      target: { ...targetOf(receiver), ...paced },
    }).finally(server.thaw)
    await untilHandled(server, handledBefore, alone)
    await settle(server)
    await server.ask('claimTimes')
    const target = targetOf(server)
    const {
      cpuMicros,
      allCpuMicros,
      p50Ms: replyMs,
    } = await received({ ...each, child: server, target: { ...target, ...paced } })
    const { claimReads: readsMs, claimLanes: lanesMs } = await server.ask('claimTimes')
    const beganAt = performance.now()
    await server.ask('health')
    const healthMs = performance.now() - beganAt
    const { requestsPerSecond: perSecond } = await load.post({
      ...target,
      spread,
      durationMs: quick ? 1_000 : 5_000,
    })
    await fill({ load }, server, 100, spread)
    return {
      receivingMicros: alone.allCpuMicros,
      replyMs,
      perSecond,
      cpuMicros,
      allCpuMicros,
      readsMs,
      lanesMs,
      healthMs,
    }
  } finally {
    for (const each of atRest) each.thaw()
  }
}
