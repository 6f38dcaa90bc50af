import assert from 'node:assert/strict'
import type { ClaimReads, ReadClaim, Store } from '../../../../lib/store/port/store.js'

/** Leases one read, if any is due: a suspect one only if no other is. */
export async function claimOne(
  store: Pick<Store, 'claimReads' | 'claimSuspectRead'>,
  options: Omit<ClaimReads, 'limit'>,
): Promise<ReadClaim | undefined> {
  const claims = await store.claimReads({ limit: 1, ...options })
  assert(claims.length <= 1, 'claimReads has leased more than the limit')
  return claims[0] ?? store.claimSuspectRead({ leaseMs: options.leaseMs })
}
