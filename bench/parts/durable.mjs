import { join } from 'node:path'
import { compareReceiving, RECEIVING_COLUMNS } from '../harness/receive.mjs'
import { withRatios } from '../harness/statistics.mjs'
import { BODY, SECRET } from '../servers/deliveries.mjs'

/**
 * Measures servers that have a delivery on disk before they reply, all in Express 5; then the same with running
 * handlers.
 */
export async function durable(bench) {
  const { runtimes, folder, platformUrl, quick, leaveOut, newStore } = bench
  const { path: node, version } = runtimes.judged
  const redis = await bench.redis()
  if (!redis)
    leaveOut('BullMQ: no redis-server or valkey-server found (on Debian: apt-get install redis-server)')
  let databases = 0
  const newDatabase = () => newStore('postgres', `durable_${++databases}`)

  const servers = { postgres: await bench.postgres(), redis }
  const ours = (engine, handlers, name) => ({
    id: `${engine}${handlers === 'none' ? '' : '-handled'}`,
    name,
    file: 'marketplace',
    node,
    database: servers[engine],
    path: `/x/${SECRET}`,
    prepare: async () => ({
      store: await newStore(engine, `durable_${++databases}`),
      platformUrl,
      front: 'express',
      handlers,
    }),
  })
  const peer = (id, name, file, database, prepare) => ({ id, name, file, node, database, prepare })
  const queues = (hasHandlers) => {
    const suffix = hasHandlers ? '-handled' : ''
    const words = hasHandlers ? ', handlers at work' : ''
    return [
      ours('sqlite', hasHandlers ? 'at-once' : 'none', `marketplace-webhooks on SQLite${words}`),
      ours('postgres', hasHandlers ? 'at-once' : 'none', `marketplace-webhooks on PostgreSQL${words}`),
      ...(redis
        ? [
            peer(`bullmq${suffix}`, `BullMQ, Redis appendfsync always${words}`, 'bullmq', redis, (round) => ({
              port: redis.port,
              queue: `deliveries-${hasHandlers}-${round}`,
              hasHandlers,
            })),
          ]
        : []),
      peer(`pg-boss${suffix}`, `pg-boss${words}`, 'pg-boss', servers.postgres, async () => ({
        url: await newDatabase(),
        hasHandlers,
      })),
      peer(
        `graphile-worker${suffix}`,
        `graphile-worker${words}`,
        'graphile-worker',
        servers.postgres,
        async () => ({
          url: await newDatabase(),
          hasHandlers,
        }),
      ),
    ]
  }
  const compared = [
    ...queues(false),
    peer(
      'insert-sqlite',
      'insert per request, SQLite synchronous=FULL',
      'insert-sqlite',
      undefined,
      (round) => ({
        path: join(folder, `insert-${round}.db`),
      }),
    ),
    peer(
      'insert-postgres',
      'insert per request, PostgreSQL',
      'insert-postgres',
      servers.postgres,
      async () => ({
        url: await newDatabase(),
      }),
    ),
    // Left out of a quick run, which would take a minute longer.
    ...(quick ? [] : queues(true)),
  ]
  const rounds = quick ? 1 : 5
  const seconds = quick ? 0.6 : 4
  const rows = await compareReceiving({ servers: compared, rounds, seconds, bench, body: BODY })
  return {
    title: 'Durable before the reply',
    about: `All in Express 5 on Node ${version}, the load of "Receiving", ${rounds} rounds of ${seconds} s. "With the database": with all processes of PostgreSQL or Redis. Deliveries are still handled while the next ones arrive.`,
    columns: [...RECEIVING_COLUMNS, { id: 'ratio', name: '× marketplace-webhooks on SQLite', digits: 2 }],
    rows: withRatios(rows, 'perSecond', () => 'sqlite'),
  }
}
