import { SECOND } from '../../../base/clock.js'
import { MarketplaceError, messageOf } from '../../../base/errors.js'
import { nextTurn, sleep } from '../../../base/waiting.js'
import { createJournal } from '../../journal/journal.js'
import { createLanes } from '../../lanes/lanes.js'
import { LEASED, TAKEN_BACK } from '../../leases/leases.js'
import { appOf, ofCopied, UNFINISHED_COPY } from '../../ownership.js'
import type { EntryStatus, NewAction } from '../../port/store.js'
import type { Columns } from '../dialect.js'
import type { Engine } from '../engine.js'
import { hasTables, MIGRATIONS, schemaVersion } from '../migrations.js'
import type { PlatformFactsTable, StoreOwnerTable } from '../schema.js'
import { type Connection, type Sql, sql } from '../sql.js'
import { withinBytes } from '../within-bytes.js'
import { run } from '../writes.js'
import { type Ask, type CopiedCounts, countsOf, noCounts } from './counts.js'
import { BATCH, COPIED_TABLES, type CopiedTable, inOtherTimes, type Row, timesOf } from './tables.js'

/**
 * Copies everything that a store contains into an empty one, on the same engine or the other. Both are opened alone, and
 * the rows come in one transaction, so the target has all of them or none. From before the first row to the end of the
 * copy the target has no owner but the copy, so no app opens it: an interrupted copy can only be repeated.
 *
 * The source belongs to no process that is open from before the first row on, so one that was not seen writes nothing that
 * the target has not. An app that starts on it takes it back.
 *
 * Nobody holds a lease any more, so each has run out in the target: what was under way is done again, alone.
 *
 * Rejects `store_in_use`, `copy_failed`, and the errors of an opening. `action` records the copy in the target.
 */
export async function copyTables(options: {
  from: Engine
  to: Engine
  action: NewAction
  onProgress(rows: { done: number; total: number }): void
}): Promise<CopiedCounts> {
  const { from, to, action, onProgress } = options
  await openSource(from)
  const fromOwner = await from.read(ownerOf)
  if (isUnfinished(fromOwner)) throw failed('a copy into the source has not ended, so it contains nothing')

  await openTarget(to)
  const mark = UNFINISHED_COPY + action.id
  const beganAt = to.mark()
  await to.write((trx) => begin(to, trx, fromOwner, mark))
  await to.durable(beganAt)

  const source = await takeAway(from)
  const before = await countsOf(from, reading(from))
  const total = Object.values(before).reduce((sum, count) => sum + count)

  const counts = await to
    .write(async (trx) => {
      await to.mayWait?.(trx)
      if ((await ownerOf(trx, to.forUpdate))?.fingerprint !== mark) {
        // A transaction runs again when it was committed and only the answer was lost.
        const own = await sql`select 1 as one from journal where id = ${action.id}`.execute(trx)
        if (own.length > 0) return before
        throw new Error('another copy into the same target has begun')
      }
      const copied = await copyRows({ from, to, trx, onRows: (done) => onProgress({ done, total }) })
      requireEqual(copied, await countsOf(from, reading(from)), CHANGED)
      if (await source.isTaken()) throw new Error(CHANGED)
      requireEqual(copied, await countsOf(to, (query) => query.execute(trx)), 'the target has other rows')
      await createJournal(to, createLanes(to)).insertAction(trx, action)
      await copyPlatformFacts(from, trx)
      await setOwner(trx, fromOwner)
      return copied
    })
    .catch(async (error) => {
      await source.giveBack()
      throw failed(
        `${messageOf(error)}. As long as the copy has not ended, the target has nothing of it, and no app opens it: correct ` +
          'the cause, and repeat the copy',
        error,
      )
    })
  await to.durable(beganAt)
  return counts
}

const CHANGED = 'the source has changed meanwhile, so a process uses it: stop every process of the app'

