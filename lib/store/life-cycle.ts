import { MarketplaceError } from '../base/errors.js'
import type { createOwnership } from './ownership.js'
import type { Store } from './port/store.js'
import type { StoreOwner } from './port/store-owner.js'
import type { Engine } from './sql/engine.js'
import { asStoreError } from './sql/store-error.js'
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

/** The transactions of all calls of the store: while it is open, and only if it belongs to this app. */
export function createTransactions(options: {
  engine: Pick<Engine, 'read' | 'write' | 'mark' | 'durable'>
  ownership: Pick<ReturnType<typeof createOwnership>, 'check'>
  health: Pick<WriteHealth, 'watch'>
  whileOpen: LifeCycle['whileOpen']
}) {
  const { engine, ownership, health, whileOpen } = options

  const writeAsOwner: Engine['write'] = async (work) => {
    await ownership.check()
    return engine.write(work)
  }
  const readAsOwner: Engine['read'] = async (work) => {
    await ownership.check()
    return engine.read(work)
  }
  const read: Engine['read'] = (work) => whileOpen(() => readAsOwner(work))
  /** Runs a write, which also decides the health of the store. */
  const watched = health.watch
  const write: Engine['write'] = (work) => whileOpen(() => watched(() => writeAsOwner(work)))

  return {
    read,
    write,
    watched,
    whileOpen,
    /** Runs `work`, and resolves when all that it has committed is on disk. */
    async onDisk<T>(work: () => Promise<T>): Promise<T> {
      const mark = engine.mark()
      const result = await work()
      await whileOpen(() => engine.durable(mark))
      return result
    },
    /** For calls of several transactions, which have checked that the store is open. */
    readAsOwner,
    writeAsOwner,
  }
}

export type Transactions = ReturnType<typeof createTransactions>
