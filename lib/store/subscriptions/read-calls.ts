import type { createHints } from '../hints.js'
import type { createJournal } from '../journal/journal.js'
import type { LifeCycle, Transactions } from '../life-cycle.js'
import type { createOwnership } from '../ownership.js'
import type { Store } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import { createReadClaims, createReadFirst } from './claims.js'
import { businessesOf, createReadFinishes, hintsOfNews, isNews } from './finishes.js'
import { createOtherBusinesses } from './other-businesses.js'
import type { Subscriptions } from './subscriptions.js'

/** The calls of the port for reads: they lease subscriptions, and write what the reads show. */
export function createReadCalls(options: {
  engine: Engine
  transactions: Transactions
  whileOpen: LifeCycle['whileOpen']
  subscriptions: Subscriptions
  insertChanges: ReturnType<typeof createJournal>['insertChanges']
  recordRead: ReturnType<typeof createOwnership>['recordRead']
  notify: ReturnType<typeof createHints>['notify']
  announce: ReturnType<typeof createHints>['announce']
}): Pick<Store, 'claimReads' | 'readFirst' | 'renewRead' | 'finishRead' | 'otherBusinesses' | 'readOthers'> {
  const { engine, transactions, whileOpen, subscriptions, insertChanges, recordRead } = options
  const { notify, announce } = options
  const { read, write, writeAsOwner, watched } = transactions
  const others = createOtherBusinesses(engine)
  const readClaims = createReadClaims(engine, subscriptions)
  const readFirst = createReadFirst(engine)
  const finishRead = createReadFinishes({
    engine,
    write: writeAsOwner,
    insertChanges,
    recordRead,
  })

  return {
    claimReads: (options) => readClaims.claim(transactions, options),
    readFirst: (businessUid) => write((trx) => readFirst(trx, businessUid)),
    renewRead: (claim, leaseMs) => write((trx) => subscriptions.renew(trx, claim, leaseMs)),

    otherBusinesses: (claim, failingMs) => read((db) => others.compare(db, claim, failingMs)),
    async readOthers(claim, options) {
      const count = await write((trx) => others.makeDue(trx, claim, options))
      if (count > 0) announce({ kind: 'requested', businessUid: null })
      return count
    },

    async finishRead(claim, finish) {
      const finished = await whileOpen(() => watched(() => finishRead(claim, finish)))
      if (finished === false) return false
      if (finished === 'too late') {
        announce({ kind: 'requested', businessUid: claim.subscription.businessUid })
        return false
      }
      const superseded = isNews(claim, finish)
      const isSent = engine.announceIn !== undefined && hintsOfNews(claim, finish).length > 0
      for (const businessUid of businessesOf(claim, finish))
        (isSent ? notify : announce)({ kind: 'decided', businessUid, superseded })
      if (finish.changes?.length) announce({ kind: 'journal' })
      return true
    },
  }
}
