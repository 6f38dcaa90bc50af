import { statSync } from 'node:fs'
import { ENGINES } from '../harness/databases.mjs'
import { inRounds } from '../harness/statistics.mjs'
import { businessOf, install, notice, SECRET } from '../servers/deliveries.mjs'

const KNOWN = 20
/** A cycle over all known customers takes 6 s, because a subscription is read once in 5 s at most. */
const EVERY_MS = 300
const PER_SECOND = 5_000

/** What a sender with the delivery secret makes up, and how many of a thousand deliveries are of each kind. */
const MADE_UP = [
  { share: 300, envelopes: made(notice('create')) },
  ...Array.from({ length: KNOWN }, (_, i) => ({
    share: 100 / KNOWN,
    envelopes: made(notice('create'), undefined, businessOf(i + 1)),
  })),
  { share: 300, envelopes: install('installed', madeUp()) },
  { share: 280, envelopes: { entity_name: 'order', event_type: 'placed', data: { order_id: madeUp() } } },
  { share: 10, envelopes: Array.from({ length: 1_000 }, () => 1) },
  { share: 10, envelopes: Array.from({ length: 100 }, (_, i) => made(notice('create'), i)) },
]

/** What the store keeps of the flood, if it is soon full. */
const FEW = {
  event: { rows: 5_000, bytes: 10_000_000 },
  known: { rows: 5_000, bytes: 10_000_000 },
  unrecognised: { rows: 500, bytes: 1_000_000 },
  subscriptions: 5_000,
}
const KINDS = [
  { id: 'quiet', name: 'no flood' },
  { id: 'flood', name: 'flood', perSecond: PER_SECOND },
  { id: 'full', name: 'flood into a store that keeps 5,000 of it', perSecond: PER_SECOND, most: FEW },
  { id: 'slow', name: 'flood, reads take 100 ms, handlers 20 ms', perSecond: PER_SECOND, isSlow: true },
]

/** Measures what 20 known customers notice of 5,000 deliveries a second that somebody makes up. */
export async function flood(bench) {
  const { quick, note, start, cores } = bench
  const rounds = quick ? 1 : 3
  const slow = await start('platform', { pauseMs: 50 }, { cores: cores?.load })
  const items = Object.entries(ENGINES).flatMap(([engine, name]) =>
    KINDS.map((kind) => ({ ...kind, id: `${engine}/${kind.id}`, name: `${name}, ${kind.name}`, engine })),
  )
  try {
    const at = await start('platform', {}, { cores: cores?.load })
    try {
      const rows = await inRounds({
        items,
        rounds,
        note,
        measure: (item, round) => measure(bench, item, round, item.isSlow ? slow : at),
      })
      return report(rows, rounds)
    } finally {
      await at.stop()
    }
  } finally {
    await slow.stop()
  }
}

function report(rows, rounds) {
  const times = (id, name) => [
    { id: `${id}P50Ms`, name: `${name}, p50 ms`, digits: 0 },
    { id: `${id}P99Ms`, name: `p99 ms`, digits: 0 },
  ]
  return {
    title: 'A flood of made-up deliveries',
    about: `${KNOWN} customers who were read before change one after the other, one each ${EVERY_MS} ms; a visitor asks for the page of the customer until it shows the change and both handlers were called. Meanwhile somebody with the delivery secret sends ${PER_SECOND.toLocaleString('en')} deliveries a second, whether or not the replies come: notices of subscriptions, a quarter of them of the known customers' businesses, installs of businesses and unrecognised bodies, one of a hundred an array of 1,000 numbers and one an array of 100 notices. Default options in Express 5; ${rounds} rounds, each with an empty store. *Taken* and *refused* are the replies 200 and 503 to the flood.`,
    columns: [
      ...times('delivered', 'delivery to its reply'),
      ...times('decided', 'to the new answer'),
      ...times('changed', 'to the handler of the change'),
      ...times('handled', 'to the handler of the event'),
      ...times('page', 'a page'),
      { id: 'changes', name: 'changes', digits: 0 },
      { id: 'refused', name: 'of them refused', digits: 0 },
      { id: 'takenPerSecond', name: 'flood, taken a second', digits: 0 },
      { id: 'refusedPerSecond', name: 'refused a second', digits: 0 },
      { id: 'gapMs', name: 'longest gap of the event loop, ms', digits: 0 },
      { id: 'entries', name: 'entries stored', digits: 0 },
      { id: 'subscriptions', name: 'subscriptions stored', digits: 0 },
      { id: 'megabytes', name: 'database, MB', digits: 0 },
    ],
    rows,
  }
}

