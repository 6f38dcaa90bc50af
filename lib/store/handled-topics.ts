import { MINUTE } from '../clock.js'
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

/** A worker that has lived so long after its first `handleTopics` has registered its handlers. */
const START_MS = MINUTE

/**
 * The table `handlers`: the topics that any process has handlers for, which decide whether a new entry is pending.
 * docs/states.md has their states.
 *
 * Events that were unhandled shortly before their topic is named wait before the topic is ready, so they are handled
 * before later ones. A transaction that writes entries of a topic that is not ready locks the row, so that no entry begins
 * to wait after the last batch. While `WORKER` is not ready, one that writes entries of an absent topic locks that row.
 */
export function createHandledTopics(engine: Engine, lanes: Lanes) {
  let isWorker = false
  /** When this worker first named its topics, by the monotonic clock. */
  let beganAt: number | null = null
  /**
   * When this worker became a first one, in the time of the store: what came before that is not history for its handlers,
   * however late they come.
   */
  let firstWorkerAt: number | null = null
  const { markUnhandled, rescue, release } = createWaitingEntries(engine, lanes)
  const { retire, setAside } = createTopicRetirement(engine, lanes)

  return {
    statuses: createStatuses(engine, () => isWorker),

    /** See the port. True when entries became pending or waiting. `isClosed` ends it between two batches. */
    async handle(
      { topics, rescueMs, retireMs }: HandleTopics,
      write: Engine['write'],
      isClosed: () => boolean,
    ) {
      const own = new Set(topics)
      let isFirst = false
      isWorker = true
      beganAt ??= engine.clock.monotonic()
      let moved = 0
      let namedAt = Number.NEGATIVE_INFINITY
      // Repeated between batches, so that no other process retires the topics meanwhile.
      const nameEvery = async (atMostEveryMs: number) => {
        if (engine.clock.monotonic() - namedAt < atMostEveryMs) return
        namedAt = engine.clock.monotonic()
        const becameFirstAt = await write((trx) => nameTopics(engine, trx, topics))
        if (becameFirstAt === null) return
        isFirst = true
        firstWorkerAt ??= becameFirstAt
      }
      const inBatches = async (batch: (trx: Connection) => Promise<number | boolean>) => {
        while (!isClosed() && (await write(batch))) {
          moved++
          await nextTurn()
          await nameEvery(retireMs / 6)
        }
      }
      await nameEvery(0)
      if (topics.length > 0) {
        if (rescueMs > 0)
          for await (const late of unhandledEvents(engine, own, {
            withinMs: rescueMs,
            orBefore: firstWorkerAt,
          })) {
            await inBatches(async (trx) => {
              const batch = withinBytes(late.slice(0, BATCH))
              late.splice(0, batch.length)
              if (batch.length > 0) await rescue(trx, batch)
              return batch.length
            })
            if (isClosed()) break
            await nameEvery(retireMs / 6)
          }
        await inBatches((trx) => release(trx, topics))
        if (moved > 0) await nameEvery(0)
      }
      if (isFirst) await inBatches(markUnhandled)
      if (isFirst && engine.clock.monotonic() - beganAt >= START_MS)
        await write((trx) => sql`update handlers set ready = 1 where topic = ${WORKER}`.execute(trx))
      await write((trx) => retire(trx, retireMs))
      await inBatches((trx) => setAside(trx, retireMs, own))
      return moved > 0
    },
  }
}

/** Writes that a process has these topics. Returns the time of the store if it is a first worker, else null. */
async function nameTopics(engine: Engine, trx: Connection, topics: readonly Topic[]): Promise<number | null> {
  const isFirst = !(await readTopics(engine, trx)).ready.has(WORKER)
  const json = JSON.stringify([WORKER, ...topics].sort().map((topic) => ({ topic })))
  await sql`
    insert into handlers (topic, seen_at, ready)
    select topic, ${engine.leaseNow()}, 0 from ${engine.rows(json, { topic: 'text' })} as named where true
    on conflict (topic) do update set seen_at = ${engine.leaseNow()}`.execute(trx)
  if (!isFirst) return null
  const [time] = await sql<{ at: number }>`select ${engine.now()} as at`.execute(trx)
  return Number(time?.at)
}

export type HandledTopics = ReturnType<typeof createHandledTopics>
