import { createClaimsOnDisk } from './claims-on-disk.js'
import type { Engine } from './engine.js'
import { finishLanes } from './finish-lanes.js'
import type { HandledTopics } from './handled-topics.js'
import type { createHints } from './hints.js'
import { createLaneClaims } from './lane-claims.js'
import type { Lanes } from './lanes.js'
import type { LifeCycle } from './life-cycle.js'
import type { Store } from './store.js'
import type { StoreTime } from './store-time.js'
import type { Transactions } from './transactions.js'

/** The calls of the port for handlers: they lease lanes, write the results of their entries, and name the topics. */
export function createEntryCalls(options: {
  engine: Engine
  transactions: Transactions
  lifeCycle: Pick<LifeCycle, 'isClosed' | 'whileOpen'>
  lanes: Lanes
  topics: HandledTopics
  offsetOf: StoreTime
  announce: ReturnType<typeof createHints>['announce']
}): Pick<Store, 'claimLanes' | 'renewLane' | 'finishLanes' | 'handleTopics'> {
  const { engine, transactions, lanes, topics, offsetOf, announce } = options
  const { isClosed, whileOpen } = options.lifeCycle
  const { write } = transactions
  const laneClaims = createLaneClaims(engine, lanes, offsetOf)
  const claimOnDisk = createClaimsOnDisk({ engine, transactions, whileOpen, lanes })

  return {
    // A handler must not see what a power cut could still undo.
    claimLanes: (options) => claimOnDisk(() => laneClaims.claim(transactions, options)),
    renewLane: (lane, leaseMs) => write((trx) => lanes.renew(trx, lane, leaseMs)),
    finishLanes: (finishes) => write((trx) => finishLanes({ engine, lanes }, trx, finishes)),

    async handleTopics(options) {
      const moved = await whileOpen(() => topics.handle(options, transactions, isClosed))
      if (moved) announce({ kind: 'journal' })
    },
  }
}