/** Opens a database that has the tables of this package, and brings them to this version. */
async function openSource(from: Engine) {
  await from.open({ alone: true })
  if (!(await hasTables(from)))
    throw failed(
      'the source is not a store: it has no tables of this package. Name the database that the app uses',
    )
  await migrate(from, 'source')
  if (from.isLocal) return
  const leased = Object.entries(LEASED).map(
    ([kind, { table, dueAt }]) => sql`select * from (
      select 1 as one from ${table} where lease_token is not null and lease_token <> ${TAKEN_BACK}
        and ${dueAt} > ${from.leaseNow()} limit 1
    ) as ${sql.ref(`leased_${kind}`)}`,
  )
  const rows = await from.read((db) => sql`${sql.join(leased, ' union all ')}`.execute(db))
  if (rows.length > 0)
    throw new MarketplaceError(
      'store_in_use',
      'Cannot copy the store: a process has leased work of the source. Stop every process of the app. After one was ' +
        'killed, its leases run out within a minute',
    )
}

async function openTarget(to: Engine) {
  await to.open({ alone: true })
  await migrate(to, 'target')
}

async function migrate(engine: Engine, which: string) {
  const requireKnown = async (db: Connection) => {
    if ((await schemaVersion(db)) > MIGRATIONS.length)
      throw failed(`a newer version of this package made the tables of the ${which}: use that version`)
  }
  await engine.migrate(MIGRATIONS)
  await engine.read(requireKnown)
}

/**
 * Takes the source away from a process that was not seen, such as an idle one behind a pooler, which finds that within a
 * second. An app that starts on the source takes it back. A SQLite file is open in no other process.
 */
async function takeAway(from: Engine) {
  const stored = async () => {
    const [row] = await reading(from)(sql<Owner>`select fingerprint from store_owner where id = 1`)
    return row?.fingerprint ?? null
  }
  const give = (to: string | null) =>
    from.write((trx) => sql`update store_owner set fingerprint = ${to} where id = 1`.execute(trx))

  const before = await stored()
  if (from.isLocal || before === null) return { isTaken: async () => false, async giveBack() {} }
  const nobody = ofCopied(before)
  await give(nobody)
  await sleep(SECOND + NOTICED_WITHIN_MS, from.clock)
  return {
    isTaken: async () => (await stored()) !== nobody,
    async giveBack() {
      await give(before).catch(() => {})
    },
  }
}

/** The time of the query by which a process finds that the store is not its own. */
const NOTICED_WITHIN_MS = SECOND / 4

/** Requires that the target is empty, and writes into it that it belongs to this copy. */
async function begin(to: Engine, trx: Connection, fromOwner: Owner | undefined, mark: string) {
  const owner = await ownerOf(trx, to.forUpdate)
  for (const { name: table } of COPIED_TABLES) {
    const rows = await sql`select 1 as one from ${sql.ref(table)} limit 1`.execute(trx)
    if (rows.length > 0)
      throw failed(
        `the target is not empty: its table ${table} has rows. It was not changed. Name a new file, or an empty database or schema`,
      )
  }
  const isOfOther = owner?.fingerprint && owner.fingerprint !== fromOwner?.fingerprint
  if (isOfOther && !isUnfinished(owner))
    throw failed('the target belongs to another app. It was not changed. Name an empty database')
  await setOwner(trx, { fingerprint: mark, has_read: 0 })
}

type Owner = Pick<StoreOwnerTable, 'fingerprint' | 'has_read'>

async function ownerOf(db: Connection, lock: Sql = sql``): Promise<Owner | undefined> {
  const [row] = await sql<Owner>`
    select fingerprint, has_read from store_owner where id = 1 ${lock}`.execute(db)
  return row && { ...row, fingerprint: appOf(row.fingerprint) ?? null }
}

