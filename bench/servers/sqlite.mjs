/** Opens a SQLite file with the library that the package would choose: `{ name, exec, all, run(sql) → statement }`. */
export async function openSqlite(path) {
  if (process.getBuiltinModule?.('node:sqlite')) {
    const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
    return wrap(new DatabaseSync(path), `SQLite ${process.versions.sqlite} by node:sqlite`)
  }
  const { default: Database } = await import('libsql')
  const database = new Database(path)
  const { version } = database.prepare('select sqlite_version() as version').get()
  return wrap(database, `SQLite ${version} by libsql`)
}

function wrap(database, name) {
  return {
    name,
    exec: (sql) => database.exec(sql),
    prepare: (sql) => database.prepare(sql),
    all: (sql) => database.prepare(sql).all(),
    close: () => database.close(),
  }
}
