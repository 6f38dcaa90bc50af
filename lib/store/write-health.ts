import { type Clock, SECOND } from '../base/clock.js'
import { MarketplaceError, messageOf } from '../base/errors.js'
import { newId } from '../base/ids.js'
import type { Journal } from './journal/journal.js'
import type { Lanes } from './lanes/lanes.js'
import type { Ownership } from './ownership.js'
import type { NewEvent } from './port/store.js'
import type { Engine } from './sql/engine.js'
import { type Connection, sql } from './sql/sql.js'
import { run } from './sql/writes.js'
import type { RefreshRequests } from './subscriptions/requests.js'

/** A write that takes longer is a problem: by then its sender has received 503. */
const SLOW_MS = 5 * SECOND
/** A probe this soon after a failure is ignored: it writes less than a delivery, so it may succeed on a nearly full disk. */
const RECENT_MS = 2 * SECOND
/** A probe may always take this long, even if deliveries have a shorter deadline, because it runs more statements. */
const QUICK_MS = SECOND

/**
 * Remembers why the last write or sync failed, or that one is under way for too long, until a probe was quick. Nothing
 * else proves that writing works again: a delivery may write into fewer tables than the next one. A probe writes what a delivery
 * writes, at most once a second. `problem()` starts one, and so does each successful write until one has succeeded.
 */
export function createWriteHealth(options: {
  probe(): Promise<unknown>
  /** Why writing does not work now, as the engine found by itself: for example a checkpoint whose sync failed. */
  fault?(): unknown
  isDataError(error: unknown): boolean
  clock: Pick<Clock, 'monotonic'>
}) {
  const { probe, fault, isDataError, clock } = options
  let failure: { message: string; at: number } | undefined
  /** How long the last successful probe since the failure took; undefined if there was none. */
  let probeMs: number | undefined
  let probedAt = Number.NEGATIVE_INFINITY
  let isProbing = false
  const begun = new Set<{ at: number }>()

  function failed(error: unknown) {
    if (isDataError(error) || (error instanceof MarketplaceError && error.code === 'argument_invalid')) return
    failure = { message: messageOf(error), at: clock.monotonic() }
    probeMs = undefined
  }

  async function probeSoon() {
    const beganAt = clock.monotonic()
    if (!failure || isProbing || beganAt - probedAt < SECOND) return
    probedAt = beganAt
    isProbing = true
    try {
      await probe()
      const now = clock.monotonic()
      if (failure && now - failure.at >= RECENT_MS) probeMs = now - beganAt
    } catch (error) {
      failed(error)
    } finally {
      isProbing = false
    }
  }

  return {
    async watch<T>(write: () => Promise<T>): Promise<T> {
      const beginning = { at: clock.monotonic() }
      begun.add(beginning)
      try {
        const result = await write()
        if (probeMs === undefined) void probeSoon()
        return result
      } catch (error) {
        failed(error)
        throw error
      } finally {
        begun.delete(beginning)
      }
    },

    /** Returns the problem of the last write. A probe slower than `inTimeMs` does not end it, because senders give up by then. */
    problem(inTimeMs = 3 * SECOND): string | null {
      if (probeMs !== undefined && probeMs < Math.max(inTimeMs, QUICK_MS)) failure = undefined
      const found = fault?.()
      if (found !== undefined) failed(found)
      const [oldest] = begun
      const waitingMs = oldest ? clock.monotonic() - oldest.at : 0
      if (waitingMs > SLOW_MS)
        failed(new Error(`Cannot use the store: a write has not finished for ${seconds(waitingMs)}`))
      void probeSoon()
      if (!failure) return null
      return probeMs === undefined
        ? failure.message
        : `Cannot use the store in time: a write took ${seconds(probeMs)}`
    },
  }
}

export type WriteHealth = ReturnType<typeof createWriteHealth>

const seconds = (ms: number) => `${Math.round(ms / SECOND)} s`

/**
 * Writes what a delivery writes, with its statements, and syncs it: a row each of `journal`, `lanes` and `subscriptions`.
 * The same transaction deletes them, so nobody sees them. A row of another table would prove less: a role may have lost
 * the right to insert into one of these. A rollback would prove less, too: neither the commit nor the sync.
 */
export function createWriteProbe(options: {
  engine: Engine
  ownership: Pick<Ownership, 'check'>
  request: RefreshRequests['request']
  lanes: Pick<Lanes, 'enter'>
  journal: Pick<Journal, 'insert'>
}) {
  const { engine, ownership, request, lanes, journal } = options

  return async function probe() {
    const id = `probe ${newId(engine.clock.now())}`
    await ownership.check()
    const mark = engine.mark()
    await engine.write(async (trx) => {
      await write(trx, id)
      await sql`delete from journal where id = ${id}`.execute(trx)
      await sql`delete from lanes where key = ${id}`.execute(trx)
      await sql`delete from subscriptions where subscription_uid = ${id}`.execute(trx)
    })
    await engine.durable(mark)
  }

  async function write(trx: Connection, id: string) {
    const refresh = {
      kind: 'subscription',
      subscriptionUid: id,
      businessUid: id,
      purchasableUid: null,
    } as const
    const event: NewEvent = {
      id,
      kind: 'unrecognised',
      name: '',
      key: id,
      businessUid: id,
      subscriptionUid: id,
      payload: '{}',
      issues: null,
      refresh,
    }
    const lane = lanes.enter([{ key: id, topic: 'unrecognised' }])
    await run(
      engine,
      trx,
      ...request([{ request: refresh, cause: 'event' }]),
      ...lane,
      ...journal.insert([event]),
    )
  }
}
