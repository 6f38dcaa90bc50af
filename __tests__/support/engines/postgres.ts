import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { onCleanUp } from '../clean-up.js'
import { until } from '../until.js'
import { installPostgres, POSTGRES_PASSWORD } from './postgres-installation.js'
import { freePort } from './tcp-proxy.js'

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
 * A real PostgreSQL server with its own port and data folder. It ends with the process that started it, however that
 * process ends.
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const { lives = 'test', settings = {} } = options
  const { user, program, newFolder, newData } = installPostgres()
  const folder = newFolder()
  const data = newData()
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

  /** Starts the postmaster; its output goes to the log. */
  function spawnServer(flags: readonly string[]): ChildProcess {
    const log = openSync(logFile, 'a')
    const child = spawn(program('postgres'), ['-D', data, ...flags], {
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

  async function start() {
    if (server) return
    const flags = Object.entries({ ...SETTINGS, ...settings, port }).map(([name, value]) => [
      '-c',
      `${name}=${value}`,
    ])
    const child = spawnServer(flags.flat())
    server = child
    // The server must not keep the process alive if a test forgets to close it.
    child.unref()
    ended = once(child, 'exit').then(() => {
      server = undefined
    })
    await until('PostgreSQL is ready', () => server !== child || isReady(child))
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
