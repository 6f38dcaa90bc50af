import { medianOf } from '../harness/statistics.mjs'
import { BODY, SECRET } from '../servers/deliveries.mjs'

const SLICES = 20

/** Measures whether memory stays constant while deliveries are received and handled. */
export async function memory({ platformUrl, load, quick, note, start, newStore }) {
  const count = quick ? 50_000 : 1_000_000
  const server = await start(
    'marketplace',
    { store: await newStore('sqlite', 'memory'), platformUrl, front: 'plain', handlers: 'at-once' },
    { flags: ['--expose-gc'] },
  )
  const samples = []
  try {
    for (let slice = 0; slice < SLICES; slice++) {
      if (slice % 5 === 0)
        note(`${((slice * count) / SLICES).toLocaleString('en')} of ${count.toLocaleString('en')} deliveries`)
      await load.post({ port: server.ready.port, path: `/x/${SECRET}`, body: BODY, count: count / SLICES })
      samples.push(await server.ask('memory'))
    }
  } finally {
    await server.stop()
  }
  const quarter = (number, what) => [
    medianOf(samples.slice(5 * (number - 1), 5 * number).map((sample) => sample[what])),
  ]
  const row = (id, name) => ({
    id,
    name,
    values: { first: quarter(1, id), second: quarter(2, id), third: quarter(3, id), last: quarter(4, id) },
  })
  return {
    title: 'Memory',
    about: `${count.toLocaleString('en')} deliveries of one subscription, handled at once, SQLite; after a garbage collection, ${SLICES} samples, medians of each quarter.`,
    columns: ['first', 'second', 'third', 'last'].map((id) => ({ id, name: `${id} quarter, MB`, digits: 1 })),
    rows: [row('rss', 'resident (RSS)'), row('heap', 'JavaScript heap')],
  }
}
