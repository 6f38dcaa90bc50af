import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import pg from 'pg'
import { onCleanUp } from '../support/clean-up.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { freePort, startProxy } from '../support/engines/tcp-proxy.js'
import { EVAL_TYPESCRIPT } from '../support/processes/processes.js'
import { until } from '../support/until.js'

const engines = ENGINE_NAMES.map(useEngine)
const postgres = () => engineOf('PostgreSQL').server()

describe('engines', () => {
  it.each(ENGINE_NAMES)('gives every caller its own address on %s', async (name) => {
    const addresses = [await engineOf(name).freshAddress(), await engineOf(name).freshAddress()]
    expect(new Set(addresses).size).toBe(2)
    const scheme =
      name === 'SQLite'
        ? /^sqlite:\/.+\.db$/
        : /^postgres:\/\/marketplace:canary-\w+@127\.0\.0\.1:\d+\/test_\d+$/
    for (const address of addresses) expect(address).toMatch(scheme)
  })
})

describe('PostgreSQL for tests', () => {
  it('gives a role without special rights an empty database, for its password', async () => {
    const address = await engineOf('PostgreSQL').freshAddress()
    const client = await connectTo(address)
    await client.query('create table kept (id int)')
    const { rows } = await client.query(`
      select current_user as name, rolsuper, current_setting('fsync') as fsync from pg_roles where rolname = current_user`)
    expect(rows).toEqual([{ name: 'marketplace', rolsuper: false, fsync: 'on' }])
    await client.end()
    const wrong = new URL(address)
    wrong.password = 'another'
    await expect(connectTo(wrong.href)).rejects.toMatchObject({ code: '28P01' })
  })

  it('keeps exactly the committed rows when it is stopped at once and started again', async () => {
    const address = await engineOf('PostgreSQL').freshAddress()
    const client = await connectTo(address)
    await client.query('create table kept (id int)')
    await client.query('insert into kept values (1)')
    await client.query('begin; insert into kept values (2)')
    await postgres().stop('immediate')
    await expect(connectTo(address)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await postgres().start()
    expect(postgres().log()).toContain('automatic recovery in progress')
    expect(await idsIn(address)).toEqual([1])
  })

  it('accepts connections but answers nothing while it is frozen', async () => {
    const address = await engineOf('PostgreSQL').freshAddress()
    const before = await connectTo(address)
    await postgres().freeze()
    const during = connectTo(address)
    const answers = [before.query('select 1'), during]
    const first = await Promise.race([...answers, aWhile()])
    await postgres().thaw()
    expect(first).toBe('a while')
    await Promise.all(answers)
    await before.end()
    await (await during).end()
  })

  it('ends and leaves no file when the process that started it is killed', async () => {
    const { process, port, data } = await startInOtherProcess()
    const files = () => [data, ...installationsOf(process)].filter((path) => existsSync(path))
    expect([await isListening(port), files().length]).toEqual([true, 3])
    process.kill('SIGKILL')
    await until('the server is gone', async () => !(await isListening(port)))
    await until('its files are gone', () => files().length === 0)
  })
})

describe('a proxy to PostgreSQL', () => {
  it('loses the reply to a commit that the server has made', async () => {
    const { address, proxy, client } = await wired()
    await client.query('begin; insert into kept values (1)')
    const struck = proxy.cutAfter(/commit/i)
    await expect(client.query('commit')).rejects.toThrow(/ECONNRESET|terminated/)
    await struck
    expect(await idsIn(address)).toEqual([1])
    // This happens once: the next connection works.
    const next = await connectTo(proxy.through(address))
    await next.query('begin; insert into kept values (2)')
    await next.query('commit')
    expect(await idsIn(address)).toEqual([1, 2])
  })

  it('loses a commit before the server receives it', async () => {
    const { address, proxy, client } = await wired()
    await client.query('begin; insert into kept values (1)')
    const struck = proxy.cutBefore((bytes) => bytes.includes('commit'))
    await expect(client.query('commit')).rejects.toThrow(/ECONNRESET|terminated/)
    await struck
    expect(await idsIn(address)).toEqual([])
  })

  it('resets open connections and refuses new ones while it is cut', async () => {
    const { address, proxy, client } = await wired()
    const asked = expect(client.query('select pg_sleep(60)')).rejects.toThrow(/ECONNRESET|terminated/)
    await proxy.cut()
    await asked
    await until('the connections are gone', () => proxy.connections() === 0)
    await expect(connectTo(proxy.through(address))).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await proxy.heal()
    await (await connectTo(proxy.through(address))).end()
  })

  it('accepts connections and holds everything back while it is a black hole', async () => {
    const { address, proxy, client } = await wired()
    proxy.blackHole()
    const answers = [client.query('insert into kept values (1)'), connectTo(proxy.through(address))]
    await until('the new connection is accepted', () => proxy.connections() === 2)
    expect(await Promise.race([...answers, aWhile()])).toBe('a while')
    expect(await idsIn(address)).toEqual([])
    await proxy.heal()
    await Promise.all(answers)
    expect(await idsIn(address)).toEqual([1])
  })

  it('passes nothing for existing connections, but works for new ones, while it is half open', async () => {
    const { address, proxy, client } = await wired()
    proxy.halfOpen()
    const asked = client.query('insert into kept values (1)')
    const lost = expect(asked).rejects.toThrow(/ECONNRESET|terminated/)
    const next = await connectTo(proxy.through(address))
    await next.query('insert into kept values (2)')
    await proxy.heal()
    expect(await Promise.race([asked, aWhile()])).toBe('a while')
    expect(await idsIn(address)).toEqual([2])
    await proxy.cut()
    await lost
  })
})

describe('a proxy to any server', () => {
  it('passes on all data and their end, and reports both', async () => {
    const proxy = await startProxy({ to: await echo() })
    const received: string[] = []
    proxy.onData('to server', (bytes) => received.push(`> ${bytes}`))
    const stop = proxy.onData('to client', (bytes) => received.push(`< ${bytes}`))
    // The client has ended its side before the answer comes, and must still get the answer.
    expect(await exchange(proxy.port, 'one')).toMatchObject({ answer: 'one' })
    stop()
    await exchange(proxy.port, 'two')
    expect(received).toEqual(['> one', '< one', '> two'])
    await until('the connections are gone', () => proxy.connections() === 0)
  })

  it('delays and slows down', async () => {
    const proxy = await startProxy({ to: await echo() })
    proxy.delay(100)
    expect((await exchange(proxy.port, 'there and back')).ms).toBeGreaterThanOrEqual(195)
    await proxy.heal()
    proxy.trickle(200)
    // 40 bytes in slices of 10, with 50 ms between them, in both directions at the same time.
    const { answer, ms } = await exchange(proxy.port, 'x'.repeat(40))
    expect(answer).toBe('x'.repeat(40))
    expect(ms).toBeGreaterThanOrEqual(145)
    await proxy.heal()
    expect((await exchange(proxy.port, 'x'.repeat(100_000))).answer).toHaveLength(100_000)
  })

  it('resets a connection if no server listens behind it', async () => {
    const proxy = await startProxy({ to: await freePort() })
    await expect(exchange(proxy.port, 'anybody?')).rejects.toMatchObject({ code: 'ECONNRESET' })
  })
})

function engineOf(name: (typeof ENGINE_NAMES)[number]) {
  const engine = engines.find((each) => each.name === name)
  if (!engine) throw new Error(`no engine ${name}`)
  return engine
}

async function connectTo(address: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: address })
  client.on('error', () => {})
  await client.connect()
  return client
}