async function setOwner(trx: Connection, owner: Owner | undefined) {
  await sql`delete from store_owner`.execute(trx)
  if (owner)
    await sql`insert into store_owner (id, fingerprint, has_read)
      values (1, ${owner.fingerprint}, ${owner.has_read})`.execute(trx)
}

async function copyPlatformFacts(from: Engine, trx: Connection) {
  const [row] = await reading(from)(
    sql<Pick<PlatformFactsTable, 'facts'>>`select facts from platform_facts where id = 1`,
  )
  if (row)
    await sql`insert into platform_facts (id, facts) values (1, ${row.facts})
      on conflict (id) do update set facts = excluded.facts`.execute(trx)
}

function isUnfinished(owner: Owner | undefined): boolean {
  return owner?.fingerprint?.startsWith(UNFINISHED_COPY) === true
}

/** Copies the rows, and returns how many of each there were. */
async function copyRows(options: {
  from: Engine
  to: Engine
  trx: Connection
  onRows(done: number): void
}): Promise<CopiedCounts> {
  const { from, to, trx, onRows } = options
  const theirs = await from.read((db) => timesOf(from).one(db))
  const inTimesOfTarget = inOtherTimes(theirs, await timesOf(to).one(trx))
  const counts = noCounts()
  let done = 0
  for (const table of COPIED_TABLES) {
    const query = insertInto(to, table)
    for await (const rows of rowsOf(from, table)) {
      await run(to, trx, { query, rows: rows.map((row) => inTimesOfTarget(table, row)) })
      for (const row of rows) counts[countOf(table, row)]++
      done += rows.length
      onRows(done)
    }
  }
  return counts
}

function insertInto(to: Engine, { name, columns }: CopiedTable) {
  const given = to.given(
    Object.fromEntries(
      Object.entries(columns).map(([column, kind]) => [column, kind === 'text' ? 'text' : 'integer']),
    ) as Columns,
  )
  const values = Object.keys(columns).map((column) => given.of(column))
  return to.compile(sql`insert into ${sql.ref(name)} (${namesOf(columns)}) ${given.insert(sql.join(values))}`)
}

/** The rows of a table in their order, in parts that are bounded in number and bytes. */
async function* rowsOf(
  from: Engine,
  { name, key, columns, start, page }: CopiedTable,
): AsyncGenerator<Row[]> {
  for (let after = start; ; await nextTurn()) {
    const found = await from.read((db) => page(from, after).execute(db))
    for (let at = 0; at < found.length; ) {
      const keys = withinBytes(found, at).map((each) => each.key)
      at += keys.length
      const rows = await from.read((db) =>
        sql<Row>`select ${namesOf(columns)} from ${sql.ref(name)} where ${from.isOneOf(key, keys)}`.execute(
          db,
        ),
      )
      const byKey = new Map(rows.map((row) => [row[key], row]))
      yield keys.map((each) => byKey.get(each)).filter((row) => row !== undefined)
    }
    const last = found.at(-1)
    if (last === undefined || found.length < BATCH) return
    after = last.place
  }
}

const namesOf = (columns: CopiedTable['columns']) => sql.join(Object.keys(columns).map(sql.ref))

/** The count to which a row belongs. */
function countOf({ name }: CopiedTable, row: Row): keyof CopiedCounts {
  if (name === 'journal') return row.status as EntryStatus
  return name === 'handlers' ? 'topics' : (name as 'subscriptions' | 'lanes' | 'searches')
}

function requireEqual(copied: CopiedCounts, found: CopiedCounts, why: string) {
  for (const [what, count] of Object.entries(copied) as [keyof CopiedCounts, number][])
    if (found[what] !== count)
      throw new Error(`${why}: ${count} ${what} were copied, and ${found[what]} are there`)
}

const reading =
  (engine: Engine): Ask =>
  (query) =>
    engine.read((db) => query.execute(db))

function failed(why: string, cause?: unknown): MarketplaceError {
  return new MarketplaceError('copy_failed', `Cannot copy the store: ${why}`, { cause })
}
