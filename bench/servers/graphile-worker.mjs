import express from 'express'
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import pg from 'pg'
import { serve, settings } from './serve.mjs'

/** Settings: `url`, `hasHandlers`. */
const pool = new pg.Pool({ connectionString: settings.url, max: 10 })
pool.on('error', () => {})
const logger = new Logger(() => () => {})
const utils = await makeWorkerUtils({ pgPool: pool, logger })
await utils.migrate()
let handled = 0
const runner =
  settings.hasHandlers &&
  (await run({
    pgPool: pool,
    logger,
    concurrency: 8,
    noHandleSignals: true,
    taskList: {
      async delivery() {
        handled++
      },
    },
  }))

const app = express()
app.post('/x', express.json(), async (req, res) => {
  const { id } = await utils.addJob('delivery', req.body)
  res.json({ received: true, id })
})

serve(app, { handled: () => handled }, async () => {
  if (runner) await runner.stop()
  await utils.release()
  await pool.end()
})
