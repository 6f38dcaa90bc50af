import { MarketplaceError, messageOf } from '../base/errors.js'
import type { Ownership } from './ownership.js'
import type { Store, StoreOwner } from './port/store.js'
import type { Engine } from './sql/engine.js'
import type { WriteHealth } from './write-health.js'

/** Opens and closes a store, and lets calls run only between the two. docs/states.md has its states. */
export function createLifeCycle(options: {
  /** Rejects with a `MarketplaceError`, and then leaves nothing open. */
  begin(owner: StoreOwner | undefined): Promise<void>
  end(): Promise<void>
  /** Ends the calls under way that may take long. */
  endLongCalls(): void
  isDataError: Engine['isDataError']
}) {
  const { begin, end, endLongCalls, isDataError } = options
  let opening: Promise<void> | undefined
  /** Why the last opening failed. */
  let failure: unknown
  let isClosed = false
  let underWay = 0
  let onIdle = () => {}

  function opened(): Promise<void> {
    if (!isClosed && opening) return opening
    if (!isClosed && failure !== undefined) throw failure
    throw new MarketplaceError('store_unavailable', 'Cannot use the store: it is not open. Call open() first')
  }

  const calls: Pick<Store, 'open' | 'close'> = {
    async open(owner) {
      if (isClosed) throw new MarketplaceError('closed', 'Cannot open the store: it was closed')
      opening ??= begin(owner)
      await opening.catch((error) => {
        opening = undefined
        failure = error
        throw error
      })
    },

    async close() {
      if (isClosed) return
      isClosed = true
      endLongCalls()
      await opening?.catch(() => {})
      if (underWay > 0)
        await new Promise<void>((resolve) => {
          onIdle = resolve
        })
      if (opening) await end()
    },
  }

  return {
    calls,
    isClosed: () => isClosed,

    /** Runs `work` and lets it finish before the store closes. */
    async whileOpen<T>(work: () => Promise<T>): Promise<T> {
      const open = opened()
      underWay++
      try {
        await open
        return await work()
      } catch (error) {
        throw asStoreError(error, 'Cannot use the store', isDataError)
      } finally {
        if (--underWay === 0) onIdle()
      }
    },
  }
}

export type LifeCycle = ReturnType<typeof createLifeCycle>

/**
 * The error for callers of the store: one of this package, with the message of the driver. One of `isDataError` is not
 * retryable, because the database would refuse the same data again.
 */
export function asStoreError(
  error: unknown,
  cannot: string,
  isDataError: Engine['isDataError'] = () => false,
): MarketplaceError {
  if (error instanceof MarketplaceError) return error
  const code = isDataError(error) ? 'argument_invalid' : 'store_unavailable'
  return new MarketplaceError(code, `${cannot}: ${messageOf(error)}`, { cause: error })
}

/** The transactions of all calls of the store. They reject once another app has taken it; writes decide its health. */
export function createStoreTransactions(options: {
  engine: Pick<Engine, 'read' | 'write' | 'mark' | 'durable'>
  ownership: Pick<Ownership, 'check'>
  health: Pick<WriteHealth, 'watch'>
  whileOpen: LifeCycle['whileOpen']
}) {
  const { engine, ownership, health, whileOpen } = options

  /** For calls of several transactions, which run as a whole in `whileOpen` or `onDisk`. */
  const inside: Pick<Engine, 'read' | 'write'> = {
    async read(work) {
      await ownership.check()
      return engine.read(work)
    },
    write: (work) =>
      health.watch(async () => {
        await ownership.check()
        return engine.write(work)
      }),
  }

  return {
    inside,
    read: ((work) => whileOpen(() => inside.read(work))) as Engine['read'],
    write: ((work) => whileOpen(() => inside.write(work))) as Engine['write'],
    /** Runs `work`, and resolves when all that it has committed is on disk. */
    onDisk<T>(work: () => Promise<T>): Promise<T> {
      return whileOpen(async () => {
        const mark = engine.mark()
        const result = await work()
        await engine.durable(mark)
        return result
      })
    },
  }
}

export type Transactions = ReturnType<typeof createStoreTransactions>
