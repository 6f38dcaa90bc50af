import type { Engine } from './engine.js'
import { WORKER } from './entry-status.js'
import { headsOf, topicsOf } from './lane-heads.js'
import type { Lanes } from './lanes.js'
import { readTopics } from './read-topics.js'
import { type Connection, sql } from './sql.js'
import { isTopicAmong, type Topic } from './store.js'

/** The lanes and the entries of one transaction: on SQLite the event loop waits for it. */
const LANES = 50
const ENTRIES = 200

/** Retires the topics that no process names any more. `handled-topics.ts` has their states. */
export function createTopicRetirement(engine: Engine, lanes: Pick<Lanes, 'advance'>) {
  const { now, leaseNow } = engine

  /** Makes topics not ready that no process has named for `retireMs`. */
  async function retire(trx: Connection, retireMs: number) {
    await sql`
      update handlers set ready = 0
      where ready = 1 and topic <> ${WORKER} and seen_at < ${leaseNow()} - ${retireMs}`.execute(trx)
  }

  /**
   * Makes the entries at the head of a batch of lanes `waiting` whose topic is retired; returns how many lanes that
   * were. A topic that is not ready but was named lately is not retired: its process is making entries pending. A head
   * whose next try is a day away is included, for an entry behind it may have a handler.
   */
  async function setAside(trx: Connection, retireMs: number, own: ReadonlySet<Topic>): Promise<number> {
    const { ready, rows } = await readTopics(engine, trx, engine.forUpdate)
    const named = new Set(rows.flatMap(({ topic, age }) => (Number(age) <= retireMs ? topic : [])))
    for (const topic of await topicsOf(engine, trx, 'all')) {
      if ([ready, named, own].some((topics) => isTopicAmong(topics, topic))) continue
      const rows = await sql<{ key: string }>`
        select key from lanes where topic = ${topic} and (lease_token is null or due_at <= ${leaseNow()})
        order by due_at limit ${LANES} ${engine.skipLocked}`.execute(trx)
      if (rows.length === 0) continue
      const keys = rows.map(({ key }) => key)
      const heads = await headsOf(engine, trx, keys, Math.floor(ENTRIES / keys.length))
      const retired = [...heads.values()].flat().filter((row) => row.topic === topic)
      await sql`
        update journal set status = 'waiting', due_at = null, settled_at = ${now()}
        where ${engine.isOneOf(
          'id',
          retired.map(({ id }) => id),
        )} and ${sql.still(sql`status = 'pending'`)}`.execute(trx)
      await lanes.advance(trx, keys, 'all')
      return keys.length
    }
    return 0
  }

  return { retire, setAside }
}
