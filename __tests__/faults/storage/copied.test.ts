import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import Database from 'libsql'
import pg from 'pg'
import {
  copyStore,
  type JournalEntry,
  type Marketplace,
  type MarketplaceOptions,
  postgresStore,
} from '../../../lib/index.js'
import type { PostgresClient } from '../../../lib/postgres/connection.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { onCleanUp, temporaryFolder } from '../../support/clean-up.js'
import { page } from '../../support/docs/pages.js'
import { ENGINE_NAMES, ENGINES, type EngineName } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { notice } from '../../support/events.js'
import { quietWarnings } from '../../support/output.js'
import { CLI, settingsFor } from '../../support/processes/cli.js'
import { startProcess } from '../../support/processes/running-process.js'
import { runScript } from '../../support/processes/script.js'
import { createScene, deliver, openMarketplace, type Scene, startPlatform } from '../../support/scene.js'
import { NUMBERS } from '../../support/scenes/many-subscriptions.js'
import { until } from '../../support/until.js'

const ENGINE = { SQLite: ENGINES.SQLite(), PostgreSQL: ENGINES.PostgreSQL() }
const PAIRS = ENGINE_NAMES.flatMap((from) => ENGINE_NAMES.map((to) => [from, to] as const))
const BY = { actor: 'ada' }

describe.each(PAIRS)('C196 a copy from %s to %s', (fromEngine, toEngine) => {
  it('has every row of the source, with its columns and in its order, and the source stays as it is', async () => {
    const { from } = await lived(fromEngine)
    const to = await ENGINE[toEngine].freshAddress()
    const before = await rowsAt(from)
    const summary = await copyStore(from, to, { ...BY, reason: 'a larger machine' })
    const [after, source] = [await rowsAt(to), await rowsAt(from)]
    const isTakenAway = fromEngine === 'PostgreSQL'
    expect(source).toEqual({
      ...before,
      owner: before.owner.map((row) =>
        isTakenAway ? { ...row, fingerprint: `copied ${row.fingerprint}` } : row,
      ),
    })
    const copies = after.journal.splice(-1)
    expect(after).toEqual({ ...before, leases: before.leases.map((row) => ({ ...row, has_run_out: 1 })) })
    expect(copies).toMatchObject([{ kind: 'action', name: 'copy', status: 'done', business_uid: null }])
    expect(JSON.parse(String(copies[0]?.payload))).toEqual({
      actor: 'ada',
      action: 'copy',
      reason: 'a larger machine',
      entry_id: null,
    })
    const entries = { pending: 0, unhandled: 0, done: 0, dead: 0 }
    for (const { status } of before.journal) entries[status as keyof typeof entries]++
    expect(summary).toEqual({ subscriptions: before.subscriptions.length, entries })
    // All that a handler can have left behind is among them.
    expect(Math.min(...Object.values(entries))).toBeGreaterThan(0)
    expect(before.leases).toHaveLength(3)
    expect(before.subscriptions).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ unread: 1 }),
        expect.objectContaining({ gone: 'ended' }),
        expect.objectContaining({ suspect: 1, lapses: 2 }),
      ]),
    )
  }, 60_000)

  it('lets the app on the target handle what was not finished, in order and once, and answer as before', async () => {
    const { from, platform, answers } = await lived(fromEngine)
    const left = (await rowsAt(from)).journal.filter(({ status }) => status === 'pending')
    const to = await ENGINE[toEngine].freshAddress()
    await copyStore(from, to, BY)
    const calls: string[] = []
    const app = openMarketplace(platform, { store: to })
    const note = ({ id }: { id: string }) => void calls.push(id)
    app.onPurchaseChange(note)
    app.on('purchasable_subscription/update', note)
    await app.start()
    for (const [business, answer] of answers)
      expect([business, await app.isEntitled(business)]).toEqual([business, answer])
    const ids = left.map(({ id }) => String(id))
    expect(new Set(left.map(({ key }) => key)).size).toBeLessThan(left.length)
    await until(
      'all are handled',
      async () => {
        await app.settled()
        return ids.every((id) => calls.includes(id))
      },
      60_000,
    )
    for (const key of new Set(left.map((each) => each.key))) {
      const ofKey = left.filter((each) => each.key === key).map(({ id }) => String(id))
      expect(calls.filter((id) => ofKey.includes(id))).toEqual(ofKey)
    }
    // What was done, dead or unhandled is not handled again. Further calls are of changes that the app has found since.
    const old = (await rowsAt(from)).journal.filter(({ status }) => status !== 'pending').map(({ id }) => id)
    expect(calls.filter((id) => old.includes(id))).toEqual([])
    expect(new Set(calls).size).toBe(calls.length)
    // The dead entry can be replayed, and the handler that comes now gets the event that nobody had.
    expect(await app.journal.replayAll({ status: 'dead' })).toMatchObject({ replayed: 1 })
    app.on('application/installed', note)
    const [unhandled] = await app.journal.list({ status: 'unhandled', kind: 'event' })
    await until(
      'both are handled',
      async () =>
        (await app.journal.list({ status: 'dead' })).length === 0 && calls.includes(String(unhandled?.id)),
    )
    expect(new Set(calls).size).toBe(calls.length)
  }, 60_000)
})

