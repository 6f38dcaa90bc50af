import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { businessOf, notice, PURCHASABLE_UID, SECRET, subscriptionOf } from './deliveries.mjs'
import { serve, settings } from './serve.mjs'

const MADE_UP = 'made-up'

/**
 * The platform: any business gets a token, which is its own name, and every subscription that it reads belongs to it
 * and is purchased. Of names with `made-up` it knows nothing: a business has a token only with `-token`, and it has no subscriptions; nor does it know a subscription of such a name.
 * The platform answers at once, or after `settings.pauseMs`.
 */
const { pauseMs = 0 } = settings
const reads = new Map()
const suspended = new Set()
const changedAt = new Map()
let readCount = 0

function listener(req, res) {
  const url = new URL(req.url, 'http://platform')
  req.resume()
  const isToken = url.pathname === '/oauth/token'
  if (!isToken) {
    const uid = url.searchParams.get('filter[uid]')
    readCount++
    if (reads.size < 1_000 || reads.has(uid)) reads.set(uid, (reads.get(uid) ?? 0) + 1)
  }
  const business = isToken
    ? url.searchParams.get('business_uid')
    : req.headers.authorization.slice('Bearer '.length)
  const uid = url.searchParams.get('filter[uid]') ?? ''
  const isMadeUp = business.startsWith(MADE_UP)
  if (isToken && isMadeUp && !business.endsWith('-token')) res.statusCode = 403
  const records = isMadeUp || uid.startsWith(MADE_UP) ? [] : [record(uid, business)]
  const reply = JSON.stringify(isToken ? { access_token: business } : { data: { subscriptions: records } })
  const send = () => res.setHeader('Content-Type', 'application/json').end(reply)
  if (pauseMs === 0) send()
  else setTimeout(send, pauseMs)
}

function record(uid, business) {
  return {
    uid,
    purchasable_uid: PURCHASABLE_UID,
    buyer_uid: '16fd2706-8baf-433b-82eb-8c7fada847da',
    business_uid: business,
    purchase_currency: 'USD',
    purchase_price: '9.99',
    purchase_state: suspended.has(uid) ? 'suspended' : 'purchased',
    cancellation_date: null,
    expiration_date: null,
    // Every read shows a change, so it settles the event that requested it.
    updated_at: changedAt.get(uid) ?? new Date().toISOString(),
    created_at: '2026-01-31T10:00:00.000Z',
    payment_type: 'monthly',
  }
}

/** One of this many changes is watched. */
const WATCHED = 25
const TICK_MS = 10

/**
 * Changes subscriptions 1 to `count`, `perSecond` of them, and delivers each change to the next of `ports`. Resolves
 * with `[{ atMs, lagMs }]` of the watched changes: how long after the change the last of all instances answered
 * accordingly.
 */
async function change({ ports, count, perSecond, seconds }) {
  const lags = []
  const open = new Set()
  const begunAt = performance.now()
  for (let made = 0; made < perSecond * seconds; ) {
    const due = Math.min(perSecond * seconds, ((performance.now() - begunAt) / 1_000) * perSecond)
    for (; made < due; made++) {
      const work = changeOne(
        1 + (made % count),
        ports[made % ports.length],
        made % WATCHED === 0 ? ports : [],
      )
      const done = work.then((lag) => {
        if (lag !== undefined) lags.push({ atMs: lag.atMs - begunAt, lagMs: lag.lagMs })
        open.delete(done)
      })
      open.add(done)
    }
    await new Promise((resolve) => setTimeout(resolve, TICK_MS))
  }
  await Promise.all(open)
  return lags
}

/** Changes the state of a subscription, and returns whether its business is entitled now. */
function toggle(uid) {
  const entitled = suspended.has(uid)
  if (entitled) suspended.delete(uid)
  else suspended.add(uid)
  changedAt.set(uid, new Date().toISOString())
  return entitled
}

async function changeOne(number, port, watchers) {
  const entitled = toggle(subscriptionOf(number))
  const atMs = performance.now()
  const watch = (watcher) =>
    ask(watcher, `/watch?business_uid=${businessOf(number)}&entitled=${entitled}`, { agent: watches })
  const body = JSON.stringify(notice('update', number))
  await Promise.all([
    ask(port, `/x/${SECRET}`, { method: 'POST', body, agent: deliveries }),
    ...watchers.map(watch),
  ])
  return watchers.length > 0 ? { atMs, lagMs: performance.now() - atMs } : undefined
}

/** The time between two questions of a visitor, and how long one asks: a change that is not seen by then counts as that long. */
const PAGE_EVERY_MS = 20
const LONGEST_MS = 10_000

/**
 * Changes subscriptions 1 to `count` one after the other, one each `everyMs`, and delivers each change. Meanwhile a visitor asks for the
 * page of its business until it shows the change and its handlers were called. Resolves with lists of milliseconds: `delivered` until
 * the reply, `decided` until the first page with the new answer was asked for, `changed` and `handled` until the handlers
 * were called, and `page` of each page.
 */
async function changeInTurn({ port, count, seconds, everyMs }) {
  const seen = {
    changes: 0,
    refused: 0,
    times: { delivered: [], decided: [], changed: [], handled: [], page: [] },
  }
  const begunAt = performance.now()
  while (performance.now() - begunAt < seconds * 1_000) {
    const next = new Promise((resolve) => setTimeout(resolve, everyMs))
    await changeAndWatch(1 + (seen.changes++ % count), port, seen)
    await next
  }
  return seen
}

async function changeAndWatch(number, port, seen) {
  const { times } = seen
  const entitled = toggle(subscriptionOf(number))
  const sentAt = now()
  const body = JSON.stringify(notice('update', number))
  const delivered = ask(port, `/x/${SECRET}`, { method: 'POST', body, agent: deliveries }).then((reply) => {
    times.delivered.push(now() - sentAt)
    if (reply.status !== 200) seen.refused++
  })
  const page = `/page?business_uid=${businessOf(number)}`
  let decidedAt
  let shown = {}
  const isSeen = () => decidedAt && shown.changedAt >= sentAt && shown.handledAt >= sentAt
  while (!isSeen() && now() - sentAt < LONGEST_MS) {
    const askedAt = now()
    shown = JSON.parse((await ask(port, page, { agent: watches })).text)
    times.page.push(now() - askedAt)
    if (shown.entitled === entitled) decidedAt ??= askedAt
    await new Promise((resolve) => setTimeout(resolve, PAGE_EVERY_MS))
  }
  const until = (at) => (at >= sentAt ? at - sentAt : LONGEST_MS)
  times.decided.push(until(decidedAt))
  times.changed.push(until(shown.changedAt))
  times.handled.push(until(shown.handledAt))
  await delivered
}

/** In ms, the same for all processes of a machine. */
const now = () => Number(process.hrtime.bigint()) / 1e6

/** Bounded: on a slow machine many changes are under way at once, and each needs a connection to each instance. */
const deliveries = new Agent({ keepAlive: true, maxSockets: 64 })
const watches = new Agent({ keepAlive: true, maxSockets: 256 })

/** Resolves with the whole reply. */
async function ask(port, path, { method = 'GET', body, agent }) {
  const res = await new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, method, agent }, resolve).on('error', reject).end(body)
  })
  return { status: res.statusCode, text: await text(res) }
}

serve(listener, {
  change,
  changeInTurn,
  reads: () => readCount,
  readsOf: (uid) => reads.get(uid) ?? 0,
  forget() {
    reads.clear()
    readCount = 0
  },
})
