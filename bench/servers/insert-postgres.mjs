import { randomUUID } from 'node:crypto'
import express from 'express'
import pg from 'pg'
import { serve, settings } from './serve.mjs'

/** The usual hand-written receiver: one insert for each request, over a pool of 10 connections. */
const pool = new pg.Pool({ connectionString: settings.url, max: 10 })
await pool.query(
  'create table deliveries (id uuid primary key, received_at timestamptz not null default now(), payload jsonb not null)',
)
const insert = { name: 'insert', text: 'insert into deliveries (id, payload) values ($1, $2)' }

const app = express()
app.post('/x', express.json(), async (req, res) => {
  const id = randomUUID()
  await pool.query({ ...insert, values: [id, JSON.stringify(req.body)] })
  res.json({ received: true, id })
})

serve(app, {}, () => pool.end())
