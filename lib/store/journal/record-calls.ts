import { nextTurn } from '../../base/waiting.js'
import { requireStorable } from '../checks.js'
import type { Hints } from '../hints.js'
import type { Lanes } from '../lanes/lanes.js'
import type { Transactions } from '../life-cycle.js'
import type { Store } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import type { StoreTime } from '../sql/store-time.js'
import type { Subscriptions } from '../subscriptions/subscriptions.js'
import { createSubscriptionList } from '../subscriptions/upkeep.js'
import { createErase } from './erase.js'
import type { Journal } from './journal.js'
import { createEntryList } from './listing.js'
import { createTimeline } from './timeline.js'

/** The calls of the port for people: to list and show data, and to replay and erase it. */
export function createRecordCalls(options: {
  engine: Engine
  subscriptions: Subscriptions
  lanes: Lanes
  journal: Journal
  offsetOf: StoreTime
  transactions: Transactions
  announce: Hints['announce']
}): Pick<
  Store,
  'listEntries' | 'getEntry' | 'replayEntry' | 'listSubscriptions' | 'timelineOf' | 'recordAction' | 'erase'
> {
  const { engine, subscriptions, lanes, journal, offsetOf, announce } = options
  const { readAsOwner, write, whileOpen, onDisk } = options.transactions
  const entries = createEntryList(engine, readAsOwner, offsetOf)
  const listSubscriptions = createSubscriptionList(engine, readAsOwner, subscriptions)
  const timelineOf = createTimeline(engine, readAsOwner, offsetOf)
  const erasing = createErase(engine, { lanes, journal })

  return {
    listEntries: (filter) => whileOpen(() => entries.list(filter)),
    getEntry: (id) => whileOpen(() => entries.get(id)),
    listSubscriptions: (filter) => whileOpen(() => listSubscriptions(filter)),
    timelineOf: (businessUid, timeline) => whileOpen(() => timelineOf(businessUid, timeline)),

    async replayEntry(id) {
      const found = await write((trx) => journal.replay(trx, id))
      if (found) announce({ kind: 'journal' })
      return found
    },

    async recordAction(action) {
      requireStorable(action)
      await onDisk(() => write((trx) => journal.insertAction(trx, action)))
    },

    async erase(businessUid, record) {
      requireStorable(record)
      // No process may answer from memory with what was erased so far.
      const erased = { kind: 'decided', businessUid, superseded: true } as const
      return onDisk(async () => {
        await write((trx) => erasing.begin(trx, businessUid, record))
        let rows = 0
        try {
          for (const part of [erasing.candidates, erasing.subscriptions, erasing.entries]) {
            for (let batch = 1; batch > 0; rows += batch) {
              batch = await write(async (trx) => {
                await engine.announceIn?.(trx, [erased])
                return part(trx, businessUid)
              })
              await nextTurn()
            }
          }
        } finally {
          announce(erased)
        }
        const at = await write((trx) => erasing.end(trx, record, rows))
        return { rows, at: at + offsetOf(undefined) }
      })
    },
  }
}
