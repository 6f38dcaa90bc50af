import { spread } from '../backoff.js'
import { type Clock, MINUTE, SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import { newId } from '../ids.js'
import type { Instance, Store } from '../store/store.js'
import { VERSION } from '../version.js'
import { withDeadline } from '../waiting.js'

/** The database and the processes that use it. */
export interface Deployment {
  /** Version of the database schema. */
  schemaVersion: number
  /** The one that started first first. */
  instances: InstanceStatus[]
}

/** A process that uses the database. Times are ISO 8601, UTC. */
export interface InstanceStatus {
  /** Unique to each start. */
  id: string
  /** Version of this package. */
  version: string
  /** Whether it reads and handles. False: it only receives. */
  hasWorker: boolean
  startedAt: string
  /** When it last reported that it runs, which it does once a minute. */
  seenAt: string
  /** Whether it is the marketplace that answers. */
  isThis: boolean
}

const REPORT_MS = MINUTE
/** How long a killed instance stays listed. Two of its reports may fail. */
const FORGET_MS = 3 * MINUTE
const ANSWER_MS = 5 * SECOND
const CLOSE_MS = SECOND

/**
 * Reports this instance to the store once a minute, and lists all instances. It is only information: a report that fails
 * is logged, and the next one follows in a minute.
 */
export function createDeployment(options: {
  store: Pick<Store, 'schemaVersion' | 'reportInstance' | 'forgetInstance' | 'instances'>
  hasWorker: boolean
  clock: Clock
  onError(error: unknown): void
}) {
  const { store, hasWorker, clock, onError } = options
  const id = newId(clock.now())
  const startedAt = clock.monotonic()
  let underWay: Promise<void> | undefined
  let isStored = false
  let isClosed = false
  let timer: unknown

  /** One report at a time. Never rejects. */
  function report(): Promise<void> {
    underWay ??= write().finally(() => {
      underWay = undefined
    })
    return underWay
  }

  async function write() {
    clock.clearTimeout(timer)
    const startedAgoMs = Math.max(0, clock.monotonic() - startedAt)
    try {
      await store.reportInstance({ id, version: VERSION, hasWorker, startedAgoMs, forgetMs: FORGET_MS })
      isStored = true
    } catch (error) {
      onError(error)
    }
    if (!isClosed) timer = clock.setTimeout(report, spread(REPORT_MS, 0.1))
  }

  function start() {
    if (!isClosed && !isStored) void report()
  }

  async function look(): Promise<Deployment> {
    // Waits until the store is open: a report that waits for it would store a later start.
    const schemaVersion = await store.schemaVersion()
    // So that the answer contains this instance.
    start()
    await underWay
    const instances = await store.instances({ withinMs: FORGET_MS })
    return { schemaVersion, instances: instances.map((instance) => publicInstance(instance, id)) }
  }

  async function forget() {
    await underWay
    if (isStored) await store.forgetInstance(id)
  }

  return {
    /** To be called when the store is open. */
    start,

    /** Rejects `store_unavailable`, at the latest after five seconds. */
    deployment: (): Promise<Deployment> =>
      withDeadline(
        look(),
        ANSWER_MS,
        clock,
        () =>
          new MarketplaceError(
            'store_unavailable',
            `Cannot list the instances: the store did not answer within ${ANSWER_MS / SECOND} s`,
          ),
      ),

    /** Ends the reports and deletes this instance, within CLOSE_MS: a store that hangs must not delay the close. */
    async close() {
      isClosed = true
      clock.clearTimeout(timer)
      await withDeadline(
        forget(),
        CLOSE_MS,
        clock,
        () => new Error('the store did not delete this instance in time'),
      ).catch(onError)
    },
  }
}

function publicInstance({ startedAt, seenAt, ...instance }: Instance, ownId: string): InstanceStatus {
  return {
    ...instance,
    startedAt: new Date(startedAt).toISOString(),
    seenAt: new Date(seenAt).toISOString(),
    isThis: instance.id === ownId,
  }
}
