import type { Clock } from '../schedule.js'
import { createSqlStore } from './sql-store.js'
import { createSqliteEngine } from './sqlite.js'
import type { Store } from './store.js'

const SQLITE = /^sqlite:(?<path>.+)$/s

/** What is wrong with an address of a store; never repeats it, for it may hold a password. */
export function storeFaults(address: string): string[] {
  return SQLITE.test(address) ? [] : ['expected sqlite:<path>, sqlite::memory:, or a Store']
}

/** The store for an option that has no faults: an address, or a `Store` as it is. Nothing is opened yet. */
export function storeFor(option: string | Store, clock: Clock): Store {
  if (typeof option !== 'string') return option
  return createSqlStore(createSqliteEngine({ path: SQLITE.exec(option)?.groups?.path ?? '', clock }))
}
