/**
 * Starts the app of `app.ts` with settings from the environment, as in production, and registers its webhooks. Run by the
 * demo, it reports to it by messages.
 */
import type { AddressInfo } from 'node:net'
import { appToken, optionsFromEnvironment } from '../lib/index.js'
import { createReportsApp } from './app.js'

const { PORT = '0', APP_TOKEN = '' } = process.env

/** The events that the gate needs. `purchasable_subscription/updated` would only announce the same changes again. */
const EVENTS = [
  'purchasable_subscription/create',
  'purchasable_subscription/update',
  'application/installed',
  'application/uninstalled',
] as const

const { app, marketplace } = createReportsApp(
  {
    ...optionsFromEnvironment(process.env),
    // A short lease, so that the restarted app takes over the work of the killed one after two seconds, not a minute.
    // Only the demo needs this, so it is no option.
    ...{
      [Symbol.for('marketplace-webhooks internals')]: { leaseMs: 2_000, pollMs: 250, callTimeoutMs: 5_000 },
    },
  },
  (activity) => process.send?.(activity),
  // Only this machine reaches the demo. A real app takes the person from its session.
  () => ({ name: 'you', role: 'operator' }),
)

const server = app.listen(Number(PORT), '127.0.0.1', begin)

async function begin(error?: Error) {
  if (error) throw error
  const { port } = server.address() as AddressInfo
  await marketplace.start()
  const targetUrl = marketplace.webhooks.targetUrl(`http://127.0.0.1:${port}/webhooks/marketplace`)
  // Registering again is a success, so every start may do it.
  const token = appToken(APP_TOKEN)
  await Promise.all(EVENTS.map((event) => marketplace.webhooks.register({ event, targetUrl, token }))).catch(
    (error) => console.error(error.message),
  )
  process.send?.({ kind: 'ready', port })
}

async function end() {
  // First the server: requests under way still need the marketplace. They get two seconds at most.
  server.prependListener('request', (_req, res) => res.setHeader('Connection', 'close'))
  const ending = setInterval(() => server.closeIdleConnections(), 100)
  await new Promise((resolve) => {
    server.close(resolve)
    setTimeout(resolve, 2_000).unref()
  })
  clearInterval(ending)
  server.closeAllConnections()
  await marketplace.close()
  if (process.connected) process.disconnect()
}

process.once('SIGTERM', end)
// The demo has ended.
process.once('disconnect', end)
// Ctrl-C reaches every process of the terminal. This one waits until the demo ends it.
process.on('SIGINT', () => {})
