import { beforeAll, describe, expect, it } from '@jest/globals'
import { HOUR } from '../../../lib/base/clock.js'
import { COUNTED_UP_TO, type Store } from '../../../lib/store/port/store.js'
import type { Query } from '../../../lib/store/sql/sql.js'
import { forWholeFile } from '../../support/clean-up.js'
import {
  DONE,
  EVERY_TOPIC,
  ending,
  eventOf,
  finish,
  handling,
  leasedEntries,
} from '../../support/conformance/lab.js'
import { useEngine } from '../../support/engines/engines.js'
import type { PostgresServer } from '../../support/engines/postgres.js'
import { planOfPostgres, rowsOf } from '../../support/engines/postgres-plan.js'
import { planOfSqlite, walksOf } from '../../support/engines/sqlite-plan.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'

const MANY = 40_000
/** As many rows as one statement can insert quickly. */
const PART = 10_000
/** The number of rows of a table that one statement may visit: its own limit and a margin. */
const MAX_ROWS = 4_000

const CALLS: Record<string, (store: Store) => Promise<unknown>> = {
  accept: (store) => store.accept([eventOf('s1', { key: 'hung' }), eventOf('s2', { key: 'new' })]),
  'claim and finish': async (store) => {
    const due = await leasedEntries(store, { limit: 8, entryLimit: 64 })
    expect(due.length).toBeGreaterThan(0)
    await finish(store, [...new Map(due.map((each) => [each.key, ending(each, DONE)])).values()])
  },
  renewLane: (store) => store.renewLane({ id: 'hung', leaseToken: 'held' }, 60_000),
  'due suspect': (store) =>
    store.dueSuspect({ kinds: ['lane', 'read'], topics: EVERY_TOPIC, exceptKeys: [] }),
  'claim a suspect lane': (store) =>
    store.claimSuspectLane({ leaseMs: 60_000, topics: EVERY_TOPIC, exceptKeys: [] }),
  handleTopics: (store) =>
    store.handleTopics({ topics: [...EVERY_TOPIC, 'event:x'], rescueMs: 10_000, retireMs: HOUR }),
  'replayEntry of a pending one': (store) => store.replayEntry('pending 20000'),
  'replayEntry of a done one': (store) => store.replayEntry('done 5'),
  prune: (store) => store.prune({ eventsMs: HOUR, changesMs: HOUR, actionsMs: HOUR, deadMs: HOUR }),
  'prune that finds nothing': (store) =>
    store.prune({ eventsMs: 1e12, changesMs: 1e12, actionsMs: 1e12, deadMs: 1e12 }),
  counts: (store) => store.counts(),
  'due work': (store) => store.dueWork({ withinMs: 1_000 }),
  'due work with handlers': (store) => store.dueWork({ withinMs: 1_000, topics: EVERY_TOPIC }),
  'list all': (store) => store.listEntries({}),
  'list by status': (store) => store.listEntries({ status: 'dead' }),
  'list by status and kind': (store) => store.listEntries({ status: 'done', kind: 'change' }),
  'list by kind': (store) => store.listEntries({ kind: 'unrecognised', before: 'done 30000' }),
  'list retried entries': (store) => store.listEntries({ status: 'retrying' }),
  'list by business': (store) => store.listEntries({ businessUid: 'b1', status: 'done' }),
  'list by name': (store) => store.listEntries({ name: 'dead', limit: 5 }),
  'list changes of a business': (store) => store.listEntries({ kind: 'change', businessUid: 'b1' }),
  'get an entry': (store) => store.getEntry('done 7'),
  'the entitlements from an entry on': (store) => store.entitlementsFrom('done 7'),
  'the timeline of a business': (store) => store.timelineOf('b1', { limit: 100 }),
  'record an action': (store) => store.recordAction({ ...ACTION, id: 'a1', name: 'look' }),
  'erase a business': (store) => store.erase('b1', { ...ACTION, id: 'a2', name: 'erase' }),
  'list by subscription': (store) => store.listEntries({ subscriptionUid: 's1' }),
  'list by subscriptions': (store) => store.listEntries({ subscriptionUid: ['s1', 's2', 's3'] }),
}

/** When the statistics were made: before most entries came. */
const WHEN = [
  'of few entries',
  'of a time when nothing was pending',
  'of a time when all was pending',
] as const
type When = (typeof WHEN)[number]

/** Moves all entries, which takes long with many. */
const SET_ASIDE = (store: Store) => store.handleTopics({ topics: ['change'], rescueMs: 0, retireMs: -1 })

const ACTION = { businessUid: 'b1', payload: '{}' }