describe('C335 a process on PostgreSQL that a copy does not see', () => {
  it('writes nothing into the source from the first row on, and an app that starts on the source takes it back', async () => {
    const { from, platform, uids } = await lived('PostgreSQL')
    const { app, record, target } = await unseen(from, platform)
    const to = await ENGINE.PostgreSQL.freshAddress()
    const meanwhile: Promise<unknown>[] = []
    await copyStore(from, to, {
      ...BY,
      onProgress: () => meanwhile.push(record('during').catch((error) => error)),
    })
    expect(meanwhile.length).toBeGreaterThan(0)
    const isRefused = {
      code: 'store_unavailable',
      message: expect.stringMatching(/was copied into another one.*start the app on the other/),
    }
    expect(await Promise.all(meanwhile)).toMatchObject(meanwhile.map(() => isRefused))
    await expect(record('after')).rejects.toMatchObject(isRefused)
    const late = notice('paid', uids.get('paid') as string)
    expect((await deliver(target, late)).status).toBe(503)
    expect((await app.health()).status).toBe('failing')

    const again = openMarketplace(platform, { store: from, worker: false })
    await again.start()
    await again.journal.recordAction({ actor: 'ada', action: 'back' })
    expect((await again.journal.list({ kind: 'action' })).map(({ name }) => name)).toEqual(['back'])
  }, 60_000)

  it('has the source again after a copy that failed; a copy fails when an app starts on the source meanwhile', async () => {
    const { from, platform } = await lived('PostgreSQL')
    const { record } = await unseen(from, platform)
    const to = await ENGINE.PostgreSQL.freshAddress()
    const stopped = copyStore(from, to, {
      ...BY,
      onProgress() {
        throw new Error('stopped')
      },
    })
    await expect(stopped).rejects.toMatchObject({
      code: 'copy_failed',
      message: expect.stringContaining('stopped'),
    })
    await until('the process has noticed', () =>
      record('goes on')
        .then(() => true)
        .catch(() => false),
    )

    // So the copy takes longer than the start.
    await filled(from, 30_000)
    let starting: Promise<void> | undefined
    const copying = copyStore(from, to, {
      ...BY,
      onProgress() {
        starting ??= openMarketplace(platform, {
          store: withoutListening(from),
          worker: false,
        }).start()
      },
    })
    await expect(copying).rejects.toMatchObject({
      code: 'copy_failed',
      message: expect.stringContaining('the source has changed'),
    })
    await starting
  }, 60_000)

  /** An app that does not listen, and without a worker. */
  async function unseen(from: string, platform: Scene['platform']) {
    const store = withoutListening(from)
    const { baseUrl, authUrl } = platform
    const { marketplace: app, target } = await createScene({
      store,
      worker: false,
      platform: { baseUrl, authUrl },
    })
    await app.start()
    return { app, target, record: (action: string) => app.journal.recordAction({ actor: 'ada', action }) }
  }
})

