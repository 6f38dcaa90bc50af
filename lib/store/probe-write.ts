import { newId } from '../ids.js'
import type { Engine } from './engine.js'
import type { Journal } from './journal.js'
import type { Lanes } from './lanes.js'
import type { Ownership } from './ownership.js'
import type { RefreshRequests } from './request-refresh.js'
import { type Connection, sql } from './sql.js'
import type { NewEvent } from './store.js'
import { run } from './writes.js'

/**
 * Writes what a delivery writes, with its statements, and syncs it: a row each of `journal`, `lanes` and `subscriptions`.
 * The same transaction deletes them, so nobody sees them. A row of another table would prove less: a role may have lost
 * the right to insert into one of these. A rollback would prove less, too: neither the commit nor the sync.
 */
export function createWriteProbe(options: {
  engine: Engine
  ownership: Pick<Ownership, 'check'>
  request: RefreshRequests['request']
  lanes: Pick<Lanes, 'enter'>
  journal: Pick<Journal, 'insert'>
}) {
  const { engine, ownership, request, lanes, journal } = options

  return async function probe() {
    const id = `probe ${newId(engine.clock.now())}`
    await ownership.check()
    const mark = engine.mark()
    await engine.write(async (trx) => {
      await write(trx, id)
      await sql`delete from journal where id = ${id}`.execute(trx)
      await sql`delete from lanes where key = ${id}`.execute(trx)
      await sql`delete from subscriptions where subscription_uid = ${id}`.execute(trx)
    })
    await engine.durable(mark)
  }

  async function write(trx: Connection, id: string) {
    const refresh = {
      kind: 'subscription',
      subscriptionUid: id,
      businessUid: id,
      purchasableUid: null,
    } as const
    const event: NewEvent = {
      id,
      kind: 'unrecognised',
      name: '',
      key: id,
      businessUid: id,
      subscriptionUid: id,
      payload: '{}',
      issues: null,
      refresh,
    }
    await run(engine, trx, ...request([{ request: refresh, cause: 'event' }]))
    await lanes.enter(trx, [{ key: id, topic: 'unrecognised' }])
    await run(engine, trx, ...journal.insert([event]))
  }
}