describe('G20 the statements of the queue visit few rows, with any number of unhandled or finished entries:', () => {
  const engine = useEngine('PostgreSQL')

  it.each(Object.entries({ ...CALLS, 'set events aside': SET_ASIDE }))(
    '%s on SQLite',
    async (_name, call) => {
      const { store, queriesOf, sql } = await openStoreWithSql('sqlite::memory:')
      await handling(store, EVERY_TOPIC)
      await sql(crowd('done', 'done', 1_000))
      await sql(crowd('aside', 'unhandled', 10))
      await sql(crowd('unhandled', 'unhandled', 10))
      await sql(crowd('retired', 'pending', 10, undefined, 1, 'event:y'))
      await sql(
        `insert into lanes (key, topic, due_at, lease_token, lapses) select key, topic, 1, null, 0 from journal where name = 'retired'`,
      )
      await store.accept([eventOf('s1', { key: 'due' })])
      const queries = (await queriesOf(() => call(store))).filter(({ text }) => /journal|lanes/.test(text))
      for (const query of new Map(queries.map((each) => [each.text, each])).values()) {
        const plan = await planOfSqlite(query)
        const steps = plan.map(({ detail }) => detail)
        // Given values are not looked up.
        if (!/^\s*insert into \w+[^)]*\)\s*values \(/.test(query.text))
          expect(steps.length).toBeGreaterThan(0)
        const scans = steps.filter((step) => /^SCAN (journal|lanes|last)\b/.test(step) && !/USING/.test(step))
        // In the index of lanes, only the smallest topic is read.
        const walks = steps.filter((step) =>
          /SEARCH journal USING (INTEGER PRIMARY KEY \(rowid[<>]|INDEX journal_status \(status=\?\))/.test(
            step,
          ),
        )
        walks.push(...walksOf(query, plan))
        expect({ sql: query.text, scans, walks }).toEqual({ sql: query.text, scans: [], walks: [] })
      }
    },
  )

  it('settling on SQLite reads its batch once, not once for each entry', async () => {
    const { store, queriesOf } = await openStoreWithSql('sqlite::memory:')
    await handling(store, EVERY_TOPIC)
    await store.accept([eventOf('s1', { key: 'due' })])
    const queries = await queriesOf(() =>
      (CALLS['claim and finish'] as (store: Store) => Promise<unknown>)(store),
    )
    const settling = queries.find(({ text }) => /^\s*update journal/.test(text))
    if (!settling) throw new Error('nothing was settled')
    const plan = await planOfSqlite(settling)
    const steps = plan.map(({ detail }) => detail).filter((step) => /^(SCAN|SEARCH)/.test(step))
    expect(steps.slice(0, 2)).toMatchObject(
      [/^SCAN json_each/, /^SEARCH journal USING .*\(id=\?\)/].map((each) => expect.stringMatching(each)),
    )
  })

  it('subscriptions for people, and those to erase, are found by an index on SQLite', async () => {
    const { store, queriesOf } = await openStoreWithSql('sqlite::memory:')
    const asked = await queriesOf(async () => {
      for (const which of [
        {},
        { businessUid: 'b1' },
        { candidateBusinessUid: 'b1' },
        { subscriptionUid: 's1' },
      ])
        await store.listSubscriptions({ ...which, after: 'a', limit: 10 })
      await store.listBusinesses({ after: 'a', limit: 10 })
      await store.erase('b1', { ...ACTION, id: 'a2', name: 'erase' })
    })
    const queries = asked.filter(({ text }) => /subscriptions/.test(text))
    expect(queries.length).toBeGreaterThan(5)
    for (const query of queries) {
      const steps = (await planOfSqlite(query)).map(({ detail }) => detail)
      const bad = steps.filter((step) => /SCAN subscriptions|TEMP B-TREE/.test(step))
      const isFound = steps.some((step) => /SEARCH subscriptions USING (COVERING )?INDEX/.test(step))
      expect({ sql: query.text, bad, isFound }).toEqual({ sql: query.text, bad: [], isFound: true })
    }
  })

  const crowded = new Map<When, string>()
  beforeAll(async () => {
    for (const when of WHEN) {
      const address = await engine.freshAddress()
      crowded.set(when, address)
      await forWholeFile(() => fillWithCrowds(engine.server(), address, when))
    }
  }, 240_000)

  it.each(['none', ...WHEN] as const)(
    'all of them on PostgreSQL (statistics: %s)',
    async (statistics) => {
      const from = crowded.get(statistics === 'none' ? 'of few entries' : statistics) as string
      const address = await engine.server().copyDatabase(from)
      if (statistics === 'none') await forgetStatistics(engine.server(), address)
      const lab = await openStoreWithSql(address)
      const { store } = lab
      for (const [name, call] of Object.entries(CALLS)) {
        const queries = (await lab.queriesOf(() => call(store))).filter(({ text }) =>
          /journal|lanes/.test(text),
        )
        expect(queries.length).toBeGreaterThan(0)
        for (const query of new Map(queries.map((each) => [each.text, each])).values()) {
          const plan = await withName(name, query, () => planOfPostgres(lab, query))
          const ofQueue = plan.filter((node) => ['journal', 'lanes'].includes(node['Relation Name'] ?? ''))
          const most = Math.max(0, ...ofQueue.map(rowsOf))
          const limit = name === 'counts' ? 6 * COUNTED_UP_TO : MAX_ROWS
          if (most > limit) throw new Error(`${name} visits ${most} rows: ${query.text}`)
        }
      }
    },
    120_000,
  )
})

