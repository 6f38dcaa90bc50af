import { createServer } from 'node:http'

/**
 * Listens on a free port of the loopback address, tells it to the parent, and answers its questions: `cpu` (µs used so
 * far) and those of `answers`. Ends when the parent lets go.
 */
export function serve(app, answers = {}, close = () => {}) {
  const server = createServer(app)
  server.keepAliveTimeout = 60_000
  const all = {
    cpu() {
      const { user, system } = process.cpuUsage()
      return user + system
    },
    ...answers,
  }
  server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }))
  process.on('message', async (question) => process.send(await all[question]()))
  process.on('disconnect', async () => {
    server.close()
    server.closeAllConnections()
    await close()
    process.exit()
  })
}
