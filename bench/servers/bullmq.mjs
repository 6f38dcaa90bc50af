import { Queue, Worker } from 'bullmq'
import express from 'express'
import { serve, settings } from './serve.mjs'

/** BullMQ on a Redis that syncs before each reply. Settings: `port`, `hasHandlers`. */
const connection = { host: '127.0.0.1', port: settings.port, maxRetriesPerRequest: null }
const queue = new Queue(settings.queue, { connection, defaultJobOptions: { removeOnComplete: true } })
await queue.waitUntilReady()
let handled = 0
const worker =
  settings.hasHandlers &&
  new Worker(
    settings.queue,
    async () => {
      handled++
    },
    { connection, concurrency: 8 },
  )

const app = express()
app.post('/x', express.json(), async (req, res) => {
  const { id } = await queue.add('delivery', req.body)
  res.json({ received: true, id })
})

serve(app, { handled: () => handled }, async () => {
  await worker?.close?.(true)
  await queue.close()
})
