import type { Engine } from './engine.js'
import type { LifeCycle } from './life-cycle.js'
import type { createOwnership } from './ownership.js'
import { perform } from './script.js'
import type { WriteHealth } from './write-health.js'

/** The transactions of the calls of the port: while the store is open, and only if it belongs to this app. */
export function createTransactions(options: {
  engine: Engine
  ownership: Pick<ReturnType<typeof createOwnership>, 'check'>
  health: Pick<WriteHealth, 'watch'>
  whileOpen: LifeCycle['whileOpen']
}) {
  const { engine, ownership, health, whileOpen } = options

  const writeAsOwner: Engine['write'] = (work) =>
    engine.write(async (trx) => {
      await perform(engine, trx, ownership.check(true))
      return work(trx)
    })
  const read: Engine['read'] = (work) =>
    whileOpen(() =>
      engine.read(async (db) => {
        await perform(engine, db, ownership.check(false))
        return work(db)
      }),
    )
  /** Runs a write, which also decides the health of the store. */
  const watched = health.watch
  const write: Engine['write'] = (work) => whileOpen(() => watched(() => writeAsOwner(work)))

  return {
    read,
    write,
    watched,
    /** A write whose caller has checked that the store is open. */
    writeAsOwner,
  }
}

export type Transactions = ReturnType<typeof createTransactions>
