import { HANDLED_FOR_MS } from '../../../lib/store/port/store.js'

/** The columns of a row that tell its state. */
export type Row = Readonly<Record<string, number | string | null>>

/** How the rows of a table show their states. To add, drop or rename a state, change `stateOf` and the page. */
export interface TableMachine {
  /** The column that names the row. */
  id: string
  columns: readonly string[]
  /** The name of the state as on the page. `now` is the store's time. */
  stateOf(row: Row, now: number): string
}

const hasCome = (time: Row[string] | undefined, now: number) => Number(time) <= now

/** The tables whose rows have states, by their names. */
export const TABLES = {
  subscriptions: {
    id: 'subscription_uid',
    columns: [
      'lease_token',
      'suspect',
      'failure',
      'refresh_at',
      'generation',
      'settled_generation',
      'verifying',
    ],
    stateOf(row, now) {
      if (row.lease_token !== null) return row.suspect ? 'alone' : 'leased'
      if (row.refresh_at === null) return 'given_up'
      if (row.suspect) return hasCome(row.refresh_at, now) ? 'suspect' : 'put_off'
      if (hasCome(row.refresh_at, now)) return 'due'
      if (row.failure !== null) return 'retrying'
      if (row.verifying) return 'verifying'
      return Number(row.generation) > Number(row.settled_generation) ? 'pausing' : 'reconcile'
    },
  },
  journal: {
    id: 'id',
    columns: ['status'],
    stateOf: ({ status }) => String(status),
  },
  lanes: {
    id: 'key',
    columns: ['lease_token', 'suspect', 'due_at'],
    stateOf(row, now) {
      if (row.lease_token === 'taken back') return 'taken_back'
      if (row.lease_token !== null) return row.suspect ? 'alone' : 'leased'
      if (row.suspect) return 'suspect'
      return hasCome(row.due_at, now) ? 'due' : 'waiting'
    },
  },
  handlers: {
    id: 'topic',
    columns: ['seen_at'],
    stateOf: (row, now) => (hasCome(Number(row.seen_at) + HANDLED_FOR_MS, now) ? 'missing' : 'handled'),
  },
  searches: {
    id: 'business_uid',
    columns: ['lease_token', 'search_at'],
    stateOf(row, now) {
      const isLate = hasCome(row.search_at, now)
      if (row.lease_token === null) return isLate ? 'due' : 'scheduled'
      return isLate ? 'lapsed' : 'leased'
    },
  },
} satisfies Record<string, TableMachine>
