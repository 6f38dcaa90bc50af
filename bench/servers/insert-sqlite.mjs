import { randomUUID } from 'node:crypto'
import express from 'express'
import { serve, settings } from './serve.mjs'
import { openSqlite } from './sqlite.mjs'

/** The usual hand-written receiver: one insert for each request, on disk before the reply. */
const database = await openSqlite(settings.path)
database.exec('pragma journal_mode = wal; pragma synchronous = full')
database.exec(
  'create table deliveries (id text primary key, received_at integer not null, payload text not null)',
)
const insert = database.prepare('insert into deliveries values (?, ?, ?)')

const app = express()
app.post('/x', express.json(), (req, res) => {
  const id = randomUUID()
  insert.run(id, Date.now(), JSON.stringify(req.body))
  res.json({ received: true, id })
})

serve(app, {}, () => database.close(), { driver: database.name })
