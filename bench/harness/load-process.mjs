import { connect } from 'node:net'
import { answer } from '../servers/serve.mjs'

/** Of 10 µs each, up to 10 s. */
const BUCKETS = 1_000_000
const BUCKETS_PER_MS = 100
/** A prime, so its multiples visit every number below `spread`. */
const STEP = 7_919
const PLACE = Buffer.from('0000000')
/** The last number that was sent to each port: the next call goes on after it, so that together they visit all. */
const numbers = new Map()

/**
 * Posts on raw sockets, because on a small machine the sender takes its CPU time from the server that it measures. The
 * general load generators of npm took 40 to 80 µs of CPU time for a request, this one takes 8 to 12.
 */
async function post(options) {
  const { connections, durationMs, perSecond, count = Number.POSITIVE_INFINITY } = options
  const latencies = new Uint32Array(BUCKETS)
  const run = { begun: 0, refused: 0, firstRefusal: '', requests: 0 }
  const cpuBefore = process.cpuUsage()
  const start = performance.now()
  const end = durationMs === undefined ? Number.POSITIVE_INFINITY : start + durationMs
  await Promise.all(
    Array.from({ length: connections }, () =>
      converse(options, run, latencies, { start, end, count, perSecond }),
    ),
  )
  const seconds = (performance.now() - start) / 1_000
  const { user, system } = process.cpuUsage(cpuBefore)
  return {
    requests: run.requests,
    requestsPerSecond: run.requests / seconds,
    p50Ms: percentile(latencies, run.requests, 0.5),
    p99Ms: percentile(latencies, run.requests, 0.99),
    loadCpu: (user + system) / 1e6 / seconds,
    refused: run.refused,
    firstRefusal: run.firstRefusal,
  }
}

/** Sends on one connection, one request at a time, until the time has passed or all are sent. */
function converse({ port, spread, ...options }, run, latencies, { start, end, count, perSecond }) {
  const request = requestOf(port, options)
  const places = spread > 0 ? placesIn(request) : []
  return new Promise((resolve, reject) => {
    let sentAt = 0
    /** The length of the last whole reply. The next reply most likely has the same length. */
    let usual = -1
    let partial = ''
    let isOver = false
    const socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: { buffer: Buffer.allocUnsafe(65_536), callback: receive },
    })
    socket.once('connect', send)
    socket.once('error', reject)
    socket.once('close', () => (isOver ? resolve() : reject(new Error('the server closed the connection'))))

    function send() {
      sentAt = performance.now()
      if (sentAt >= end || run.begun >= count) {
        isOver = true
        socket.destroy()
        return
      }
      const dueAt = perSecond === undefined ? sentAt : start + (run.begun / perSecond) * 1_000
      if (dueAt > sentAt) return void setTimeout(send, dueAt - sentAt)
      run.begun++
      if (places.length > 0) {
        const number = ((numbers.get(port) ?? 0) + STEP) % spread
        numbers.set(port, number)
        for (const place of places) writeNumber(request, place, number)
      }
      socket.write(request)
    }

    function receive(length, buffer) {
      if (partial === '' && length === usual && isOk(buffer)) return done()
      partial += buffer.latin1Slice(0, length)
      const bodyAt = partial.indexOf('\r\n\r\n') + 4
      if (bodyAt < 4) return true
      const bodyLength = /\r\ncontent-length: (\d+)/i.exec(partial)?.[1]
      if (bodyLength === undefined) socket.destroy(new Error('a reply has no Content-Length'))
      if (partial.length < bodyAt + Number(bodyLength)) return true
      if (partial.startsWith('HTTP/1.1 2')) usual = partial.length
      else {
        run.refused++
        run.firstRefusal ||= partial
      }
      partial = ''
      return done()
    }

    function done() {
      run.requests++
      latencies[Math.min(BUCKETS - 1, Math.floor((performance.now() - sentAt) * BUCKETS_PER_MS))]++
      send()
      return true
    }
  })
}

/** More than an app has time for, so those that wait are in the server. */
const FLOODING_CONNECTIONS = 1_000
const TICK_MS = 2
const OPENED_AT_ONCE = 50
const OPENING_MS = 20

/**
 * Sends `perSecond` deliveries a second, the bodies in turn and each with a number of its own, whether or not the replies come.
 * While every connection waits for a reply, nothing can be sent; what was due meanwhile is left out.
 */
async function flood({ port, path, bodies, perSecond, seconds }) {
  const requests = new Map(
    [...new Set(bodies)].map((body) => {
      const request = requestOf(port, { path, headers: {}, body })
      return [body, { request, places: placesIn(request) }]
    }),
  )
  const counts = { sent: 0, leftOut: 0, taken: 0, refused: 0, others: 0, lost: 0 }
  const free = []
  const all = new Set()
  const open = () => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    let reply = ''
    all.add(socket)
    socket.once('connect', () => free.push(socket))
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      reply += chunk.latin1Slice()
      const bodyAt = reply.indexOf('\r\n\r\n') + 4
      const bodyLength = Number(/\r\ncontent-length: (\d+)/i.exec(reply)?.[1])
      if (bodyAt < 4 || reply.length < bodyAt + bodyLength) return
      counts[
        reply.startsWith('HTTP/1.1 200') ? 'taken' : reply.startsWith('HTTP/1.1 503') ? 'refused' : 'others'
      ]++
      reply = ''
      free.push(socket)
    })
    socket.once('close', () => {
      all.delete(socket)
      if (isOver) return
      counts.lost++
      setTimeout(open, 100)
    })
  }
  let isOver = false
  // A server has a short queue of new connections, and a second passes before one that did not fit is tried again.
  while (all.size < FLOODING_CONNECTIONS) {
    for (let i = 0; i < OPENED_AT_ONCE; i++) open()
    await new Promise((resolve) => setTimeout(resolve, OPENING_MS))
  }
  const start = performance.now()
  for (let due = 0; performance.now() - start < seconds * 1_000; ) {
    for (const until = ((performance.now() - start) / 1_000) * perSecond; due < until; due++) {
      const socket = nextOf(free)
      if (!socket) {
        counts.leftOut++
        continue
      }
      const { request, places } = requests.get(bodies[due % bodies.length])
      for (const place of places) writeNumber(request, place, due)
      socket.write(Buffer.from(request))
      counts.sent++
    }
    await new Promise((resolve) => setTimeout(resolve, TICK_MS))
  }
  isOver = true
  for (const socket of all) socket.destroy()
  return { ...counts, seconds: (performance.now() - start) / 1_000 }
}

/** A connection that is still open. */
function nextOf(free) {
  for (;;) {
    const socket = free.shift()
    if (!socket || socket.writable) return socket
  }
}

/** `HTTP/1.1 2…` */
function isOk(buffer) {
  return buffer[9] === 0x32
}

function requestOf(port, { path, headers, body }) {
  const lines = Object.entries({
    Host: `127.0.0.1:${port}`,
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
}

function placesIn(request) {
  const places = []
  for (let at = request.indexOf(PLACE); at >= 0; at = request.indexOf(PLACE, at + PLACE.length))
    places.push(at)
  return places
}

function writeNumber(request, place, number) {
  let rest = number
  for (let i = place + PLACE.length - 1; i >= place; i--) {
    request[i] = 0x30 + (rest % 10)
    rest = Math.floor(rest / 10)
  }
}

function percentile(latencies, count, share) {
  let seen = 0
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    seen += latencies[bucket]
    if (seen > count * share) return bucket / BUCKETS_PER_MS
  }
  return Number.NaN
}

answer({ post, flood }, () => {})
