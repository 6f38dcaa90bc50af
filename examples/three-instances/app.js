import express from 'express'
import { createMarketplace, optionsFromEnvironment } from 'marketplace-webhooks'

const marketplace = createMarketplace(optionsFromEnvironment(process.env))
marketplace.onPurchaseChange(async ({ business_uid, to }) => {
  process.send?.({ handled: `${business_uid} ${to}` })
})

let isLeaving = false
const app = express()
app.use((_req, res, next) => {
  // A connection that a client keeps open would keep the process alive.
  if (isLeaving) res.set('Connection', 'close')
  next()
})
app.use('/webhooks/marketplace', marketplace.router)
app.get('/readyz', async (_req, res) => {
  const { ready } = await marketplace.readiness()
  res.sendStatus(ready && !isLeaving ? 200 : 503)
})
// Only for this example: anybody can send this header. A real app takes the business from its session.
const paid = marketplace.requireEntitlement({ businessUid: (req) => req.get('x-business') })
app.get('/reports', paid, (_req, res) => void res.json({ visitors: 42, instance: process.pid }))

const server = app.listen(0, '127.0.0.1', () => process.send?.({ port: server.address().port }))

process.once('SIGTERM', async () => {
  // The load balancer must notice that the instance is not ready before the server closes.
  isLeaving = true
  await new Promise((resolve) => setTimeout(resolve, Number(process.env.LEAVING_MS ?? 1_000)))
  // First the server: requests under way still need the marketplace. They get ten seconds at most.
  const ending = setInterval(() => server.closeIdleConnections(), 100)
  await new Promise((resolve) => {
    server.close(resolve)
    setTimeout(resolve, 10_000).unref()
  })
  clearInterval(ending)
  server.closeAllConnections()
  await marketplace.close()
  process.disconnect?.()
})
