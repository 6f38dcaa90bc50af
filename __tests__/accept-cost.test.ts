import { describe, expect, it } from '@jest/globals'
import pg from 'pg'
import { systemClock } from '../lib/clock.js'
import type { PostgresClient } from '../lib/postgres/connection.js'
import type { PostgresPool } from '../lib/postgres/pool.js'
import type { Hint, Store } from '../lib/store/store.js'
import { postgresStore, storeFor } from '../lib/store-option.js'
import { onCleanUp } from './support/clean-up.js'
import { EVERY_TOPIC, handling } from './support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from './support/engines.js'
import { eventOf } from './support/events.js'
import { openStoreWithSql } from './support/store-with-sql.js'

const engines = Object.fromEntries(ENGINE_NAMES.map((name) => [name, useEngine(name)]))

describe('the cost of a batch of deliveries', () => {
  it.each([
    ['without a handler', []],
    ['that handlers get', EVERY_TOPIC],
  ] as const)('is one message on PostgreSQL, for deliveries %s', async (_name, topics) => {
    const { pool, messages } = await countingPool()
    const store = storeFor(postgresStore(pool), systemClock)
    onCleanUp(() => store.close())
    await store.open()
    await handling(store, topics)
    // The first batch asks for the topics and whether the owner has read a subscription.
    await acceptAtOnce(store, 1)
    messages.length = 0
    await acceptAtOnce(store, 100)
    // A notification of an earlier commit may be sent in between.
    const ofBatch = messages.filter((text) => !/^select pg_notify/.test(text))
    expect(ofBatch).toEqual([expect.stringMatching(/^begin; [\s\S]*insert into journal[\s\S]*; commit$/)])
  })

  it.each(ENGINE_NAMES)(
    'inserts one row for an event without a handler on %s, and writes nothing else to the queue',
    async (name) => {
      const { store, sql, queriesOf } = await openStoreWithSql(await addressOf(name))
      await handling(store, [])
      // The worker has lived through its start.
      await sql(`update handlers set ready = 1 where topic = 'worker'`)
      const queries = await queriesOf(() => acceptAtOnce(store, 100))
      // SQLite inserts 16 rows at once, and the remaining rows one by one. First it looks up the known rows.
      const rows = name === 'SQLite' ? 6 + 4 : 1
      const looks = name === 'SQLite' ? 100 : 0
      const count = (pattern: RegExp) => queries.filter(({ text }) => pattern.test(text)).length
      expect({
        requests: count(/^\s*insert into subscriptions/),
        topics: count(/from handlers/),
        inserts: count(/^\s*insert into journal/),
        all: queries.length,
      }).toEqual({ requests: rows, topics: 1, inserts: rows, all: 2 * rows + looks + 1 })
    },
  )

  it('SQLite: writes no index entry whose value stays the same, for events of known subscriptions', async () => {
    const { store, queriesOf } = await openStoreWithSql('sqlite::memory:')
    await acceptAtOnce(store, 100)
    const queries = await queriesOf(() => acceptAtOnce(store, 100))
    const requests = queries.filter(({ text }) => /(into|update) subscriptions/.test(text))
    expect(requests).toHaveLength(100)
    // The indexes by business, by failure, and of subscriptions that were never read.
    for (const { text } of requests) {
      const named = text.slice(text.indexOf(' set'), text.indexOf('where subscription_uid'))
      expect(named).toMatch(/\brefresh_at = /)
      expect(named).not.toMatch(/[,t]\s+(business_uid|failure|unread|state|gone) = /)
    }
  })

  it('is one notification for the journal and one for each business', async () => {
    const { store } = await openStoreWithSql('sqlite::memory:')
    const hints: Hint[] = []
    store.subscribe((hint) => void hints.push(hint))
    await acceptAtOnce(store, 100)
    expect(hints).toEqual([{ kind: 'requested', businessUid: 'b1' }, { kind: 'journal' }])
  })
})

describe.each(ENGINE_NAMES)('a text in the store on %s', (name) => {
  it.each([
    '$$ $1 $mw$',
    `' " \\ \\' "" E'\\\\x'`,
    '; -- /* */ %s ? :a',
    'ü 漢 😀 \u007f \u2028',
    '\\u0000 {"a":"\\u0024"}',
  ])('stays unchanged: %j', async (text) => {
    const { store } = await openStoreWithSql(await addressOf(name))
    const event = eventOf(`s ${text}`, `b ${text}`)
    await store.accept([{ ...event, payload: JSON.stringify({ text }) }])
    expect(await store.listEntries({})).toMatchObject([
      { payload: { text }, subscriptionUid: `s ${text}`, businessUid: `b ${text}` },
    ])
    expect(await store.subscriptionsOf(`b ${text}`)).toMatchObject([{ subscriptionUid: `s ${text}` }])
  })
})

function addressOf(name: string): Promise<string> {
  return (engines[name] as (typeof engines)[string]).freshAddress()
}

async function acceptAtOnce(store: Store, count: number) {
  await Promise.all(Array.from({ length: count }, (_, n) => store.accept([eventOf(`s${n}`)])))
}

/** A pool of the app that notes each message of its connections. */
async function countingPool(): Promise<{ pool: PostgresPool; messages: string[] }> {
  const own = new pg.Pool({ connectionString: await addressOf('PostgreSQL') })
  onCleanUp(() => own.end())
  const messages: string[] = []
  const noting = (client: PostgresClient): PostgresClient => ({
    query(query) {
      messages.push(query.text.trim())
      return client.query(query)
    },
    release: (destroy) => client.release(destroy),
    on: (event, listener) => client.on(event, listener),
    off: (event, listener) => client.off(event, listener),
  })
  const pool: PostgresPool = {
    connect: (callback) =>
      own.connect((error, client) => callback(error, client && noting(client as unknown as PostgresClient))),
    on: (event, listener) => own.on(event, listener),
    off: (event, listener) => own.off(event, listener),
  }
  return { pool, messages }
}
