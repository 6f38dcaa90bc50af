import express from 'express'
import { PgBoss } from 'pg-boss'
import { serve, settings } from './serve.mjs'

/** Settings: `url`, `hasHandlers`. */
const boss = new PgBoss({ connectionString: settings.url, max: 10 })
boss.on('error', (error) => console.error(error))
await boss.start()
await boss.createQueue('deliveries')
let handled = 0
if (settings.hasHandlers) {
  await boss.work('deliveries', { batchSize: 100, pollingIntervalSeconds: 0.5 }, async (jobs) => {
    handled += jobs.length
  })
}

const app = express()
app.post('/x', express.json(), async (req, res) => {
  const id = await boss.send('deliveries', req.body)
  res.json({ received: true, id })
})

serve(app, { handled: () => handled }, () => boss.stop({ graceful: false, close: true }))
