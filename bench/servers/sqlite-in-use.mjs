/** Driver and version of the SQLite that the package finds first, in words. */
export async function sqliteInUse() {
  if (process.getBuiltinModule?.('node:sqlite')) return `SQLite ${process.versions.sqlite} by node:sqlite`
  for (const name of ['better-sqlite3', 'libsql']) {
    const module = await import(name).catch(() => undefined)
    if (!module) continue
    const database = new module.default(':memory:')
    const { version } = database.prepare('select sqlite_version() as version').get()
    database.close()
    return `SQLite ${version} by ${name}`
  }
  return 'SQLite: unknown'
}
