import { inRounds, medianOf } from './statistics.mjs'

/** Above this share of a core, the load generator may be the bottleneck instead of the server. */
const BUSY = 0.9

export const RECEIVING_COLUMNS = [
  { id: 'perSecond', name: 'requests/s', digits: 0 },
  { id: 'cpuMicros', name: 'CPU µs per request', digits: 0 },
  { id: 'allCpuMicros', name: 'with the database', digits: 0 },
  { id: 'p50Ms', name: 'p50 ms', digits: 1 },
  { id: 'p99Ms', name: 'p99 ms', digits: 1 },
  { id: 'loadCpu', name: 'load generator, share of a core', digits: 2 },
]

/**
 * Puts servers of `servers/` under load in rounds, each alone and in a new process: `{ id, name, file, node, prepare(round) →
 * settings, path, database }`. `database` has `cpu()`. Resolves with rows of RECEIVING_COLUMNS. A server that cannot be started is left out, with
 * a message.
 */
export async function compareReceiving({ servers, rounds, seconds, bench, body }) {
  const { load, start, note, leaveOut } = bench
  const failed = new Set()
  const rows = await inRounds({
    items: servers,
    rounds,
    note,
    async measure(server, round) {
      if (failed.has(server.id)) return {}
      try {
        return await measure(server, { ms: seconds * 1_000, warmUp: seconds < 1 ? 5_000 : 20_000, round })
      } catch (error) {
        failed.add(server.id)
        leaveOut(`${server.name}: ${String(error.message).slice(0, 300)}`)
        return {}
      }
    },
  })
  for (const { name, values } of rows)
    if (medianOf(values.loadCpu ?? []) > BUSY)
      note(`the load generator was busy all the time: ${name} may be faster`)
  return rows.filter(({ id }) => !failed.has(id))

  async function measure(server, { ms, warmUp, round }) {
    const { file, node, path = '/x', prepare = () => ({}), database } = server
    const child = await start(file, await prepare(round), { node })
    try {
      const target = { port: child.ready.port, path, body }
      // The warm-up is a number of requests, so that a fast server and a slow one are compiled alike.
      await load.post({ ...target, count: warmUp, durationMs: 4_000 })
      const found = await received({ load, child, target, durationMs: ms, database })
      const { perSecond, cpuMicros, allCpuMicros, p50Ms, p99Ms, loadCpu } = found
      return { perSecond, cpuMicros, allCpuMicros, p50Ms, p99Ms, loadCpu }
    } finally {
      await child.stop()
    }
  }
}

/**
 * Posts to a server for some time; the result of the load generator, with the CPU time of a request: of the server's process,
 * and together with all processes of its `database`, if that is a server too.
 */
export async function received({ load, child, target, durationMs, database }) {
  const cpu = async () => [await child.ask('cpu'), (await database?.cpu()) ?? 0]
  const before = await cpu()
  const result = await load.post({ ...target, durationMs })
  const [own, databases] = (await cpu()).map((after, i) => (after - before[i]) / result.requests)
  return { ...result, perSecond: result.requestsPerSecond, cpuMicros: own, allCpuMicros: own + databases }
}
