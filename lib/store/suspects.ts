import type { ClaimLanes, LaneClaim } from './entries.js'
import type { ReadClaim } from './reads.js'

/** An item that began alone this often and never ended is taken for the cause that ends the process. */
export const MAX_LAPSES = 5
/** What may be suspect: the head of a lane, or a read. */
export type SuspectKind = 'lane' | 'read'

/** Which suspect lane to lease, for how long. */
export type ClaimSuspectLane = Pick<ClaimLanes, 'leaseMs' | 'topics' | 'exceptKeys'>

/**
 * The calls for suspects. A lane or a subscription whose lease ran out is suspect: it may have ended the process, or was
 * leased beside one that did. The process runs nothing of its kind beside it. The claim counts as its beginning. A result
 * ends the suspicion; a finish of a lane without a result takes the beginning back.
 */
export interface Suspects {
  /** Leases the due suspect lane with the fewest lapses, and returns only its head. On disk when this resolves. */
  claimSuspectLane(options: ClaimSuspectLane): Promise<LaneClaim | undefined>
  /** Of these kinds, that of the due suspect with the fewest lapses; null when none is due. */
  dueSuspect(
    options: Omit<ClaimSuspectLane, 'leaseMs'> & { kinds: readonly SuspectKind[] },
  ): Promise<SuspectKind | null>
  /**
   * Leases the due suspect subscription with the fewest lapses. One whose reads have lapsed `MAX_LAPSES` times gets the
   * failure `lease_lapsed` and is put off, by a pause that doubles from 5 min to 5 h, whatever is requested meanwhile.
   */
  claimSuspectRead(options: { leaseMs: number }): Promise<ReadClaim | undefined>
}
