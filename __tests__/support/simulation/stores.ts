import { createDatabase, type Database } from './database.js'
import { createTables } from './tables.js'

/** The databases of worlds. On the package's SQL, a world takes several times longer. */
export const STORES: Readonly<Record<'plain tables' | 'the SQL of the package', () => Promise<Database>>> = {
  'plain tables': async () => createTables(),
  'the SQL of the package': createDatabase,
}
