import { ConfigError } from '../errors.js'
import type { Clock } from '../schedule.js'
import { createSqlStore } from './sql-store.js'
import { createSqliteEngine } from './sqlite.js'
import type { Store } from './store.js'

/**
 * The store for an option: `sqlite:<path>`, `sqlite::memory:`, or a `Store` as it is. Nothing is opened yet.
 * Throws `config_invalid` for anything else, without repeating it: it may hold a password.
 */
export function storeFor(option: string | Store, clock: Clock): Store {
  if (typeof option !== 'string') return option
  const path = option.startsWith('sqlite:') ? option.slice('sqlite:'.length) : ''
  if (path === '') throw new ConfigError(['store: expected sqlite:<path>, sqlite::memory:, or a Store'])
  return createSqlStore(createSqliteEngine({ path, clock }))
}