describe('C196 the steps of the page on migrating', () => {
  it('bring an app from SQLite to PostgreSQL, word by word', async () => {
    const folder = temporaryFolder()
    const { from, platform, answers } = await lived('SQLite', `sqlite:${join(folder, 'marketplace.db')}`)
    // As the store says of it.
    platform.faults.add({ on: 'read', kind: 'status', status: 404, business_uid: 'ended' })
    const left = (await rowsAt(from)).journal.filter(({ status }) => status === 'pending')
    const DATABASE_URL = await ENGINE.PostgreSQL.freshAddress()
    const [, chapter = ''] = page('docs/migrating.md').split('## From SQLite to PostgreSQL\n')
    const blocks = [...chapter.matchAll(/^ *```sh\n(.*?)^ *```/gms)].map(([, block]) => block)
    expect(blocks).toHaveLength(2)
    const shell = startProcess(
      'bash',
      ['-ec', ['npx() { shift; node "$CLI" "$@"; }', ...blocks, 'echo "now $MARKETPLACE_STORE"'].join('\n')],
      { cwd: folder, env: { ...process.env, ...settingsFor(platform, from), CLI, DATABASE_URL } },
    )
    const { code, stdout, stderr } = await shell.ended
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(
      /Set MARKETPLACE_STORE to .*Reads of 5 subscriptions are requested.* yes +.* paid.*now postgres:/s,
    )

    const calls: string[] = []
    const app = openMarketplace(platform, { store: DATABASE_URL })
    app.onPurchaseChange(({ id }) => void calls.push(id))
    app.on('purchasable_subscription/update', ({ id }) => void calls.push(id))
    await app.start()
    for (const [business, answer] of answers)
      expect([business, await app.isEntitled(business)]).toEqual([business, answer])
    await until(
      'all are handled',
      async () => {
        await app.settled()
        return left.every(({ id }) => calls.includes(String(id)))
      },
      60_000,
    )
    expect(new Set(calls).size).toBe(calls.length)
    await until('health is ok, apart from what was dead', async () => {
      const { problems } = await app.health()
      return problems.every(({ code }) => code === 'entries_dead')
    })
  }, 60_000)
})

describe.each(ENGINE_NAMES)('C197 a copy into %s that is killed', (toEngine) => {
  it('leaves a target without rows that no app opens, and that the next copy fills', async () => {
    quietWarnings()
    const platform = await startPlatform()
    const from = await ENGINE.SQLite.freshAddress()
    await filled(from, 20_000)
    const to = await ENGINE[toEngine].freshAddress()
    const copying = runScript(
      { store: to },
      `await copyStore(${JSON.stringify(from)}, ${JSON.stringify(to)}, {
        actor: 'ada',
        onProgress({ done }) { if (done > 10_000) print('in the middle') },
      })
      print('ended')`,
    )
    await copying.prints('in the middle')
    copying.signal('SIGKILL')
    expect(await copying.ended).toBe('SIGKILL')
    expect(copying.output()).not.toContain('ended')

    const tooEarly = openMarketplace(platform, { store: to, adoptStore: true })
    await expect(tooEarly.start()).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(
        /a copy into it has not ended.*repeat the same `marketplace-webhooks copy`/,
      ),
    })
    expect(await tooEarly.health()).toMatchObject({
      status: 'failing',
      problems: [{ code: 'store_not_open' }],
    })
    await tooEarly.close()
    const rest = await rowsAt(to)
    expect([rest.subscriptions, rest.journal, rest.lanes, rest.handlers]).toEqual([[], [], [], []])
    // It contains nothing that could be copied.
    await expect(copyStore(to, await ENGINE.SQLite.freshAddress(), BY)).rejects.toMatchObject({
      code: 'copy_failed',
      message: expect.stringContaining('a copy into the source has not ended'),
    })

    await copyStore(from, to, BY)
    const app = openMarketplace(platform, { store: to, worker: false })
    await app.start()
    expect(await app.journal.list({ limit: 1, status: 'pending' })).toHaveLength(1)
    await app.close()
    const [source, target] = [await rowsAt(from), await rowsAt(to)]
    target.journal.splice(-1)
    expect(target.journal).toEqual(source.journal)
    expect(target.lanes).toEqual(source.lanes)
  }, 120_000)
})

