import assert from 'node:assert/strict'
import type { ReadClaim, Store } from '../../../../lib/store/port/store.js'
import { claimedAll, fails, type Lab, named } from '../lab.js'

/** Leases the next due subscription; with `againInMs`, finishes it without a result first. */
export async function next(lab: Lab, againInMs?: number): Promise<ReadClaim> {
  const claim = await lab.until('it is due', async () => (await claimedAll(lab.store))[0])
  if (againInMs !== undefined) await lab.store.finishRead(claim, fails('platform_timeout'))
  return claim
}

/** The platform refuses the read of a known subscription. */
export async function failing(
  lab: { store: Store; until: Lab['until'] },
  uid: string,
  againInMs?: number,
): Promise<ReadClaim> {
  const [row] = await lab.store.subscriptionsNamed([uid])
  await lab.store.requestRefresh(named(uid, row?.businessUid))
  const claim = await lab.until('it is due', async () => (await claimedAll(lab.store))[0])
  assert.equal(claim.id, uid)
  await lab.store.finishRead(claim, fails('token_refused', againInMs))
  return claim
}
