import type { ClaimReads, ReadClaim, Store } from '../store/store.js'

/** Leases reads, never two of one business. Runs one claim at a time, so that each sees the businesses of the others. */
export function createBusinessClaims(options: {
  store: Pick<Store, 'claimReads'>
  leaseMs: number
  isPaused(): boolean
}) {
  const { store, leaseMs, isPaused } = options
  const busy = new Set<string>()
  let lastClaim: Promise<unknown> = Promise.resolve()

  return {
    claim(
      options: Pick<ClaimReads, 'limit' | 'urgencies' | 'choose'> & { except?: Iterable<string> },
    ): Promise<ReadClaim[]> {
      const claimed = lastClaim.then(async () => {
        if (isPaused()) return []
        const except = [...busy, ...(options.except ?? [])]
        const claims = await store.claimReads({ ...options, leaseMs, except })
        for (const claim of claims) busy.add(claim.subscription.businessUid)
        return claims
      })
      lastClaim = claimed.catch(() => {})
      return claimed
    },

    /** The read of `claim` has ended, so its business may be read again. */
    release(claim: ReadClaim) {
      busy.delete(claim.subscription.businessUid)
    },
  }
}