describe('C198 a copy is refused, and neither database is changed,', () => {
  it.each(PAIRS)(
    'from %s to %s, when the target is not empty',
    async (fromEngine, toEngine) => {
      const [{ from }, other] = [await lived(fromEngine), await lived(toEngine)]
      await refused(
        from,
        other.from,
        'copy_failed',
        /the target is not empty: its table subscriptions has rows/,
      )
    },
    60_000,
  )

  it.each(ENGINE_NAMES)(
    'when the target is on %s and belongs to another app',
    async (toEngine) => {
      const { from, platform } = await lived('SQLite')
      const to = await ENGINE[toEngine].freshAddress()
      await startAndClose(
        openMarketplace(platform, { store: to, worker: false, app: { clientId: 'another' } }),
      )
      await refused(from, to, 'copy_failed', /the target belongs to another app/)
    },
    60_000,
  )

  it.each(ENGINE_NAMES)(
    'when a process uses the source or the target on %s',
    async (engine) => {
      const { from, platform } = await lived(engine)
      const to = await ENGINE[engine].freshAddress()
      const onSource = openMarketplace(platform, { store: from, worker: false })
      await onSource.start()
      const isUsed = {
        code: 'store_in_use',
        message: expect.stringMatching(/Stop every process of the app first/),
      }
      if (engine === 'PostgreSQL') await isHeard(from)
      await expect(copyStore(from, to, BY)).rejects.toMatchObject(isUsed)
      expect((await onSource.health()).status).not.toBe('failing')
      await onSource.close()

      const onTarget = openMarketplace(platform, { store: to, worker: false })
      await onTarget.start()
      if (engine === 'PostgreSQL') await isHeard(to)
      await expect(copyStore(from, to, BY)).rejects.toMatchObject(isUsed)
      await onTarget.close()
      // The app has left nothing in it, so it is still a target.
      await copyStore(from, to, BY)
    },
    60_000,
  )

  it.each(PAIRS)(
    'from %s to %s, when a newer version of this package made the tables of either',
    async (fromEngine, toEngine) => {
      const { from } = await lived(fromEngine)
      const newer = async (address: string) => {
        const { sql, store } = await openStoreWithSql(address)
        await sql('update marketplace_schema set version = 1000')
        await store.close()
        return address
      }
      const to = await newer(await ENGINE[toEngine].freshAddress())
      await refused(from, to, 'copy_failed', /newer version .* tables of the target: use that version/)
      await newer(from)
      await refused(from, to, 'copy_failed', /newer version .* tables of the source: use that version/)
    },
    60_000,
  )

  it('when a process without a listening connection has leased work of the source', async () => {
    const { from } = await lived('PostgreSQL')
    const source = await openStoreWithSql(from)
    await source.sql(
      "update lanes set lease_token = 'host/1/life/1', due_at = (extract(epoch from now()) * 1000)::bigint + 60000 where lease_token is null",
    )
    await source.store.close()
    await refused(
      from,
      await ENGINE.PostgreSQL.freshAddress(),
      'store_in_use',
      /has leased work of the source/,
    )
  }, 60_000)

  it('when the source is missing, of another program, or the target itself, and when an address is none', async () => {
    const folder = temporaryFolder()
    const missing = join(folder, 'missing.db')
    const other = join(folder, 'other.db')
    const foreign = new Database(other)
    foreign.exec('create table subscriptions (a)')
    foreign.close()
    const text = join(folder, 'text.db')
    writeFileSync(text, 'no database '.repeat(1_000))
    mkdirSync(join(folder, 'folder.db'))
    const { from } = await lived('SQLite')
    const empty = await ENGINE.PostgreSQL.freshAddress()
    const to = `sqlite:${join(folder, 'target.db')}`
    const cases: [from: string, to: string, code: string, message: RegExp][] = [
      [`sqlite:${missing}`, to, 'copy_failed', /there is no database .*\. Name the one that the app uses/],
      [`sqlite:${other}`, to, 'copy_failed', /no tables of this package\. Name the database/],
      [`sqlite:${text}`, to, 'store_corrupt', /not a database/],
      [empty, to, 'copy_failed', /no tables of this package\. Name the database/],
      [from, from, 'argument_invalid', /the same database/],
      [empty, empty, 'argument_invalid', /the same database/],
      ['sqlite::memory:', to, 'argument_invalid', /only one process can use/],
      [from, 'sqlite::memory:', 'argument_invalid', /only one process can use/],
      ['marketplace.db', to, 'argument_invalid', /the source: expected sqlite:<path>/],
      [from, 'mysql://host/app', 'argument_invalid', /the target: expected sqlite:<path>/],
      [from, `sqlite:${join(folder, 'none', 'm.db')}`, 'store_unavailable', /does not exist: make it first/],
    ]
    for (const each of cases) await refused(...each)
    expect(existsSync(missing) || existsSync(join(folder, 'target.db'))).toBe(false)
    for (const actor of ['', undefined])
      await expect(copyStore(from, to, { actor } as never)).rejects.toMatchObject({
        code: 'argument_invalid',
      })
  }, 60_000)

  async function refused(from: string, to: string, code: string, message: RegExp) {
    const rows = () => Promise.all([from, to].map((each) => rowsAt(each).catch(() => 'none')))
    const isFile = [from, to].every(
      (each) => each.startsWith('postgres') || existsSync(each.slice('sqlite:'.length)),
    )
    const before = isFile ? await rows() : undefined
    const error = await copyStore(from, to, BY).catch((reason) => reason)
    expect({ from, to, code: error.code }).toEqual({ from, to, code })
    expect(error.message).toMatch(message)
    if (before) expect(await rows()).toEqual(before)
  }
})

