import { fullJitter } from '../backoff.js'
import { type Clock, SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import type { LaneFinish, Store } from '../store/store.js'
import { nextTurn, sleep } from '../waiting.js'

/** Entries in one transaction: as many, each of a lane of its own, take SQLite about 4 ms. */
const BATCH = 128

/**
 * Writes what became of entries, many lanes in one transaction: while one batch is written, the next collects.
 * A database that is away for a moment must not cost a whole lease: what could not be written is tried again as long as
 * its lane is leased.
 */
export function createLaneFinishes(options: { store: Pick<Store, 'finishLanes'>; clock: Clock }) {
  const { store, clock } = options
  let waiting: Waiter[] = []
  let running = false

  async function run() {
    for (let failures = 0; waiting.length > 0; ) {
      const batch = takeBatch()
      try {
        const held = new Set(await store.finishLanes(batch.map(({ finish }) => finish)))
        failures = 0
        for (const { finish, resolve } of batch) resolve(held.has(finish.id))
      } catch (error) {
        const mayPass = error instanceof MarketplaceError && error.retryable
        const again = batch.filter(({ lost }) => mayPass && !lost.aborted)
        for (const each of batch) if (!again.includes(each)) each.reject(error)
        if (again[0]) await sleep(fullJitter(failures++, SECOND / 4, 5 * SECOND), clock, again[0].lost)
        for (const each of again.filter(({ lost }) => lost.aborted)) each.reject(error)
        waiting = [...again.filter(({ lost }) => !lost.aborted), ...waiting]
      }
      await nextTurn()
    }
    running = false
  }

  function takeBatch(): Taken[] {
    const batch: Taken[] = []
    for (let entries = 0; entries < BATCH && batch.length < waiting.length; ) {
      const each = waiting[batch.length] as Waiter
      const finish = each.finish ?? each.take()
      batch.push(Object.assign(each, { finish }))
      entries += Math.max(1, finish.results.length)
    }
    waiting = waiting.slice(batch.length)
    return batch
  }

  return {
    /**
     * Writes what `take` gives when the turn has come: what ended until then shares the transaction. Whether the lease
     * was still held; rejects when it could not be written before the lease was lost.
     */
    write(take: () => LaneFinish, lost: AbortSignal): Promise<boolean> {
      return new Promise((resolve, reject) => {
        waiting.push({ take, lost, resolve, reject })
        if (running) return
        running = true
        setImmediate(run)
      })
    },
  }
}

interface Waiter {
  take(): LaneFinish
  finish?: LaneFinish
  lost: AbortSignal
  resolve(held: boolean): void
  reject(error: unknown): void
}

type Taken = Waiter & { finish: LaneFinish }
