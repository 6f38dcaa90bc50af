import { describe, expect, it } from '@jest/globals'
import { names, tableWith } from '../support/docs/pages.js'
import { openStoreWithSql } from '../support/engines/store-with-sql.js'

describe('the page on privacy', () => {
  it('lists every column of every table, and no other', async () => {
    const written: Record<string, string[]> = {}
    for (const { Table, Columns } of tableWith('Table', 'Columns', 'Why', 'How long')) {
      const [name] = names(Table) as [string]
      written[name] = [...(written[name] ?? []), ...names(Columns)]
    }
    const { sql } = await openStoreWithSql('sqlite::memory:')
    const kept: Record<string, string[]> = {}
    for (const table of Object.keys(written)) {
      const rows = await sql<{ name: string }>(`select name from pragma_table_info('${table}') -- returning`)
      kept[table] = rows.map(({ name }) => name)
    }
    const tables = await sql<{ name: string }>(
      `select name from sqlite_schema where type = 'table' and name not like 'sqlite%' -- returning`,
    )
    const sorted = (each: Record<string, string[]>) =>
      Object.entries(each).map(([table, columns]) => [table, [...columns].sort()])
    expect(sorted(written)).toEqual(sorted(kept))
    const own = tables.map(({ name }) => name).filter((name) => !name.startsWith('marketplace_'))
    expect(own.sort()).toEqual(Object.keys(written).sort())
  })
})
