/** The app as a process of its own, so that the demo can kill it. Settings come from the environment, as in production. */
import type { AddressInfo } from 'node:net'
import { appToken } from '../lib/index.js'
import { createReportsApp } from './app.js'

const { PORT = '0', CLIENT_ID, CLIENT_SECRET, PURCHASABLE_UID, CODE_NAME, BASE_URL, AUTH_URL } = process.env
const { APP_TOKEN, DELIVERY_SECRETS, STORE } = process.env

/** All that an app token may register, but `updated`: that one tells of the same changes once more. */
const EVENTS = [
  'purchasable_subscription/create',
  'purchasable_subscription/update',
  'application/installed',
  'application/uninstalled',
] as const

const { app, marketplace } = createReportsApp(
  {
    app: {
      clientId: CLIENT_ID ?? '',
      clientSecret: CLIENT_SECRET ?? '',
      purchasableUid: PURCHASABLE_UID,
      codeName: CODE_NAME,
    },
    platform: { baseUrl: BASE_URL ?? '', authUrl: AUTH_URL ?? '', timeoutMs: 5_000 },
    deliverySecrets: (DELIVERY_SECRETS ?? '').split(','),
    store: STORE,
    // Short, so that the demo need not wait a minute until the work of a killed process is taken over.
    worker: { leaseMs: 2_000, pollMs: 250 },
  },
  (activity) => process.send?.(activity),
)

const server = app.listen(Number(PORT), '127.0.0.1', begin)

async function begin(error?: Error) {
  if (error) throw error
  const { port } = server.address() as AddressInfo
  await marketplace.start()
  const targetUrl = marketplace.targetUrl(`http://127.0.0.1:${port}/webhooks/marketplace`)
  // Registering again is a success, so every start may do it.
  const token = appToken(APP_TOKEN ?? '')
  await Promise.all(EVENTS.map((event) => marketplace.registerWebhook({ event, targetUrl, token }))).catch(
    (error) => console.error(error.message),
  )
  process.send?.({ type: 'ready', port })
}

async function end() {
  server.close()
  server.closeIdleConnections()
  await marketplace.close()
  if (process.connected) process.disconnect()
}

process.once('SIGTERM', end)
// The demo is gone, however it went.
process.once('disconnect', end)
// Ctrl-C reaches every process of the terminal; the demo ends this one in its own time.
process.on('SIGINT', () => {})
