import { nextTurn } from '../waiting.js'
import type { Engine } from './engine.js'
import { createStatuses, WORKER } from './entry-status.js'
import type { Lanes } from './lanes.js'
import { readTopics } from './read-topics.js'
import { createTopicRetirement } from './retire-topics.js'
import { type Connection, sql } from './sql.js'
import type { HandleTopics, Topic } from './store.js'
import { unhandledEvents } from './unhandled-events.js'
import { BATCH, createWaitingEntries } from './waiting-entries.js'
import { withinBytes } from './within-bytes.js'

/**
 * The table `handlers`: the topics that any process has handlers for. They decide whether a new entry is pending.
 *
 * | topic | entered | left | new entries |
 * |---|---|---|---|
 * | absent | no process has named it for three days | a process names it: not ready | unhandled; changes wait |
 * | not ready | a process names it; no process has named it for `retireMs`, and entries in lanes wait again | all waiting entries are pending: ready. Not named for three days: absent | wait, behind those that wait already |
 * | ready | all its waiting entries were made pending, in order | no process has named it for `retireMs`: not ready | pending |
 *
 * A worker is a process that has called `handleTopics`. Before the first worker has named its topics, every entry waits.
 * A transaction that writes entries of a topic that is not ready locks the row, so that no entry begins to wait after the
 * last batch.
 */
export function createHandledTopics(engine: Engine, lanes: Lanes) {
  /** The topics of this process. Entries that it receives for them are pending even before the row exists. */
  let own = new Set<Topic>()
  let isWorker = false
  const { markUnhandled, release, makePending } = createWaitingEntries(engine, lanes)
  const { retire, setAside } = createTopicRetirement(engine, lanes)

  return {
    statuses: createStatuses(engine, () => ({ own, isWorker })),

    /** See the port. True when entries became pending or waiting. `isClosed` ends it between two batches. */
    async handle(
      { topics, rescueMs, retireMs }: HandleTopics,
      write: Engine['write'],
      isClosed: () => boolean,
    ) {
      own = new Set(topics)
      isWorker = true
      let moved = 0
      let namedAt = Number.NEGATIVE_INFINITY
      // Repeated between batches, so that no other process retires the topics meanwhile.
      const nameEvery = async (atMostEveryMs: number) => {
        if (engine.clock.monotonic() - namedAt < atMostEveryMs) return false
        namedAt = engine.clock.monotonic()
        return write((trx) => nameTopics(engine, trx, topics))
      }
      const inBatches = async (batch: (trx: Connection) => Promise<number | boolean>) => {
        while (!isClosed() && (await write(batch))) {
          moved++
          await nextTurn()
          await nameEvery(retireMs / 6)
        }
      }
      const isFirst = await nameEvery(0)
      if (topics.length > 0) await inBatches((trx) => release(trx, topics))
      if (isFirst) await inBatches(markUnhandled)
      if (topics.length > 0 && rescueMs > 0) {
        const late = await unhandledEvents(engine, own, rescueMs)
        await inBatches(async (trx) => {
          const batch = withinBytes(late.slice(0, BATCH))
          late.splice(0, batch.length)
          if (batch.length > 0) await makePending(trx, batch, 'unhandled')
          return batch.length
        })
      }
      if (topics.length > 0) {
        if (moved > 0) await nameEvery(0)
        await write((trx) => retire(trx, retireMs))
        await inBatches((trx) => setAside(trx, retireMs, own))
      }
      return moved > 0
    },
  }
}

/** Writes that a process has these topics. True when it is the first worker. */
async function nameTopics(engine: Engine, trx: Connection, topics: readonly Topic[]): Promise<boolean> {
  const isFirst = !(await readTopics(engine, trx)).all.has(WORKER)
  const json = JSON.stringify([WORKER, ...topics].sort().map((topic) => ({ topic })))
  await sql`
    insert into handlers (topic, seen_at, ready)
    select topic, ${engine.now()}, 0 from ${engine.rows(json, { topic: 'text' })} as named where true
    on conflict (topic) do update set seen_at = ${engine.now()}`.execute(trx)
  return isFirst
}

export type HandledTopics = ReturnType<typeof createHandledTopics>
