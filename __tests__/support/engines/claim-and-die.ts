import { systemClock } from '../../../lib/base/clock.js'
import type { SqliteDriverName } from '../../../lib/sqlite/drivers.js'
import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import { EVERY_EVENT } from '../../../lib/store/port/store.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import { claimOne } from '../conformance/lab.js'

/** Leases everything that is due in the given database, and is killed while it holds the leases. */
async function claimAndDie(path: string, driver: SqliteDriverName) {
  const store = createSqlStore(createSqliteEngine({ path, driver, clock: systemClock }))
  await store.open()
  const read = await claimOne(store, { leaseMs: 60_000, except: [], urgencies: [1, 2] })
  const topics = [EVERY_EVENT]
  const lanes = await store.claimLanes({ limit: 10, entryLimit: 10, leaseMs: 60_000, topics, exceptKeys: [] })
  if (read && lanes.length > 0) process.kill(process.pid, 'SIGKILL')
}

const [path, driver] = process.argv.slice(1) as [string, SqliteDriverName]
void claimAndDie(path, driver)
