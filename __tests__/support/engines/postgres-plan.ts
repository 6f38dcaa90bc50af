import type { Query } from '../../../lib/store/sql/sql.js'
import type { StoreWithSql } from './store-with-sql.js'

/** A step of a plan of PostgreSQL. */
export interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  Plans?: PlanNode[]
}

/** How PostgreSQL performs this statement, node by node. */
export async function planOfPostgres({ explain }: StoreWithSql, query: Query): Promise<PlanNode[]> {
  const [row] = await explain('explain (analyze, timing off, format json)', query)
  const [{ Plan }] = JSON.parse(String(row?.['QUERY PLAN'])) as [{ Plan: PlanNode }]
  return allOf(Plan)
}

/** How many rows the node visited. */
export function rowsOf(node: PlanNode): number {
  const each =
    node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
  return each * node['Actual Loops']
}

function allOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(allOf)]
}
