import type { Engine } from './engine.js'
import type { LifeCycle } from './life-cycle.js'
import type { createOwnership } from './ownership.js'
import type { WriteHealth } from './write-health.js'

/** The transactions of all calls of the store: while it is open, and only if it belongs to this app. */
export function createTransactions(options: {
  engine: Pick<Engine, 'read' | 'write'>
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
    /** For calls of several transactions, which have checked that the store is open. */
    readAsOwner,
    writeAsOwner,
  }
}

export type Transactions = ReturnType<typeof createTransactions>
