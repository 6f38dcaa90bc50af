import { createServer } from 'node:http'

/** The settings from the parent process. */
export const settings = JSON.parse(process.argv[2] ?? '{}')

/**
 * Answers the parent's questions, one at a time, and ends when the parent disconnects. The first message is `ready`.
 * Every process answers `cpu`: µs of CPU time used so far by all threads; `gap`: the longest time in ms for which the
 * event loop was blocked since the last question (only with `settings.watchLoop`); and `memory` in MB.
 */
export function answer(answers, close, ready = {}) {
  const longestGap = settings.watchLoop ? watchLoop() : () => Number.NaN
  const all = { cpu, memory, gap: longestGap, ...answers }
  process.on('message', async ({ question, args }) => {
    try {
      process.send({ answer: await all[question](...args) })
    } catch (error) {
      process.send({ error: String(error?.stack ?? error) })
    }
  })
  process.on('disconnect', async () => {
    setTimeout(() => process.exit(), 10_000).unref()
    await close()
    process.exit()
  })
  process.send({ answer: ready })
}

/** Serves HTTP on a free port of the loopback address; `ready` contains the port. */
export function serve(listener, answers = {}, close = () => {}, ready = {}) {
  const server = createServer(listener)
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1', () => {
    answer(answers, closeAll, { ...ready, port: server.address().port })
  })
  function closeAll() {
    server.close()
    server.closeAllConnections()
    return close()
  }
}

/** Mounts the router below `/x` without a framework, as Express does. */
export function mountedAtX(router) {
  return (req, res) => {
    if (!req.url.startsWith('/x/')) return res.writeHead(404).end()
    req.url = req.url.slice(2)
    router(req, res)
  }
}

function cpu() {
  const { user, system } = process.cpuUsage()
  return user + system
}

function memory() {
  globalThis.gc?.()
  const { rss, heapUsed } = process.memoryUsage()
  return { rss: rss / 1e6, heap: heapUsed / 1e6 }
}

/** Measures the greatest delay of a timer of 1 ms. */
function watchLoop() {
  let last = performance.now()
  let longest = 0
  setInterval(() => {
    const now = performance.now()
    longest = Math.max(longest, now - last - 1)
    last = now
  }, 1).unref()
  return () => {
    const gap = longest
    longest = 0
    last = performance.now()
    return gap
  }
}
