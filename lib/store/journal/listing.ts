import { MINUTE } from '../../base/clock.js'
import { nextTurn } from '../../base/waiting.js'
import { ENTRY_KINDS, ENTRY_STATUSES } from '../port/journal.js'
import type { EntryFilter, JournalEntry, StoredEntitlement } from '../port/store.js'
import type { ClockOffset } from '../sql/clock-offset.js'
import type { Engine } from '../sql/engine.js'
import type { JournalTable } from '../sql/schema.js'
import { type Sql, sql } from '../sql/sql.js'
import { withinBytes } from '../sql/within-bytes.js'
import { auditUid } from './audit.js'

/** The entries that one statement reads: on SQLite 500 take 1 ms, and 10 times as long if their pages are not in its cache. */
const WINDOW = 500

/**
 * Lists entries of the journal, for people, and the entitlements of a business, for its changes. A list for people may ask for
 * few of many entries: it reads the table in windows, and ends as soon as it has enough.
 */
export function createEntryList(engine: Engine, read: Engine['read'], offsetOf: ClockOffset) {
  return {
    async list({ before, ...filter }: EntryFilter): Promise<JournalEntry[]> {
      const limit = Math.min(1_000, Math.max(1, Math.trunc(filter.limit ?? 100)))
      const from = before === undefined ? END : await placeOf(before)
      const byOwner = filter.subscriptionUid !== undefined || filter.businessUid !== undefined
      return entriesOf(await (byOwner ? ofOwner(filter, limit, from) : ofStatus(filter, limit, from)))
    },

    async get(id: string): Promise<JournalEntry | undefined> {
      const [entry] = await entriesOf([{ id, bytes: 0 }])
      return entry
    },

    async entitlementsFrom(id: string): Promise<StoredEntitlement[]> {
      const rows = await read((db) =>
        sql<{ payload: string }>`
          select later.payload from journal as first
          join journal as later on later.business_uid = first.business_uid and later.kind = 'entitlement' and later.seq >= first.seq
          where first.id = ${id} order by later.seq`.execute(db),
      )
      return rows.map(({ payload }) => JSON.parse(payload))
    },
  }

  /** An entry that was deleted meanwhile has the place before the next older one. Ids are in the order of time. */
  async function placeOf(id: string): Promise<Place> {
    const rows = await read((db) =>
      sql<Place & { id: string }>`
        select id, received_at, seq from journal where id <= ${id} order by id desc limit 1`.execute(db),
    )
    const [found] = rows
    if (!found) return { received_at: 0, seq: 0 }
    return found.id === id ? found : { received_at: found.received_at, seq: found.seq + 1 }
  }

  /**
   * Newest first, merged from one range of an index for each status and kind. The index alone gives the ranges, so only a
   * window of the table is read: up to 15 times fewer rows. SQLite keeps the order of a `cross join`. Otherwise, after
   * ANALYZE, it reads the whole table for each window: 80 ms at 200,000 entries.
   */
  function ofStatus(filter: EntryFilter, limit: number, before: Place): Promise<Found[]> {
    const { status, kind, name, since, until } = filter
    const kinds = kind === undefined ? ENTRY_KINDS : [kind]
    const conditions =
      status === 'retrying'
        ? [sql`status = 'pending' and attempts > 0 ${kind === undefined ? sql`` : sql`and kind = ${kind}`}`]
        : (status === undefined ? ENTRY_STATUSES : [status]).flatMap((each) =>
            kinds.map((ofKind) => sql`status = ${sql.lit(each)} and kind = ${sql.lit(ofKind)}`),
          )
    const byIndex = status === 'retrying' ? engine.byIndex('journal_retrying') : sql``
    const window = windowFor(limit, name, since, until)
    return walk({ filter, limit, before, window, disorderMs: DISORDER_MS }, ({ seq }) => {
      const ranges = conditions.map(
        (condition, i) => sql`select * from (
          select status, kind, seq from journal ${byIndex} where ${condition} and seq < ${seq} order by seq desc limit ${window}
        ) as ${sql.ref(`range_${i}`)}`,
      )
      return sql<Seen>`
        select ${COLUMNS}, ${engine.now()} as now from (
          select * from (${sql.join(ranges, ' union all ')}) as ranges order by seq desc limit ${window}
        ) as newest cross join journal
        where journal.status = newest.status and journal.kind = newest.kind and journal.seq = newest.seq
        order by journal.seq desc`
    })
  }

  /**
   * The entries of subscriptions or of a business, newest first. Those of a business have a range for each kind, so however many
   * events somebody made up, its changes are found at once. They include the audit of its erasures.
   */
  function ofOwner(filter: EntryFilter, limit: number, before: Place): Promise<Found[]> {
    const { subscriptionUid, businessUid = '', status, kind, name, since, until } = filter
    const isOfBusiness = subscriptionUid === undefined
    const kinds = kind === undefined ? ENTRY_KINDS : [kind]
    const owners = isOfBusiness
      ? kinds.flatMap((each) =>
          (each === 'action' ? [businessUid, auditUid(businessUid)] : [businessUid]).map(
            (uid) => sql`business_uid = ${uid} and kind = ${sql.lit(each)}`,
          ),
        )
      : [subscriptionUid].flat().map((uid) => sql`subscription_uid = ${uid}`)
    const beside = isOfBusiness ? undefined : (kind ?? filter.businessUid)
    const window = windowFor(limit, status, name, since, until, beside)
    return walk({ filter, limit, before, window, disorderMs: 0 }, ({ received_at: at, seq }) => {
      const ranges = owners.map(
        (owner, i) => sql`select * from (
            select ${COLUMNS} from journal where ${owner} and (received_at, seq) < (${at}, ${seq})
            order by received_at desc, seq desc limit ${window}
          ) as ${sql.ref(`range_${i}`)}`,
      )
      return sql<Seen>`
          select newest.*, ${engine.now()} as now from (${sql.join(ranges, ' union all ')}) as newest
          order by received_at desc, seq desc limit ${window}`
    })
  }

  /**
   * Reads a window at a time until enough entries fit the filter.
   * `disorderMs`: how much older than its successor an entry may be, at most.
   */
  async function walk(
    how: { filter: EntryFilter; limit: number; before: Place; window: number; disorderMs: number },
    page: (before: Place) => Sql<Seen>,
  ): Promise<Found[]> {
    const { filter, limit, window, disorderMs } = how
    const { since = Number.NEGATIVE_INFINITY } = filter
    const found: Found[] = []
    for (let before = how.before; ; ) {
      const rows = await read((db) => page(before).execute(db))
      const last = rows.at(-1)
      const offset = offsetOf(last?.now)
      for (const row of rows) if (fits(row, filter, offset) && found.push(row) === limit) return found
      if (!last || rows.length < window || last.received_at + offset < since - disorderMs) return found
      before = last
      await nextTurn()
    }
  }

  async function entriesOf(found: readonly Found[]): Promise<JournalEntry[]> {
    const entries: JournalEntry[] = []
    for (let read = 0; read < found.length; ) {
      const part = withinBytes(found, read)
      read += part.length
      entries.push(...(await entriesNamed(part.map(({ id }) => id))))
      await nextTurn()
    }
    return entries
  }

  async function entriesNamed(ids: readonly string[]): Promise<JournalEntry[]> {
    const rows = await read((db) =>
      sql<JournalTable & { now: number }>`
        select journal.*, ${engine.now()} as now from journal where ${engine.isOneOf('id', ids)}`.execute(db),
    )
    const offset = offsetOf(rows[0]?.now)
    const byId = new Map(rows.map((row) => [row.id, row]))
    return ids.flatMap((id) => {
      const row = byId.get(id)
      return row ? asJournalEntry(row, offset) : []
    })
  }
}

