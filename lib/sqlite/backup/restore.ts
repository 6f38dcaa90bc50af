import { randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream, type Stats, statSync } from 'node:fs'
import { type FileHandle, link, open, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Clock } from '../../base/clock.js'
import { MarketplaceError, messageOf } from '../../base/errors.js'
import { findSqlite, type SqliteLibrary } from '../drivers.js'
import { reasonOf, sizeOf, sqliteCode } from '../errors.js'
import { checkAtOnce } from '../file/check.js'
import { holdFile } from '../file/lock.js'
import { pathFault, realDatabasePath } from '../file/path.js'
import { makePrivateFile } from '../file/private-file.js'
import { syncFolder } from '../file/wal.js'
import { retryWhileBusy } from '../transactions.js'

/** A part of a restoration, in this order. */
export type RestoreStep = 'copying' | 'checking' | 'preparing' | 'replacing'

interface RestoredFile<Prepared> {
  path: string
  /**
   * Where the former database is now, or the first of its `-wal` and `-shm` files if it was gone; null when there was
   * nothing.
   */
  formerPath: string | null
  prepared: Prepared
}

const PATIENCE_MS = 5_000
const ENDS = ['', '-wal', '-shm'] as const

/**
 * Puts a copy of a backup in the place of a database that no process uses. The former database gets another name, with
 * all commits of its `-wal` file, which SQLite would otherwise write over the backup. The copy has the mode of the former
 * database, and its owner where the process may give it.
 *
 * The copy, its check, and `prepare`, which may open it, come before the former database is touched.
 */
export async function restoreFile<Prepared>(options: {
  path: string
  backup: string
  clock: Clock
  prepare(copy: string): Promise<Prepared>
  onStep(step: RestoreStep): void
}): Promise<RestoredFile<Prepared>> {
  const { clock, prepare, onStep } = options
  const [path, backup] = [realDatabasePath(options.path), realDatabasePath(options.backup)]
  requireBackup(backup, path)
  const library = await findSqlite()
  const hold = await holdAlone(library, path, clock)
  const whole = `${path}.${randomUUID().slice(0, 8)}.restoring`
  const copy = `${whole}-prepared`
  try {
    await removeCopies(path, backup)
    onStep('copying')
    for (const end of ['', '-wal'])
      if (sizeOf(backup + end) > 0) await copyPrivately(backup + end, copy + end)
    onStep('checking')
    await retryWhileBusy(() => check(library, copy, backup), PATIENCE_MS, clock)
    onStep('preparing')
    const prepared = await prepare(copy)
    onStep('replacing')
    if (sizeOf(`${copy}-wal`) > 0)
      throw failed(backup, 'its copy could not be closed. The database was not changed')
    // libsql may keep the copy open until its prepared statements are collected as garbage. In this process SQLite would
    // take it for the same database after the rename, and use its `-shm` file.
    if (library.name === 'libsql') await copyPrivately(copy, whole)
    else await rename(copy, whole)
    const former = statSync(path, { throwIfNoEntry: false })
    const file = await open(whole, 'r+')
    try {
      if (former) await giveAccess(file, former)
      await file.sync()
    } finally {
      await file.close()
    }
    const formerPath = await replace(library, { path, copy: whole, backup }, new Date(clock.now()))
    return { path, formerPath, prepared }
  } catch (error) {
    if (error instanceof MarketplaceError) throw error
    const why = pathFault(path) ?? reasonOf(error, sqliteCode(error), path) ?? messageOf(error)
    throw failed(backup, `${why}. The database was not changed`, error)
  } finally {
    await removeCopies(path, backup).catch(() => {})
    hold.release()
  }
}

function requireBackup(backup: string, path: string) {
  const refuse = (why: string) => new MarketplaceError('argument_invalid', `Cannot restore ${backup}: ${why}`)
  const file = statSync(backup, { throwIfNoEntry: false })
  const database = statSync(path, { throwIfNoEntry: false })
  const isSame = file && database && file.dev === database.dev && file.ino === database.ino
  if (isSame || backup === path) throw refuse('it is the database itself; name a backup')
  if (!file) throw refuse('there is no such file')
  if (!file.isFile()) throw refuse('it is not a file')
}

/**
 * Removes the copy of this restoration, and those that interrupted ones have left: they have data of customers. Nobody
 * uses one while this process holds the database alone. The backup may be one of them, and stays.
 */
async function removeCopies(path: string, backup: string) {
  const kept = ENDS.map((end) => backup + end)
  for (const name of await readdir(dirname(path))) {
    const file = join(dirname(path), name)
    const isCopy = file.startsWith(path) && COPY.test(file.slice(path.length))
    if (isCopy && !kept.includes(file)) await rm(file, { force: true }).catch(() => {})
  }
}

/** The end of the name of a copy, also of a file that SQLite or the lock has put beside it. */
const COPY = /^\.[0-9a-f]{8}\.restoring/

