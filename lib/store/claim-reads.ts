import { nextTurn } from '../waiting.js'
import { type DueRow, dueRowsOf, isDue } from './due-reads.js'
import type { Engine } from './engine.js'
import { createPutOff } from './put-off-reads.js'
import type { Connection } from './sql.js'
import { type ClaimReads, type ReadClaim, URGENCY, type Urgency } from './store.js'
import type { Subscriptions } from './subscriptions.js'

/** The due rows of a class that a claim reads, beyond one for each lease and each busy business. */
const WINDOW = 16
/** The most transactions of one claim, each of which puts off a batch of rows that cannot be read now. */
const MAX_ROUNDS = 200

/**
 * Leases the subscriptions to read next. A claim reads a bounded number of due rows. A business that is being read is
 * busy. When rows of busy businesses fill that number, the claim puts them off, each once, so that the rows behind them
 * come first.
 *
 * Of the subscriptions that were never read, the longest due and the newest take turns. So a flood of forged ones delays
 * neither a purchase that follows them nor one that came before them.
 */
export function createReadClaims(engine: Engine, subscriptions: Pick<Subscriptions, 'lease'>) {
  const putOff = createPutOff(engine)
  let isNewestNext = false
  /** Whether the last claim leased a row. */
  let wasDue = false

  /** `isPutOff`: rows were put off, so a repeated claim may find the rows behind them. */
  async function claimOnce(
    trx: Connection,
    options: ClaimReads,
  ): Promise<{ claims: ReadClaim[]; isPutOff: boolean }> {
    const { limit, except, urgencies } = options
    const size = WINDOW + limit + except.length
    const rows = await dueRowsOf(engine, trx, urgencies, size)
    if (rows.length === 0) return { claims: [], isPutOff: false }
    const busy = new Set(except)
    const stacks = urgencies.map((urgency) => ({ urgency, rows: stackOf(rows, urgency) }))
    const picked = pickRows(stacks, busy, options)
    const claims = await subscriptions.lease(
      trx,
      picked.map(({ uid }) => uid),
      options.leaseMs,
    )
    let isPutOff = false
    if (picked.length < limit) {
      for (const stack of stacks) {
        // Fewer rows than `size` are all that are due.
        const seen = rows.filter((row) => row.urgency === stack.urgency && row.is_newest === 0).length
        if (stack.rows.length === 0 && seen === size && (await putOff(trx, stack.urgency, busy)))
          isPutOff = true
      }
    }
    return { claims, isPutOff }
  }

  /** The rows of a class as a stack: the next one is last. */
  function stackOf(rows: readonly DueRow[], urgency: Urgency): DueRow[] {
    const ofClass = rows.filter((row) => row.urgency === urgency)
    if (urgency !== URGENCY.eventOfUnread) return ofClass.reverse()
    const ends = [0, 1].map((isNewest) => ofClass.filter((row) => row.is_newest === isNewest))
    if (isNewestNext) ends.reverse()
    isNewestNext = !isNewestNext
    const [first = [], second = []] = ends
    // A row may come from both ends. The second time its business is busy, so it is skipped.
    return first.flatMap((row, i) => [row, ...second.slice(i, i + 1)]).reverse()
  }

  async function claim(
    { read, write }: Pick<Engine, 'read' | 'write'>,
    options: ClaimReads,
  ): Promise<ReadClaim[]> {
    const { limit, except, urgencies, choose = ([first]) => first } = options
    // Deliveries cause many claims that find nothing: a read first, so that those write nothing. After a claim that
    // leased a row, more are most likely due. On PostgreSQL a transaction that only reads takes as long.
    if (engine.isLocal && !wasDue && !(await read((db) => isDue(engine, db, urgencies)))) return []
    wasDue = false
    const claims: ReadClaim[] = []
    for (let round = 0; round < MAX_ROUNDS && claims.length < limit; round++) {
      const before = claims.map(({ urgency }) => urgency)
      const left = {
        ...options,
        limit: limit - claims.length,
        except: [...except, ...claims.map((claim) => claim.subscription.businessUid)],
        choose: (due: readonly Urgency[], taken: readonly Urgency[]) => choose(due, [...before, ...taken]),
      }
      try {
        const found = await write((trx) => claimOnce(trx, left))
        claims.push(...found.claims)
        if (!found.isPutOff) break
      } catch (error) {
        // The rows leased so far must be read. The next claim reports the error if it persists.
        if (claims.length === 0) throw error
        break
      }
      await nextTurn()
    }
    wasDue = claims.length > 0
    return claims
  }

  return { claim }
}

/** The due rows of one class; the next one is last. */
interface Stack {
  urgency: Urgency
  rows: DueRow[]
}

/** Takes up to `limit` rows from the stacks, no two of one business. `busy` gets the businesses of these rows. */
function pickRows(
  stacks: readonly Stack[],
  busy: Set<string>,
  { limit, choose = ([first]) => first }: Pick<ClaimReads, 'limit' | 'choose'>,
): DueRow[] {
  const picked: DueRow[] = []
  const taken: Urgency[] = []
  while (picked.length < limit) {
    for (const { rows } of stacks)
      while (rows.length > 0 && busy.has((rows.at(-1) as DueRow).business)) rows.pop()
    const due = stacks.filter(({ rows }) => rows.length > 0)
    const urgency = choose(
      due.map((stack) => stack.urgency),
      taken,
    )
    const row = due.find((stack) => stack.urgency === urgency)?.rows.pop()
    if (!row) break
    busy.add(row.business)
    picked.push(row)
    taken.push(row.urgency)
  }
  return picked
}
