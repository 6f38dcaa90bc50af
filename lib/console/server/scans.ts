import { setImmediate as nextTurn } from 'node:timers/promises'
import type { JournalEntry, JournalFilter, SubscriptionStatus } from '../../index.js'
import { Refusal } from './http.js'
import type { ConsoleMarketplace } from './rows.js'

/**
 * The most rows of a list that one request examines. With 200,000 dead entries *Needs attention* takes less than 0.1 s;
 * with a limit of 10,000, and a plan that read the whole table for each page, it took 16 s.
 */
export const MAX_EXAMINED = 2_000
/** The most rows that are read at a time: of entries fewer, because a payload may have 1 MB. */
const SUBSCRIPTIONS_A_PAGE = 250
const ENTRIES_A_PAGE = 50
/** The most requests that run or wait. */
const MAX_WAITING = 20

/** What a request looks for in a list. */
export interface Scan<Row> {
  /** The last row that the request before examined. Without it, the scan begins at the first row of the list. */
  from?: string | undefined
  take(row: Row): void
  /** Whether the request has enough. */
  isFull?(): boolean
  /** The rows that are read at a time, if the request knows how many it needs. */
  page?: number
}

export interface Scanned {
  examined: number
  /** The last row that was examined, which is the `from` of the next request; null at the end of the list. */
  next: string | null
}

/**
 * Looks through lists of a marketplace for people. A request examines a bounded number of rows, and the next one continues
 * there. One request at a time does so, or reads a piece of an export; the others wait for their turn, and too many get 503. So
 * the questions of people leave the database to the app.
 */
export function createScans({
  subscriptions,
  journal,
}: Pick<ConsoleMarketplace, 'subscriptions' | 'journal'>) {
  const reading = createQueue()
  const exporting = createQueue()
  let waiting = 0

  /** Counts one more request, until `leave()`. */
  function enter(): { leave(): void } {
    if (waiting >= MAX_WAITING)
      throw new Refusal(
        503,
        'busy',
        'Too many people search or export at the moment. Try again in a few seconds.',
      )
    waiting++
    return {
      leave() {
        waiting--
      },
    }
  }

  async function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const { leave } = enter()
    return reading(work).finally(leave)
  }

  /**
   * The pieces of an export. One export is sent at a time. It takes a turn for each piece, so that others do not wait for the
   * connection of the person who gets it.
   */
  async function* eachInTurn<T>(read: () => AsyncGenerator<T, void>): AsyncGenerator<T, void> {
    const { leave } = enter()
    let end = () => {}
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    try {
      await new Promise<void>((begin) => {
        exporting(() => {
          begin()
          return ended
        })
      })
      const pieces = read()
      try {
        for (;;) {
          const piece = await reading(() => pieces.next())
          if (piece.done) return
          yield piece.value
        }
      } finally {
        await pieces.return()
      }
    } finally {
      end()
      leave()
    }
  }

  async function examine<Row>(
    list: (from: string | undefined, limit: number) => Promise<Row[]>,
    placeOf: (row: Row) => string,
    { from, take, isFull = () => false, page }: Scan<Row> & { page: number },
  ): Promise<Scanned> {
    let place = from
    for (let examined = 0; ; await nextTurn()) {
      // One row more than is examined shows whether the list ends there.
      const limit = Math.min(page, MAX_EXAMINED - examined + 1)
      const rows = await list(place, limit)
      for (const row of rows) {
        if (examined === MAX_EXAMINED || isFull()) return { examined, next: place ?? null }
        take(row)
        place = placeOf(row)
        examined++
      }
      if (rows.length < limit) return { examined, next: null }
    }
  }

  return {
    inTurn,
    eachInTurn,

    /** The entries of the journal that match the filter, newest first. */
    entries: (filter: Omit<JournalFilter, 'limit' | 'before'>, scan: Scan<JournalEntry>): Promise<Scanned> =>
      inTurn(() =>
        examine(
          (before, limit) => journal.list({ ...filter, limit, ...(before === undefined ? {} : { before }) }),
          ({ id }) => id,
          { page: ENTRIES_A_PAGE, ...scan },
        ),
      ),

    /** All subscriptions, in the order of their uids. */
    subscriptions: (scan: Scan<SubscriptionStatus>): Promise<Scanned> =>
      inTurn(() =>
        examine(
          (after, limit) => subscriptions.list({ limit, ...(after === undefined ? {} : { after }) }),
          ({ subscription_uid }) => subscription_uid,
          { page: SUBSCRIPTIONS_A_PAGE, ...scan },
        ),
      ),
  }
}

/** Returns a function that runs one work after the other. */
function createQueue() {
  let last: Promise<unknown> = Promise.resolve()
  return function queued<T>(work: () => Promise<T>): Promise<T> {
    const turn = last.then(work)
    last = turn.catch(() => {})
    return turn
  }
}

export type Scans = ReturnType<typeof createScans>