/**
 * A database after some life of an app, which is closed: handlers that returned, failed for ever and will be tried again, one
 * under way in a process that was killed, work that ended the process, an event that nobody handles, deliveries and
 * purchases since the last worker, and subscriptions that ended.
 */
async function lived(engine: EngineName, address?: string) {
  quietWarnings()
  const from = address ?? (await ENGINE[engine].freshAddress())
  const platform = await startPlatform()
  const { baseUrl, authUrl } = platform
  const uids = new Map(
    ['paid', 'late', 'dead', 'ended'].map((business) => [
      business,
      platform.purchase({ business_uid: business, payment: 'succeeded' }).uid,
    ]),
  )
  const life = async (options: Partial<MarketplaceOptions>, work: (scene: Scene) => Promise<unknown>) => {
    const scene = await createScene({ ...options, store: from, platform: { baseUrl, authUrl } })
    const handle = ({ business_uid }: { business_uid: string }) => {
      if (business_uid === 'late') throw new Error('not yet')
    }
    if (options.worker !== false) {
      scene.marketplace.onPurchaseChange((change) => {
        if (change.business_uid === 'dead' && options.handlers) throw new Error('never')
        handle(change)
      })
      scene.marketplace.on('purchasable_subscription/update', ({ data }) =>
        handle({ business_uid: String(data.business_id) }),
      )
    }
    await scene.marketplace.start()
    await work(scene)
    await scene.marketplace.close()
  }
  const status = (
    marketplace: Marketplace,
    which: NonNullable<Parameters<Marketplace['journal']['list']>[0]>,
  ) => marketplace.journal.list(which).then((entries: JournalEntry[]) => entries.length)
  const once = { handlers: { retryDelaysMs: [] } }
  await life(once, async ({ deliver, marketplace }) => {
    await deliver(sampleDelivery('application/installed', { business_id: 'paid' }))
    await deliver(notice('dead', uids.get('dead') as string))
    await until('an entry is dead', async () => (await status(marketplace, { status: 'dead' })) > 0)
  })
  await life({}, async ({ deliver, marketplace }) => {
    for (const business of ['paid', 'ended', 'late'])
      await deliver(notice(business, uids.get(business) as string))
    await until('both are tried again', async () => (await status(marketplace, { status: 'retrying' })) >= 2)
    await until('all have access', async () => {
      const answers = await Promise.all([...uids.keys()].map((business) => marketplace.isEntitled(business)))
      return answers.every(Boolean)
    })
  })
  await life({ worker: false }, async ({ deliver }) => {
    for (let i = 0; i < 3; i++) await deliver(notice('late', uids.get('late') as string))
    await deliver(notice('paid', uids.get('paid') as string))
    await deliver(notice('new', platform.purchase({ business_uid: 'new', payment: 'succeeded' }).uid))
    await deliver('[]')
  })
  const store = await openStoreWithSql(from)
  for (const text of [
    "update subscriptions set state = null, gone = 'ended', failure = 'platform_refused' where business_uid = 'ended'",
    "update subscriptions set suspect = 1, lapses = 2, refresh_at = 1 where business_uid = 'dead'",
    `update lanes set lease_token = 'host/1/life/1', lapses = 1, suspect = 1, due_at = 1 where key = 'changes:late'`,
    "update subscriptions set lease_token = 'host/1/life/2', refresh_at = 1 where business_uid = 'late'",
    `insert into searches (business_uid, asked, by_install, search_at, searched_at, wanted_at, generation, settled_generation, doubted_at, failures, failure, lease_token)
      values ('asked', 1, 0, 1, null, 1, 1, 0, null, 2, 'platform_timeout', 'host/1/life/3'), ('installed', 0, 1, 2, 1, 2, 3, 2, 1, 0, null, null)`,
  ])
    await store.sql(text)
  await store.store.close()
  const answers = new Map([
    ['paid', true],
    ['late', true],
    ['ended', false],
    ['nobody', false],
  ])
  return { from, platform, uids, answers }
}