/** The window of ranges whose rows all fit if none of `conditions` is given: then no row beyond the limit is read. */
function windowFor(limit: number, ...conditions: unknown[]): number {
  return conditions.every((each) => each === undefined) ? limit : WINDOW
}

/** A place in the list: entries before it are older. */
type Place = Pick<JournalTable, 'received_at' | 'seq'>
const END: Place = { received_at: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER }
/**
 * The order of numbers and the order of arrival may disagree by this much, because concurrent transactions commit in
 * any order.
 */
const DISORDER_MS = 10 * MINUTE

/** An entry to read, and the length of its payload. */
interface Found {
  id: string
  bytes: number
}

const COLUMNS = sql.raw(
  ['id', 'seq', 'received_at', 'kind', 'name', 'status', 'attempts', 'business_uid']
    .map((column) => `journal.${column}`)
    .concat('octet_length(journal.payload) as bytes')
    .join(', '),
)
type Seen = Place &
  Found &
  Pick<JournalTable, 'id' | 'kind' | 'name' | 'status' | 'attempts' | 'business_uid'> & {
    now: number
  }

function fits(row: Seen, { status, kind, name, businessUid, since, until }: EntryFilter, offset: number) {
  const isRetried = row.status === 'pending' && row.attempts > 0
  if (status !== undefined && !(status === 'retrying' ? isRetried : row.status === status)) return false
  if (kind !== undefined && row.kind !== kind) return false
  if (name !== undefined && row.name !== name) return false
  const { business_uid } = row
  if (businessUid !== undefined && business_uid !== businessUid && business_uid !== auditUid(businessUid))
    return false
  const at = row.received_at + offset
  return (since === undefined || at >= since) && (until === undefined || at < until)
}

/** Deeper values overflow the stack of `JSON.stringify`, so an export of them would fail. */
const MAX_LEVELS = 500

/** Whether a JSON text is nested deeper than `MAX_LEVELS`. */
function isDeep(json: string): boolean {
  if (json.length < 2 * MAX_LEVELS) return false
  let level = 0
  let isText = false
  for (let i = 0; i < json.length; i++) {
    const character = json[i]
    if (isText && character === '\\') i++
    else if (character === '"') isText = !isText
    else if (isText) continue
    else if (character === '[' || character === '{') level++
    else if (character === ']' || character === '}') level--
    if (level > MAX_LEVELS) return true
  }
  return false
}

/** @param offset how far the caller's wall clock is ahead of the store's time */
function asJournalEntry(row: JournalTable, offset: number): JournalEntry {
  const iso = (time: number) => new Date(time + offset).toISOString()
  return {
    id: row.id,
    kind: row.kind,
    name: row.name,
    status: row.status,
    businessUid: row.business_uid,
    subscriptionUid: row.subscription_uid,
    get payload() {
      return isDeep(row.payload) ? row.payload : JSON.parse(row.payload)
    },
    issues: row.issues === null ? null : JSON.parse(row.issues),
    attempts: row.attempts,
    error: row.error,
    stack: row.stack,
    receivedAt: iso(row.received_at),
    dueAt: row.status === 'pending' ? iso(row.due_at ?? row.received_at) : null,
  }
}
