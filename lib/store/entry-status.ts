import type { Script } from './dialect.js'
import type { Engine } from './engine.js'
import { prepareSteadyQuery } from './script.js'
import { type Sql, sql } from './sql.js'
import { type EntryKind, type EntryStatus, isTopicAmong, type Topic } from './store.js'

/**
 * This row of `handlers` is not a topic. `seen_at` above 0: there was a worker, so a new event of a topic without a row is
 * unhandled. `ready`: a worker has lived through its start.
 */
export const WORKER: Topic = 'worker'

/**
 * The status of a new entry by its topic and kind. `handled-topics.ts` has the rules.
 *
 * @param isWorker whether this process is a worker
 */
export function createStatuses(engine: Pick<Engine, 'compile' | 'forShare'>, isWorker: () => boolean) {
  const query = (lock: Sql) =>
    prepareSteadyQuery(
      engine,
      sql<Row>`select topic, ready, case when seen_at > 0 then 1 else 0 end as named from handlers order by topic ${lock}`,
    )
  const read = query(sql``)
  const readAndLock = query(engine.forShare)

  function* topicsOf(reading: Script<readonly Row[]>): Script<Known> {
    const rows = yield* reading
    return {
      all: new Set(rows.map(({ topic }) => topic)),
      isWorkedOn: rows.some(({ topic, named }) => topic === WORKER && Number(named) === 1),
      ready: new Set(rows.filter(({ ready }) => Number(ready) === 1).map(({ topic }) => topic)),
    }
  }

  return function* statuses(topics: Iterable<Topic>): Script<(topic: Topic, kind: EntryKind) => EntryStatus> {
    let known = yield* topicsOf(read())
    // While the first workers begin, a topic without a row may be named at any moment.
    const isUndecided = (topic: Topic) =>
      !isTopicAmong(known.ready, topic) && (isTopicAmong(known.all, topic) || !known.ready.has(WORKER))
    for (const topic of new Set(topics)) {
      if (!isUndecided(topic)) continue
      // The first look waits for a process that is naming topics, and does not see their new rows. The second one does.
      yield* readAndLock()
      known = yield* topicsOf(readAndLock())
      break
    }
    const decided = new Map<Topic, EntryStatus>()
    return (topic, kind) => {
      const status = decided.get(topic) ?? decide(topic, kind)
      decided.set(topic, status)
      return status
    }

    function decide(topic: Topic, kind: EntryKind): EntryStatus {
      if (isTopicAmong(known.ready, topic)) return 'pending'
      if (isTopicAmong(known.all, topic)) return 'waiting'
      const isDecided = isWorker() || known.isWorkedOn
      return kind !== 'change' && isDecided ? 'unhandled' : 'waiting'
    }
  }
}

interface Row {
  topic: Topic
  ready: number
  named: number
}

interface Known {
  all: Set<Topic>
  /** Whether there was a worker. */
  isWorkedOn: boolean
  ready: Set<Topic>
}
