import type { Leased, SuspectKind } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, sql } from '../sql/sql.js'
import type { Transaction } from '../sql/transaction.js'
import { LEASED } from './leases.js'

/**
 * Makes claims. If PostgreSQL's answer to the commit of one is lost, nobody gets what it leased, so these leases are
 * returned before the next claim. Otherwise they would run out, and the work would count as having ended the process.
 */
export function createGivenClaims(engine: Pick<Engine, 'isOneOf' | 'forUpdate' | 'now'>, kind: SuspectKind) {
  let ungiven: readonly Leased[] = []

  async function giveBack(write: Engine['write']) {
    if (ungiven.length === 0) return
    const leases = ungiven
    await write((trx) => returnLeases(trx, leases))
    ungiven = ungiven.filter((each) => !leases.includes(each))
  }

  /** Returns those of the leases that are held. */
  async function returnLeases(trx: Connection, leases: readonly Leased[]) {
    const { table, id, dueAt } = LEASED[kind]
    const name = kind === 'lane' ? 'key' : 'subscription_uid'
    const among = engine.isOneOf(
      name,
      leases.map((each) => each.id),
    )
    // Waits for the transaction of the claim, if it is still under way. Only a statement after that sees its leases.
    await sql`select 1 from ${table} where ${among} order by ${id} ${engine.forUpdate}`.execute(trx)
    const tokens = sql.join(leases.map(({ leaseToken }) => leaseToken))
    await sql`
      update ${table} set lease_token = null, lapses = lapses - suspect, ${dueAt} = ${engine.now()}
      where ${among} and ${sql.still(sql`lease_token in (${tokens})`)}`.execute(trx)
  }

  /** Runs the transaction of a claim, which may run several times. `leasesOf` its result are those that its caller gets. */
  async function claim<T>(
    write: Engine['write'],
    work: (trx: Transaction) => Promise<T>,
    leasesOf: (result: T) => readonly Leased[],
  ): Promise<T> {
    await giveBack(write)
    const made: (readonly Leased[])[] = []
    try {
      const result = await write(async (trx) => {
        const claimed = await work(trx)
        made.push(leasesOf(claimed))
        return claimed
      })
      made.pop()
      return result
    } finally {
      ungiven = [...ungiven, ...made.flat()]
    }
  }

  return {
    claim,
    /** Whether leases that nobody got are held. They are returned before the next claim, so one must follow. */
    mustReturn: () => ungiven.length > 0,
  }
}

export type GivenClaims = ReturnType<typeof createGivenClaims>
