import type { Query } from '../../../lib/store/sql/sql.js'
import { openStoreWithSql } from './store-with-sql.js'

/** A step of a plan of SQLite. The steps of a sub-select have the number of its step as `parent`. */
export interface PlanStep {
  parent: number
  detail: string
}

/** How SQLite would perform this statement, without statistics. */
export async function planOfSqlite(query: Query): Promise<PlanStep[]> {
  // A store of its own: with libsql an explained statement stays in progress.
  const lab = await openStoreWithSql('sqlite::memory:')
  // The comment makes the driver return rows.
  const answering = { ...query, text: `${query.text} -- returning` }
  return (await lab.explain('explain query plan', answering)) as unknown as PlanStep[]
}

/** The columns that identify few rows of a table. */
const IDENTIFIERS: Record<string, string> = {
  journal: 'id',
  lanes: 'key|lease_token',
  subscriptions: 'subscription_uid|lease_token',
}

/**
 * The steps of a plan that find the rows of an update or a delete otherwise than by an identifier: such a batch walks
 * all rows of a status.
 */
export function walksOf({ text }: Query, plan: readonly PlanStep[]): string[] {
  const table = /^\s*(?:with .*)?(?:update|delete from) (\w+)/s.exec(text)?.[1] ?? ''
  const identifiers = IDENTIFIERS[table]
  if (identifiers === undefined) return []
  const isOfTable = new RegExp(`^(SEARCH|SCAN) ${table}\\b`)
  const isById = new RegExp(`\\((${identifiers})=\\?`)
  return plan.flatMap(({ parent, detail }) =>
    parent === 0 && isOfTable.test(detail) && !isById.test(detail) ? detail : [],
  )
}
