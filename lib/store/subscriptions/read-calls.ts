import type { Hints } from '../hints.js'
import type { Journal } from '../journal/journal.js'
import { renewLease } from '../leases/leases.js'
import type { Suspects } from '../leases/suspects.js'
import type { Transactions } from '../life-cycle.js'
import type { Ownership } from '../ownership.js'
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
  subscriptions: Subscriptions
  suspects: Suspects
  journal: Pick<Journal, 'insertChanges'>
  ownership: Pick<Ownership, 'recordRead'>
  hints: Pick<Hints, 'notify' | 'announce'>
}): Pick<
  Store,
  | 'claimReads'
  | 'claimSuspectRead'
  | 'readFirst'
  | 'renewRead'
  | 'finishRead'
  | 'otherBusinesses'
  | 'readOthers'
> {
  const { engine, transactions, subscriptions, suspects, journal, ownership, hints } = options
  const { notify, announce } = hints
  const { read, write, writeAsOwner, watched, whileOpen } = transactions
  const others = createOtherBusinesses(engine)
  const readClaims = createReadClaims(engine, subscriptions)
  const readFirst = createReadFirst(engine)
  const finishRead = createReadFinishes({
    engine,
    write: writeAsOwner,
    insertChanges: journal.insertChanges,
    recordRead: ownership.recordRead,
  })

  return {
    claimReads: (options) => readClaims.claim(transactions, options),
    claimSuspectRead: ({ leaseMs }) =>
      write(async (trx) => {
        await suspects.putOffReads(trx)
        const begun = await suspects.begin(trx, 'read', leaseMs)
        return begun && { ...(await subscriptions.leased(trx, begun)), lapses: begun.lapses }
      }),
    readFirst: (businessUid) => write((trx) => readFirst(trx, businessUid)),
    renewRead: (claim, leaseMs) => write((trx) => renewLease(engine, trx, 'read', claim, leaseMs)),

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