/** `fs.copyFile` would give the copy the mode of the backup, which may come from another machine. */
async function copyPrivately(from: string, to: string) {
  makePrivateFile(to)
  await pipeline(createReadStream(from), createWriteStream(to, { flags: 'r+' }))
}

/**
 * Gives the copy the owner, the group and the mode of the former database. A group that the process may not give gets no
 * rights, because those of the mode were meant for another one.
 */
async function giveAccess(file: FileHandle, { uid, gid, mode }: Stats) {
  await file
    .chown(uid, gid)
    .catch(() => file.chown(-1, gid))
    .catch(() => {})
  const hasGroup = (await file.stat()).gid === gid
  // Some file systems have no modes.
  await file.chmod(mode & (hasGroup ? 0o777 : 0o707)).catch(() => {})
}

/** Every process of this package holds the lock while it uses the file. Without one a former process may still write. */
async function holdAlone(library: SqliteLibrary, path: string, clock: Clock) {
  try {
    return await retryWhileBusy(() => holdFile(library, path, true), PATIENCE_MS, clock)
  } catch (error) {
    if (sqliteCode(error) !== 'BUSY') throw failed(path, pathFault(path) ?? messageOf(error), error)
    throw new MarketplaceError(
      'store_in_use',
      `Cannot restore into the SQLite file ${path}: a process uses it. Stop every process of the app first`,
      { cause: error },
    )
  }
}

/**
 * Checks the copy by `exec` only, so that libsql closes the connection at once. Moves what the backup's own `-wal` file
 * holds into it.
 */
function check(library: SqliteLibrary, copy: string, backup: string) {
  const connection = library.open(copy)
  try {
    checkAtOnce(connection, copy)
    connection.exec(`select iif(
      (select count(*) from sqlite_schema where name in ('marketplace_schema', 'subscriptions', 'journal')) = 3,
      1, json('of another program'))`)
    connection.exec('pragma journal_mode = delete')
  } catch (error) {
    const code = sqliteCode(error)
    if (code === 'BUSY' || code === 'FULL' || code === 'IOERR') throw error
    const isDatabase = code === '' || code === 'ERROR'
    throw failed(
      backup,
      isDatabase && !isDamaged(error)
        ? 'it is not a backup of this package. The database was not changed'
        : 'it is damaged, or not a database. The database was not changed',
      error,
    )
  } finally {
    connection.close()
  }
}

function isDamaged(error: unknown): boolean {
  return (error as { code?: unknown }).code === 'store_corrupt'
}

/**
 * Puts the copy in the place of the database, which gets another name. A power cut leaves one of the two at the path,
 * because the database has both names until a rename replaces it; where it can have no second name, or its `-wal` file
 * could not be moved into it, there may be none. A `-wal` file beside them would count for both.
 */
async function replace(
  library: SqliteLibrary,
  { path, copy, backup }: { path: string; copy: string; backup: string },
  now: Date,
): Promise<string | null> {
  const formerPath = `${path}.before-restore-${now.toISOString().replaceAll(':', '-')}`
  const failedAfter = (what: string) => (error: unknown) => {
    throw failed(backup, `${messageOf(error)}. ${what}. The former one is ${formerPath}`, error)
  }
  if (sizeOf(path) > 0) moveWalIntoDatabase(library, path)
  const present = ENDS.filter((end) => statSync(path + end, { throwIfNoEntry: false }))
  const isWhole = present.length === 1 && present[0] === ''
  const isLinked = isWhole && (await hasLinked(path, formerPath))
  const moved: string[] = []
  try {
    // The database goes first: without it, nobody takes its `-wal` file for that of another.
    for (const end of isLinked ? [] : present) {
      await rename(path + end, formerPath + end)
      moved.unshift(end)
    }
    await syncFolder(dirname(path))
    await rename(copy, path)
  } catch (error) {
    for (const end of moved)
      await rename(formerPath + end, path + end).catch(failedAfter('The database is no longer at its path'))
    if (isLinked) await rm(formerPath, { force: true }).catch(() => {})
    throw error
  }
  await syncFolder(dirname(path)).catch(
    failedAfter('The database was replaced, but a power cut may undo that'),
  )
  return present[0] === undefined ? null : formerPath + present[0]
}

/** The `-wal` file stays if it cannot be moved, because the disk is full, or another program uses the database. */
function moveWalIntoDatabase(library: SqliteLibrary, path: string) {
  const connection = library.open(path)
  try {
    connection.exec('pragma journal_mode = delete')
  } catch {
    // The files are kept as they are.
  } finally {
    connection.close()
  }
}

/** Some file systems have no links. */
function hasLinked(path: string, other: string): Promise<boolean> {
  return link(path, other).then(
    () => true,
    () => false,
  )
}

function failed(backup: string, why: string, cause?: unknown): MarketplaceError {
  return new MarketplaceError('restore_failed', `Cannot restore ${backup}: ${why}`, { cause })
}
