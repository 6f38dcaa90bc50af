import { randomUUID } from 'node:crypto'
import { read } from 'node:fs'
import { type FileHandle, link, lstat, open, rename, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { promisify } from 'node:util'
import { MarketplaceError, messageOf } from '../../base/errors.js'
import { reasonOf, sqliteCode } from '../errors.js'
import { pathFault } from '../file/path.js'
import { syncFolder } from '../file/wal.js'

/**
 * Makes the new file `target` with `write`, which gets a temporary name in the same folder. The name is given when the
 * file is complete and synced, so there is never half a backup.
 */
export async function backUp(target: string, write: (unfinished: string) => Promise<unknown>): Promise<void> {
  const path = resolve(target)
  const refuse = (why: string, cause?: unknown) =>
    new MarketplaceError('backup_failed', `Cannot back up to ${path}: ${why}`, { cause })

  if (await exists(path)) throw refuse('the file exists already; name a new one, or move it away first')
  const unfinished = `${path}.${randomUUID().slice(0, 8)}.unfinished`
  try {
    await write(unfinished)
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

const CHUNK = 1024 * 1024
/** The copy is synced after so many bytes: a sync of more at once would delay the syncs of deliveries. */
const SYNC_AFTER = 8 * CHUNK

/**
 * Copies a database file that does not change into a new file, which does not need a `-wal` file. Ends with the reason of
 * `signal` within one chunk.
 */
export async function copyDatabase(source: number, target: string, signal: AbortSignal): Promise<void> {
  const copy = await open(target, 'wx')
  try {
    await copyChunks(source, copy, signal)
  } finally {
    await copy.close()
  }
}

async function copyChunks(source: number, copy: FileHandle, signal: AbortSignal) {
  const buffer = Buffer.alloc(CHUNK)
  for (let at = 0; ; ) {
    signal.throwIfAborted()
    const { bytesRead } = await readFrom(source, buffer, 0, CHUNK, at)
    if (bytesRead === 0) return
    // Both format versions in the header become 1: 2 is a database in WAL mode, which cannot be opened without write
    // access to its folder.
    if (at === 0) buffer.fill(1, 18, 20)
    for (let written = 0; written < bytesRead; )
      written += (await copy.write(buffer, written, bytesRead - written, at + written)).bytesWritten
    at += bytesRead
    if (at % SYNC_AFTER === 0) await copy.datasync()
  }
}

const readFrom = promisify(read)

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
