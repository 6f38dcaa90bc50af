import express from 'express'
import { serve } from './serve.mjs'

/** The minimum that an app can do with a webhook: parse it, reply, store nothing. */
const app = express()
app.post('/x', express.json(), (_req, res) => {
  res.json({ received: true })
})

serve(app)
