import { randomUUID } from 'node:crypto'
import { read } from 'node:fs'
import { type FileHandle, link, lstat, open, rename, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { promisify } from 'node:util'
import type { Clock } from '../../base/clock.js'
import { MarketplaceError, messageOf } from '../../base/errors.js'
import { sleep } from '../../base/waiting.js'
import { mayShareFiles, type SqliteConnection, type SqliteLibrary } from '../drivers.js'
import { reasonOf, sqliteCode, unavailable } from '../errors.js'
import { pathFault } from '../file/path.js'
import { makePrivateFile } from '../file/private-file.js'
import { NoThread, type SqliteThread } from '../file/thread.js'
import { syncFolder } from '../file/wal.js'
import type { Mutex } from '../mutex.js'
import { retryWhileBusy } from '../transactions.js'

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

const PATIENCE_MS = 5_000
const PASSIVE = 'pragma wal_checkpoint(passive)'

/**
 * Moves every commit into the database file, and then keeps that file as it is: its bytes are a complete database until
 * the returned function is called. Writers go on meanwhile, and the WAL grows.
 *
 * A reading transaction that begins right after a complete checkpoint keeps the file as it is. Nobody may commit between
 * the two, so both run under SQLite's write lock; see docs/decisions/sqlite-backup.md.
 *
 * Rejects when other processes read without a pause for five seconds, and with the reason of `signal`, which also ends
 * what was begun.
 */
export async function freezeDatabase(options: {
  library: SqliteLibrary
  path: string
  connection(): SqliteConnection
  thread: SqliteThread
  mutex: Mutex
  clock: Clock
  signal: AbortSignal
}): Promise<() => void> {
  const { library, path, connection, thread, mutex, clock, signal } = options
  const reader = library.open(path)
  const deadline = clock.monotonic() + PATIENCE_MS
  try {
    while (!(await tryToFreeze())) {
      if (clock.monotonic() >= deadline) throw unavailable('another process has been reading it for over 5 s')
      await sleep(50, clock)
    }
  } catch (error) {
    reader.close()
    throw error
  }
  function thaw() {
    signal.removeEventListener('abort', thaw)
    // The transaction is rolled back first, because libsql may close the connection late.
    reader.exec('rollback')
    reader.close()
  }
  signal.addEventListener('abort', thaw)
  return () => {
    if (!signal.aborted) thaw()
  }

  async function tryToFreeze(): Promise<boolean> {
    // Most of the WAL is copied beside the writers.
    if (mayShareFiles(library)) await checkpoint()
    const unlock = await mutex.lock()
    try {
      signal.throwIfAborted()
      const writer = connection()
      await retryWhileBusy(() => writer.exec('begin immediate'), PATIENCE_MS, clock)
      try {
        if (!(await checkpoint())) return false
        signal.throwIfAborted()
        reader.exec('begin; select count(*) from sqlite_schema')
        return true
      } finally {
        writer.exec('rollback')
      }
    } finally {
      unlock()
    }
  }

  /** Whether it copied everything. */
  async function checkpoint(): Promise<boolean> {
    const rows = await thread.run(PASSIVE).catch((error) => {
      if (!(error instanceof NoThread)) throw error
      return reader.all(PASSIVE, [])
    })
    const { busy, log, checkpointed } = rows[0] as Record<'busy' | 'log' | 'checkpointed', number>
    return busy === 0 && log === checkpointed
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
  makePrivateFile(target)
  const copy = await open(target, 'r+')
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