async function measure(bench, { id, engine, perSecond, most, isSlow = false }, round, platform) {
  const { quick, start, load, newStore } = bench
  const store = await newStore(engine, `${id.replace('/', '_')}_${round}`)
  const platformUrl = `http://127.0.0.1:${platform.ready.port}`
  const app = await start('known', { store, platformUrl, most, handlerMs: isSlow ? 20 : 0, watchLoop: true })
  const seconds = quick ? 6 : 40
  try {
    await app.ask('know', KNOWN)
    const { port } = app.ready
    const flooding =
      perSecond &&
      load.flood({ port, path: `/x/${SECRET}`, perSecond, seconds: seconds + 3, bodies: bodies() })
    // Errors are noticed at the end.
    flooding?.catch(() => {})
    if (flooding) await new Promise((resolve) => setTimeout(resolve, 2_000))
    await app.ask('gap')
    const seen = await platform.ask('changeInTurn', { port, count: KNOWN, seconds, everyMs: EVERY_MS })
    const gapMs = await app.ask('gap')
    const flooded = await flooding
    return {
      ...percentiles(seen),
      changes: seen.changes,
      refused: seen.refused,
      ...(flooded && {
        takenPerSecond: flooded.taken / flooded.seconds,
        refusedPerSecond: flooded.refused / flooded.seconds,
      }),
      gapMs,
      ...(await app.ask('rows')),
      megabytes: (await bytesOf(bench, store)) / 1e6,
    }
  } finally {
    await app.stop()
  }
}

function percentiles({ times }) {
  const of = (values, share) => [...values].sort((a, b) => a - b)[Math.floor(values.length * share)]
  return Object.fromEntries(
    Object.entries(times).flatMap(([name, values]) => [
      [`${name}P50Ms`, of(values, 0.5)],
      [`${name}P99Ms`, of(values, 0.99)],
    ]),
  )
}

async function bytesOf({ postgres }, store) {
  if (store.startsWith('sqlite:')) return statSync(store.slice('sqlite:'.length)).size
  const name = new URL(store).pathname.slice(1)
  return Number((await (await postgres()).sql(`select pg_database_size('${name}') as bytes`))[0].bytes)
}

/** A thousand bodies in the order in which they are sent, the kinds spread evenly. */
function bodies() {
  const left = MADE_UP.map(({ share, envelopes }) => ({ share, sent: 0, body: JSON.stringify(envelopes) }))
  return Array.from({ length: 1_000 }, (_, i) => {
    const next = left.reduce((a, b) =>
      b.share * (i + 1) - b.sent * 1_000 > a.share * (i + 1) - a.sent * 1_000 ? b : a,
    )
    next.sent++
    return next.body
  })
}

/** A name that differs from delivery to delivery. */
function madeUp(end = '') {
  return `made-up-0000000${end}`
}

/** The envelope with made-up names. Those of an array differ by `i`, and the platform knows their businesses. */
function made({ data, ...envelope }, i, business_id = madeUp(i === undefined ? '' : `-${i}-token`)) {
  const subscription = data.subscription_uid && { subscription_uid: madeUp(`-${i ?? ''}`) }
  return { ...envelope, data: { ...data, business_id, ...subscription } }
}