/** A database with this many pending entries, in lanes of ten, whose seqs are not in the order of their ids. */
async function filled(address: string, count: number) {
  const { sql, store } = await openStoreWithSql(address)
  await sql(`insert into journal (id, kind, name, topic, key, status, attempts, received_at, payload)
    ${NUMBERS(count)} select 'id-' || ((n * 7919) % ${count}), 'event', 'application/installed', 'event:application/installed',
      'lane ' || (n % ${count / 10}), 'pending', 0, 1, '{"n":' || n || '}' from numbers`)
  await sql(
    "insert into lanes (key, topic, due_at, lapses) select distinct key, topic, 1, 0 from journal where key like 'lane %'",
  )
  await store.close()
}

type Rows = Record<string, string | number | null>

/** The rows of all tables: without the numbers of entries and the ends of leases, which a copy makes anew. */
async function rowsAt(address: string) {
  const { sql, store } = await openStoreWithSql(address)
  const of = (table: string, order: string) => sql<Rows>(`select * from ${table} order by ${order}`)
  const leasesOf = async (table: string, dueAt: string) =>
    (await sql<Rows>(`select * from ${table} where lease_token is not null`)).map((row) => ({
      token: row.lease_token,
      has_run_out: Number(row[dueAt]) <= Date.now() + 1_000 ? 1 : 0,
    }))
  const leases = [
    ...(await leasesOf('lanes', 'due_at')),
    ...(await leasesOf('subscriptions', 'refresh_at')),
    ...(await leasesOf('searches', 'search_at')),
  ]
  const withoutEnd = (dueAt: string) => (row: Rows) =>
    row.lease_token === null ? row : { ...row, [dueAt]: null }
  const found = {
    subscriptions: (await of('subscriptions', 'subscription_uid')).map(withoutEnd('refresh_at')),
    journal: (await of('journal', 'seq')).map(({ seq: _, ...row }) => row as Rows),
    lanes: (await of('lanes', 'key')).map(withoutEnd('due_at')),
    handlers: await of('handlers', 'topic'),
    searches: (await of('searches', 'business_uid')).map(withoutEnd('search_at')),
    facts: await of('platform_facts', 'id'),
    owner: await of('store_owner', 'id'),
    leases,
  }
  await store.close()
  return found
}

/** A store over connections that listen to nothing, as behind a pooler: other processes do not see it. */
function withoutListening(connectionString: string) {
  const pool = new pg.Pool({ connectionString, max: 4 })
  onCleanUp(() => pool.end())
  const deaf = (client: pg.PoolClient) =>
    new Proxy(client, {
      get(target, name) {
        const value = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        if (name !== 'query') return value.bind(target)
        return (query: { text: string }) =>
          query.text.startsWith('listen ') ? Promise.reject(new Error('refused')) : target.query(query)
      },
    })
  return postgresStore({
    on: (event, listener) => pool.on(event, listener),
    off: (event, listener) => pool.off(event, listener),
    connect(callback) {
      pool.connect((error, client) => callback(error, client && (deaf(client) as unknown as PostgresClient)))
    },
  })
}

async function startAndClose(marketplace: Marketplace) {
  await marketplace.start()
  await marketplace.close()
}

/** Waits until a process listens to the database at this address. */
async function isHeard(address: string) {
  await until('a process listens', async () => {
    const rows = await ENGINE.PostgreSQL.server().sql(
      `select 1 from pg_stat_activity where datname = current_database() and query ~ 'listen'  and pid <> pg_backend_pid()`,
      [],
      new URL(address).pathname.slice(1),
    )
    return rows.length > 0
  })
}
