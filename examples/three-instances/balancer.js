import { createServer, request } from 'node:http'

const ASK_EVERY_MS = 100

/** Sends each request to the next instance whose /readyz answers 200. */
export async function createBalancer() {
  const instances = new Map()
  let turn = 0

  async function ask(port) {
    const isReady = await fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (instances.has(port)) instances.set(port, isReady)
  }
  const asking = setInterval(() => {
    for (const port of instances.keys()) ask(port)
  }, ASK_EVERY_MS)

  const server = createServer((req, res) => {
    const ready = [...instances.keys()].filter((port) => instances.get(port))
    const port = ready[turn++ % ready.length]
    if (port === undefined) return void res.writeHead(503).end()
    const { url: path, method, headers } = req
    const passedOn = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, (reply) => {
      res.writeHead(reply.statusCode, reply.headers)
      reply.pipe(res)
    })
    passedOn.on('error', () => (res.headersSent ? res.destroy() : res.writeHead(502).end()))
    req.pipe(passedOn)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))

  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** Resolves when the instance is ready. */
    async add(port) {
      instances.set(port, false)
      while (!instances.get(port)) await ask(port)
    },
    remove: (port) => instances.delete(port),
    close() {
      clearInterval(asking)
      server.close()
      server.closeAllConnections()
    },
  }
}
