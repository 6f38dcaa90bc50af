import type { PostgresServer } from '../engines/postgres.js'

/** A row of the journal, as it is in the database. */
export interface JournalRow {
  seq: number
  id: string
  kind: 'event' | 'change' | 'unrecognised'
  name: string
  key: string
  business_uid: string | null
  subscription_uid: string | null
  payload: string
  status: 'pending' | 'done' | 'dead'
  attempts: number
  lapses: number
  error: string | null
  received_at: number
  due_at: number
  lease_token: string | null
}

export interface SubscriptionRow {
  subscription_uid: string
  business_uid: string
  state: string | null
  gone: string | null
  updated_at: string | null
  generation: number
  settled_generation: number
  failure: string | null
  refresh_in_ms: number | null
  lease_token: string | null
  lapses: number
  read_at: number | null
}

/** Reads the two tables as a superuser, and so bypasses all code under test. */
export function createBooks(server: PostgresServer, address: string) {
  const database = new URL(address).pathname.slice(1)

  async function rows<Row extends object>(text: string): Promise<Row[]> {
    const found = await server.sql<Row>(text, [], database)
    // PostgreSQL returns int8 as text.
    return found.map((row) => Object.fromEntries(Object.entries(row).map(asNumbers)) as Row)
  }

  return {
    journal: () => rows<JournalRow>('select * from marketplace_webhooks.journal order by seq'),
    subscriptions: () =>
      rows<SubscriptionRow>(`
        select subscription_uid, business_uid, state, gone, record::json ->> 'updated_at' as updated_at, generation, settled_generation,
          failure, refresh_at - (extract(epoch from clock_timestamp()) * 1000)::bigint as refresh_in_ms,
          lease_token, lapses, read_at
        from marketplace_webhooks.subscriptions order by created_at`),
  }
}

export type Books = ReturnType<typeof createBooks>

const NUMBERS = new Set([
  'seq',
  'received_at',
  'due_at',
  'generation',
  'settled_generation',
  'refresh_in_ms',
  'read_at',
])

function asNumbers([name, value]: [string, unknown]): [string, unknown] {
  return [name, NUMBERS.has(name) && value !== null ? Number(value) : value]
}