/** A client of a database with one empty table, through a proxy that ends with the test. */
async function wired() {
  const address = await engineOf('PostgreSQL').freshAddress()
  const proxy = await startProxy({ to: postgres().port })
  const client = await connectTo(proxy.through(address))
  await client.query('create table kept (id int)')
  return { address, proxy, client }
}

async function idsIn(address: string): Promise<number[]> {
  const client = await connectTo(address)
  const { rows } = await client.query<{ id: number }>('select id from kept order by id')
  await client.end()
  return rows.map(({ id }) => id)
}

/** Long enough for an answer that is not held back: a query takes 1 ms, a connection 10 ms. */
function aWhile(): Promise<string> {
  return new Promise((resolve) => setTimeout(() => resolve('a while'), 150))
}

/** Starts a process with a server that the process will not close. */
async function startInOtherProcess(): Promise<{ process: ChildProcess; port: number; data: string }> {
  // Hooks belong to Jest, which does not run there.
  const script = `
    const id = require.resolve('@jest/globals')
    require.cache[id] = { id, loaded: true, exports: { afterEach() {}, afterAll() {} } }
    const { startPostgres } = require(${JSON.stringify(join(__dirname, '../support/engines/postgres.ts'))})
    startPostgres({ lives: 'file' })
      .then(({ port, sql }) => Promise.all([port, sql('show data_directory')]))
      .then(([port, [row]]) => process.stdout.write(JSON.stringify({ port, data: row.data_directory })))
    setInterval(() => {}, 1_000)`
  const child = spawn(process.execPath, [...EVAL_TYPESCRIPT, script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onCleanUp(() => child.kill('SIGKILL'))
  const output = await new Promise<string>((resolve, reject) => {
    child.stdout.once('data', (chunk) => resolve(String(chunk)))
    child.once('exit', () => reject(new Error('it ended by itself')))
  })
  const { port, data } = JSON.parse(output) as { port: number; data: string }
  return { process: child, port, data }
}

/** The folders of PostgreSQL that belong to the process. */
function installationsOf({ pid }: ChildProcess): string[] {
  const roots = new Set(['/dev/shm', '/tmp', '/var/tmp', tmpdir()].filter((root) => existsSync(root)))
  return [...roots].flatMap((root) =>
    readdirSync(root)
      .filter((name) => name.startsWith(`marketplace-postgres-${pid}-`))
      .map((name) => join(root, name)),
  )
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

/** A server that returns its input, and ends when the other side has ended. */
async function echo(): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.pipe(socket)
  })
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  onCleanUp(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return port
}

async function exchange(port: number, text: string): Promise<{ answer: string; ms: number }> {
  const begun = performance.now()
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.end(text)
  let answer = ''
  for await (const chunk of socket) answer += chunk
  return { answer, ms: performance.now() - begun }
}
