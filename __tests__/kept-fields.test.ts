import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { openStoreWithSql } from './support/store-with-sql.js'

describe('the README on what is kept', () => {
  it('has every column of every table, and no other', async () => {
    const readme = readFileSync(join(__dirname, '..', 'README.md'), 'utf8')
    const [, section = ''] = readme.split('## What is kept')
    const named: Record<string, string[]> = {}
    for (const line of section.split('\n## ')[0]?.split('\n') ?? []) {
      const [, table, columns = ''] = line.split('|').map((cell) => cell.trim())
      const [, name] = /^`(\w+)`$/.exec(table ?? '') ?? []
      if (name)
        named[name] = [
          ...(named[name] ?? []),
          ...[...columns.matchAll(/`(\w+)`/g)].map(([, each]) => each as string),
        ]
    }
    const { sql } = await openStoreWithSql('sqlite::memory:')
    const kept: Record<string, string[]> = {}
    for (const table of Object.keys(named)) {
      const rows = await sql<{ name: string }>(`select name from pragma_table_info('${table}') -- returning`)
      kept[table] = rows.map(({ name }) => name)
    }
    const tables = await sql<{ name: string }>(
      `select name from sqlite_schema where type = 'table' and name not like 'sqlite%' -- returning`,
    )
    const sorted = (each: Record<string, string[]>) =>
      Object.entries(each).map(([table, columns]) => [table, [...columns].sort()])
    expect(sorted(named)).toEqual(sorted(kept))
    const own = tables.map(({ name }) => name).filter((name) => !name.startsWith('marketplace_'))
    expect(own.sort()).toEqual(Object.keys(named).sort())
  })
})
