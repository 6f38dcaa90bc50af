import { randomUUID } from 'node:crypto'
import { link, lstat, open, rename, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { MarketplaceError, messageOf } from '../errors.js'
import { reasonOf, sqliteCode } from './errors.js'
import { pathFault } from './path.js'
import { syncFolder } from './wal.js'

/**
 * Copies a database into the file `target`, which must not exist. `target` contains the commits from before the copy
 * began. The copy has a temporary name until it is synced, so there is never half a backup.
 */
export async function backUp(target: string, copy: (sql: string) => Promise<unknown>): Promise<void> {
  const path = resolve(target)
  const refuse = (why: string, cause?: unknown) =>
    new MarketplaceError('backup_failed', `Cannot back up to ${path}: ${why}`, { cause })

  if (await exists(path)) throw refuse('the file exists already; name a new one, or move it away first')
  const unfinished = `${path}.${randomUUID().slice(0, 8)}.unfinished`
  try {
    await copy(`vacuum into '${unfinished.replaceAll("'", "''")}'`)
    const file = await open(unfinished, 'r+')
    await file.sync().finally(() => file.close())
    await giveName(unfinished, path)
    await syncFolder(dirname(path))
  } catch (error) {
    if (error instanceof MarketplaceError && error.code !== 'store_unavailable') throw error
    const { code } = error as { code?: unknown }
    if (code === 'EEXIST') throw refuse('another process has made the file meanwhile; name a new one')
    throw refuse(pathFault(path) ?? reasonOf(error, sqliteCode(error), path) ?? messageOf(error), error)
  } finally {
    for (const rest of [unfinished, `${unfinished}-journal`]) await rm(rest, { force: true }).catch(() => {})
  }
}

/** A link fails when the name is taken; a rename would replace that file. Some file systems have no links. */
async function giveName(unfinished: string, path: string) {
  try {
    await link(unfinished, path)
  } catch (error) {
    if ((error as { code?: unknown }).code === 'EEXIST' || (await exists(path))) throw error
    await rename(unfinished, path)
  }
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  )
}
