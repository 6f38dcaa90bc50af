import { createRequire } from 'node:module'
import { join } from 'node:path'

/**
 * The library of a database, which the app installs if it uses that database: what `require` returns. Throws what Node
 * throws if it is missing.
 *
 * Bundlers do not follow this `require`, so they neither include the library nor need it. A bundle that is an ES module
 * has no `__filename`; it finds the library from the working directory.
 */
export function requireInstalled(name: 'libsql' | 'pg'): unknown {
  const from = typeof __filename === 'string' ? __filename : join(process.cwd(), 'app.js')
  return createRequire(from)(name)
}