/** Inserts hundreds of thousands of entries in every state into a database whose statistics are older. */
async function fillWithCrowds(server: PostgresServer, address: string, when: When) {
  const { store, sql } = await openStoreWithSql(address)
  for (const table of ['journal', 'lanes', 'handlers', 'subscriptions', 'searches'])
    await sql(`alter table ${table} set (autovacuum_enabled = false)`)
  await handling(store, EVERY_TOPIC)

  async function insertEnded() {
    await inParts((first) => sql(crowd('done', 'done', PART, undefined, first)))
    await sql(crowd('dead', 'dead', 10_000))
    await sql(crowd('aside', 'unhandled', 10_000))
    await sql(crowd('unhandled', 'unhandled', 10_000))
  }
  const acceptTwo = () => store.accept([eventOf('s1', { key: 'due' }), eventOf('s1', { key: 'due too' })])
  const analyze = () => server.sql('vacuum analyze', [], databaseOf(address))
  async function insertPending() {
    await inParts((first) => sql(crowd('pending', 'pending', PART, `'hung'`, first)))
    await sql(crowd('retrying', 'pending', 10_000, `'retrying ' || n`))
    await sql(
      `insert into lanes (key, topic, due_at, lease_token, lapses) values ('hung', 'event:x', ${Date.now() + HOUR}, 'held', 0)`,
    )
    await sql(
      `insert into lanes (key, topic, due_at, lease_token, lapses) select key, topic, ${Date.now() + HOUR}, null, 0 from journal where name = 'retrying'`,
    )
    await inParts((first) => sql(crowd('due', 'pending', PART, undefined, first)))
    await inParts((first) =>
      sql(`insert into lanes (key, topic, due_at, lease_token, lapses) select key, topic, 1, null, 0 from journal
        where name = 'due' and seq % ${MANY / PART} = ${Math.floor(first / PART)}`),
    )
  }

  const steps = {
    'of few entries': [acceptTwo, analyze, insertEnded, insertPending],
    'of a time when nothing was pending': [insertEnded, analyze, acceptTwo, insertPending],
    'of a time when all was pending': [acceptTwo, insertPending, analyze, insertEnded],
  }
  for (const step of steps[when]) await step()
  await store.close()
}

/** Removes the statistics, as if nothing had ever been analyzed: no values, and -1 for an unknown number of rows. */
async function forgetStatistics(server: PostgresServer, address: string) {
  const ours = `(select oid from pg_class where relnamespace = 'marketplace_webhooks'::regnamespace)`
  await server.sql(
    `delete from pg_statistic where starelid in ${ours};
     update pg_class set reltuples = -1, relpages = 0, relallvisible = 0 where oid in ${ours} and relkind = 'r'`,
    [],
    databaseOf(address),
  )
}

const databaseOf = (address: string) => new URL(address).pathname.slice(1)

async function withName<T>(name: string, query: Query, work: () => Promise<T>): Promise<T> {
  return work().catch((error) => {
    throw new Error(`${name}: ${error.message}: ${query.text}`)
  })
}

async function inParts(insert: (first: number) => Promise<unknown>) {
  for (let first = 1; first < MANY; first += PART) await insert(first)
}

function crowd(
  word: string,
  status: string,
  count: number,
  key = `'${word} ' || n`,
  first = 1,
  topic = 'event:x',
): string {
  const attempts = word === 'retrying' ? 1 : 0
  const settledAt = ['done', 'dead', 'aside'].includes(word) ? `${Date.now()}` : 'null'
  return `insert into journal
    (id, kind, name, topic, key, business_uid, subscription_uid, payload, status, attempts, received_at, settled_at, cause)
    with recursive numbers(n) as (select ${first} union all select n + 1 from numbers where n < ${first + count - 1})
    select '${word} ' || n, 'event', '${word}', '${topic}', ${key}, 'b' || (n % 1000), 's' || (n % 1000), '{}', '${status}',
      ${attempts}, ${Date.now()}, ${settledAt}, case when n % 10 = 0 then 'reconcile' end from numbers`
}
