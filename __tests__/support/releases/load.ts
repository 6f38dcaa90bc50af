import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import pg from 'pg'

/** The releases whose databases are in this folder. */
export const RELEASES = readdirSync(__dirname, { withFileTypes: true }).flatMap((each) =>
  each.isDirectory() ? [each.name] : [],
)

/** The database of a release, as SQL. */
export function dumpOf(release: string, engine: 'SQLite' | 'PostgreSQL'): string {
  return readFileSync(join(__dirname, release, `${engine === 'SQLite' ? 'sqlite' : 'postgres'}.sql`), 'utf8')
}

/** Fills an empty database with a dump. */
export async function load(dump: string, address: string) {
  if (!address.startsWith('sqlite:')) await query(address, 'create schema marketplace_webhooks', '')
  await query(address, dump)
}

/** Runs SQL on a database that nobody uses, and returns the rows of a query. */
export async function query(address: string, text: string, path = 'marketplace_webhooks') {
  if (address.startsWith('sqlite:')) {
    const db = new Database(address.slice('sqlite:'.length))
    try {
      return text.startsWith('select') ? (db.prepare(text).all() as unknown[]) : db.exec(text) && []
    } finally {
      db.close()
    }
  }
  const client = new pg.Client({ connectionString: address })
  await client.connect()
  try {
    if (path !== '') await client.query(`set search_path = ${path}`)
    const { rows } = await client.query(text)
    return rows as unknown[]
  } finally {
    await client.end()
  }
}
