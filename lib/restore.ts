import { systemClock } from './base/clock.js'
import { MarketplaceError } from './base/errors.js'
import { createKeepAlive } from './lifecycle.js'
import { REFRESH_ALL_MS } from './operations/subscriptions/subscriptions.js'
import { type MarketplaceOptions, readOptions } from './options.js'
import type { RestoreStep } from './sqlite/backup/restore.js'
import { ownerOf } from './store/ownership.js'
import { sqlitePath, storeFor } from './store-option.js'

/** What `restoreBackup` has done. */
export interface RestoreSummary {
  /** The database file, which now has the content of the backup. */
  path: string
  /**
   * Where the former database is now, or the first of its `-wal` and `-shm` files if it was gone; null when there was
   * nothing.
   */
  formerPath: string | null
  /** How many subscriptions the app reads again after its start: about four a second, and all within ten minutes. */
  subscriptions: number
}

/**
 * Puts a copy of a backup in the place of the SQLite database of these options, while no process uses that database. The
 * former database gets another name, and the backup stays as it is. The restored subscriptions are as old as the backup, so
 * a read of each is due: about four a second, and all within ten minutes.
 *
 * Rejects `argument_invalid` for a path without a file or a store that is not a SQLite file, `store_in_use`,
 * `restore_failed` for a damaged file or one of another program, `store_of_another_app`, and throws `ConfigError`. Then
 * the database is as it was, unless the message says where it is.
 *
 * @example
 * const { formerPath } = await restoreBackup(options, '/backups/2026-03-01.db')
 */
export async function restoreBackup(
  given: MarketplaceOptions,
  backup: string,
  { onStep = () => {} }: { onStep?: (step: RestoreStep) => void } = {},
): Promise<RestoreSummary> {
  const { app, platform, adoptStore, store: option } = readOptions(given)
  const path = typeof option === 'string' ? sqlitePath(option) : undefined
  const cannot = (why: string) => new MarketplaceError('argument_invalid', `Cannot restore a backup: ${why}`)
  if (path === undefined || path === ':memory:')
    throw cannot('the store is not a SQLite file. PostgreSQL restores by its own tools, such as pg_restore')
  if (typeof backup !== 'string' || backup === '' || backup.includes('\0'))
    throw cannot('the path of the backup must be the path of a file')
  const clock = given.clock ?? systemClock

  async function restore(path: string) {
    const { restoreFile } = await import('./sqlite/backup/restore.js')
    return restoreFile({
      path,
      backup,
      clock,
      onStep,
      async prepare(copy) {
        const store = storeFor(`sqlite:${copy}`, clock)
        try {
          await store.open(ownerOf({ ...app, ...platform, adopt: adoptStore }))
          return await store.refreshAll(REFRESH_ALL_MS)
        } finally {
          await store.close()
        }
      },
    })
  }

  // Its timers do not keep the process alive.
  const { prepared, ...restored } = await createKeepAlive().during(restore(path))
  return { ...restored, subscriptions: prepared }
}
