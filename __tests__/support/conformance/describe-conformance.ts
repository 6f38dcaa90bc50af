import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, it } from '@jest/globals'
import { systemClock } from '../../../lib/base/clock.js'
import type { SqliteDriverName } from '../../../lib/sqlite/drivers.js'
import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import type { Store } from '../../../lib/store/port/store.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import { postgresStore, storeFor } from '../../../lib/store-option.js'
import { temporaryFolder } from '../clean-up.js'
import { type TestEngine, useEngine } from '../engines/engines.js'
import { DRIVERS } from '../engines/sqlite-drivers.js'
import { EVAL_TYPESCRIPT } from '../processes/processes.js'
import type { StoreConformanceOptions } from './lab.js'
import { storeConformance } from './store-conformance.js'

/**
 * Runs the suite on the stores of this machine: on a file and on PostgreSQL, with what only a store in memory can run
 * here. With `all`, every check on every store.
 */
export function describeConformance({ all }: { all: boolean }) {
  const [first] = DRIVERS as [SqliteDriverName]
  const stores: Record<string, StoreConformanceOptions> = {
    ...Object.fromEntries(DRIVERS.map((driver) => [`${driver} on a file`, onFiles(driver)])),
    ...Object.fromEntries(DRIVERS.map((driver) => [`${driver} in memory`, inMemory(driver)])),
    PostgreSQL: onPostgres(useEngine('PostgreSQL')),
  }
  const usual = [`${first} on a file`, 'PostgreSQL']
  const onFile = new Set(storeConformance(onFiles(first)).map(({ name }) => name))

  describe.each(Object.entries(stores))('the store on %s', (store, options) => {
    const isHere = (name: string) => all || usual.includes(store) || !onFile.has(name)
    for (const { name, run } of storeConformance(options)) {
      const mayEndTheProcess = store.startsWith('libsql') && BYTES.test(name)
      if (mayEndTheProcess) {
        if (store === 'libsql in memory') it(name, () => runApart(name))
      } else if (isHere(name)) it(name, run)
    }
  })
}

/**
 * libsql 0.5 aborts the process when it reads text that is not UTF-8, and SQLite makes such text from half a surrogate
 * pair in JSON. So these checks run in processes of their own.
 */
const BYTES = /half a surrogate pair|that cannot be stored|whatever characters/

/** Only `node:sqlite` can share a file with another process. */
function onFiles(driver: SqliteDriverName): StoreConformanceOptions {
  const { clock, advance } = movingClock()
  const paths = new WeakMap<Store, string>()
  const at = (path: string) => {
    const store = createSqlStore(createSqliteEngine({ path, clock, driver }))
    paths.set(store, path)
    return store
  }
  const again = (store: Store) => at(paths.get(store) as string)
  return {
    createStore: () => at(join(temporaryFolder(), 'm.db')),
    reopen: again,
    beside: driver === 'node:sqlite' ? again : undefined,
    advance,
  }
}

/** A store in memory is lost with its connection, so the two stores share the engine. */
function inMemory(driver: SqliteDriverName): StoreConformanceOptions {
  const { clock, advance } = movingClock()
  const engines = new WeakMap<Store, ReturnType<typeof createSqliteEngine>>()
  return {
    createStore() {
      const engine = createSqliteEngine({ path: ':memory:', clock, driver })
      const store = createSqlStore(engine)
      engines.set(store, engine)
      return store
    },
    beside(open) {
      const engine = engines.get(open) as ReturnType<typeof createSqliteEngine>
      const nothing = async () => {}
      return createSqlStore({ ...engine, open: nothing, migrate: nothing, close: nothing })
    },
    advance,
  }
}

/** The system's clock, which the suite can set forward. */
function movingClock() {
  let ahead = 0
  return {
    clock: {
      ...systemClock,
      now: () => Date.now() + ahead,
      monotonic: () => systemClock.monotonic() + ahead,
    },
    advance(ms: number) {
      ahead += ms
    },
  }
}

/** Each store has a schema of its own: creating a database takes 0.3 s, a schema 0.05 s. */
function onPostgres(server: TestEngine): StoreConformanceOptions {
  const schemas = new WeakMap<Store, string>()
  let address: Promise<string> | undefined
  let made = 0
  const at = async (schema: string) => {
    address ??= server.freshAddress()
    const store = storeFor(
      postgresStore({ connectionString: await address, schema, maxConnections: 5 }),
      systemClock,
    )
    schemas.set(store, schema)
    return store
  }
  const again = (store: Store) => at(schemas.get(store) as string)
  return { createStore: () => at(`conformance_${++made}`), reopen: again, beside: again }
}

/** Runs one check on libsql in memory, in a process of its own. */
async function runApart(name: string): Promise<void> {
  const lib = (file: string) => `require(${JSON.stringify(join(__dirname, '../../../lib', file))})`
  const code = `
    const { storeConformance } = require(${JSON.stringify(join(__dirname, 'store-conformance.ts'))})
    const { createSqlStore } = ${lib('store/sql-store.ts')}
    const { createSqliteEngine } = ${lib('sqlite/engine.ts')}
    const { systemClock: clock } = ${lib('base/clock.ts')}
    const engine = () => createSqliteEngine({ path: ':memory:', clock, driver: 'libsql' })
    const checks = storeConformance({ createStore: () => createSqlStore(engine()) })
    checks.find((check) => check.name === ${JSON.stringify(name)}).run()`
  await promisify(execFile)(process.execPath, [...EVAL_TYPESCRIPT, code])
}
