import { MarketplaceError } from '../base/errors.js'
import type { Store } from '../store/port/store.js'

/** Copies the database into a new file. */
export function createBackup({ store }: { store: Pick<Store, 'backup'> }) {
  return async function backup(path: string): Promise<void> {
    if (typeof path !== 'string' || path === '' || path.includes('\0'))
      throw new MarketplaceError(
        'argument_invalid',
        'Cannot back up: the path must be the path of a new file',
      )
    await store.backup(path)
  }
}
