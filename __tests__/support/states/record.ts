import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../../lib/base/clock.js'
import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import type { Store } from '../../../lib/store/port/store.js'
import { sql } from '../../../lib/store/sql/sql.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import { runInLab, type StoreConformanceOptions } from '../conformance/lab.js'
import { storeConformance } from '../conformance/store-conformance.js'
import { MORE_CHECKS } from './more-checks.js'
import type { Row, TableMachine } from './tables.js'

/** Times that lie this far ahead have come: the store's clock and SQLite's are read one after the other. */
const TOLERANCE_MS = 20

interface Written {
  /** A row of a table: the same in each write of the row. */
  id: string
  before: Row | null
  after: Row | null
  /** By SQLite's own clock. */
  at: number
}

/**
 * Runs the conformance suite and `MORE_CHECKS` on SQLite, and returns the transitions that the rows of a table really made, such as
 * `due --> leased`. Triggers note each write of a row. A state that ends because a time comes needs no write: it is
 * seen when the next write finds the row in another state than the last one left it.
 * An erasure deletes a row in any state, so checks of erasures are left out.
 */
export async function recordTransitions(
  machines: Record<string, TableMachine>,
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const seen = new Map(Object.keys(machines).map((table) => [table, new Set<string>()]))
  const options = recorded(machines, seen)
  for (const { name, run } of storeConformance(options)) if (!name.startsWith('erase:')) await run()
  for (const check of MORE_CHECKS) await runInLab(options, check)
  return seen
}

function recorded(
  machines: Record<string, TableMachine>,
  seen: Map<string, Set<string>>,
): StoreConformanceOptions {
  /** How far the suite has set the clock forward, since when. */
  let steps = [{ since: 0, ahead: 0 }]
  const ahead = () => (steps.at(-1) as (typeof steps)[0]).ahead
  const clock = {
    ...systemClock,
    now: () => Date.now() + ahead(),
    monotonic: () => systemClock.monotonic() + ahead(),
  }
  const engineOf = new WeakMap<Store, ReturnType<typeof make>['engine']>()

  function make() {
    const engine = createSqliteEngine({ path: ':memory:', clock })
    return { engine, store: createSqlStore(engine) }
  }

  return {
    createStore() {
      const { engine, store } = make()
      const recording: Store = {
        ...store,
        async open(owner) {
          await store.open(owner)
          await engine.write(async (trx) => {
            for (const statement of statements(machines)) await sql.raw(statement).execute(trx)
          })
        },
        async close() {
          await engine
            .read(async (db) => {
              for (const [table, machine] of Object.entries(machines)) {
                const rows = await sql.raw<Text>(`select * from written_${table} order by seq`).execute(db)
                const found = transitionsOf(machine, rows.map(parsed), timeAt)
                for (const transition of found) seen.get(table)?.add(transition)
              }
            })
            .catch(() => {})
          await store.close()
        },
      }
      engineOf.set(recording, engine)
      return recording
    },
    beside(open) {
      const engine = engineOf.get(open)
      if (!engine) throw new Error('the store was not made here')
      const nothing = async () => {}
      return createSqlStore({ ...engine, open: nothing, migrate: nothing, close: nothing })
    },
    async advance(ms) {
      // No write shares its millisecond with the step.
      await sleep(2)
      steps = [...steps, { since: Date.now(), ahead: ahead() + ms }]
      await sleep(2)
    },
  }

  /** The store's time at a time of SQLite's clock. */
  function timeAt(at: number) {
    return at + (steps.findLast(({ since }) => since <= at) as (typeof steps)[0]).ahead
  }
}

interface Text {
  id: string
  before: string | null
  after: string | null
  at: number
}

function parsed({ id, before, after, at }: Text): Written {
  return { id, at: Number(at), before: before && JSON.parse(before), after: after && JSON.parse(after) }
}

/** Triggers that note each write of a row: as it was, as it is, and when. */
function statements(machines: Record<string, TableMachine>): string[] {
  return Object.entries(machines).flatMap(([table, { id, columns }]) => {
    const of = (row: 'old' | 'new') =>
      `json_object(${columns.map((column) => `'${column}', ${row}.${column}`).join(', ')})`
    const note = (event: string, key: 'old' | 'new', before: string, after: string) => `
      create trigger if not exists noted_${table}_${event} after ${event} on ${table} begin
        insert into written_${table} (id, before, after, at)
        values (${key}.${id}, ${before}, ${after}, cast(unixepoch('subsec') * 1000 as integer));
      end`
    return [
      `create table if not exists written_${table} (seq integer primary key, id text, before text, after text, at integer)`,
      note('insert', 'new', 'null', of('new')),
      note('update', 'new', of('old'), of('new')),
      note('delete', 'old', of('old'), 'null'),
    ]
  })
}

function transitionsOf(machine: TableMachine, rows: Written[], timeAt: (at: number) => number) {
  const found = new Set<string>()
  const last = new Map<string, string>()
  const step = (from: string, to: string) => {
    if (from !== to) found.add(`${from} --> ${to}`)
  }
  for (const { id, before, after, at } of rows) {
    const now = timeAt(at) + TOLERANCE_MS
    const from = before ? machine.stateOf(before, now) : '[*]'
    const to = after ? machine.stateOf(after, now) : '[*]'
    step(last.get(id) ?? '[*]', from)
    step(from, to)
    last.set(id, to)
  }
  return found
}
