import { z } from 'zod'
import type { Clock } from '../../base/clock.js'
import { MarketplaceError } from '../../base/errors.js'
import { newId } from '../../base/ids.js'
import { requireIdentifier, storable } from '../../base/record.js'
import { auditUid, isAuditUid } from '../../store/journal/audit.js'
import type { NewAction, Store } from '../../store/port/store.js'
import { checked } from '../journal/entry-filter.js'
import { isoOf } from '../subscriptions/subscriptions.js'

/** What `erase` did. */
export interface EraseSummary {
  /** Identifier of the business. */
  business_uid: string
  /** When it was erased: ISO 8601, UTC. */
  erasedAt: string
  /** How many rows of the database were deleted, or no longer name the business. */
  rows: number
  /** What the journal and the log have in place of the uid from now on. `businesses.history` finds it by the uid. */
  auditUid: string
}

const text = z.string().min(1).max(500).transform(storable)
const OPTIONS = z.strictObject({ actor: text.optional(), reason: text.optional() })

/**
 * Deletes the stored data of a business and records the erasure in the journal. Rejects `argument_invalid` for an
 * `auditUid`: another erasure would move the audit to the hash of the hash, where nobody finds it by the uid.
 */
export function createErase(options: {
  store: Pick<Store, 'erase'>
  clock: Clock
  onAction(action: NewAction): void
}) {
  const { store, clock, onAction } = options

  return async function erase(
    businessUid: string | number,
    given: { actor?: string; reason?: string } = {},
  ): Promise<EraseSummary> {
    const business_uid = requireIdentifier(businessUid, 'business_uid')
    if (isAuditUid(business_uid))
      throw new MarketplaceError(
        'argument_invalid',
        'Cannot erase: this is the auditUid of an erased business. Who exported, replayed and erased its data stays ' +
          'under it until retention.actionsMs ends',
      )
    const { actor = null, reason = null } = checked(OPTIONS, given, 'erase the business')
    const record = {
      id: newId(clock.now()),
      name: 'erase',
      businessUid: business_uid,
      payload: JSON.stringify({ actor, action: 'erase', reason }),
    }
    try {
      const { rows, at } = await store.erase(business_uid, record)
      return { business_uid, erasedAt: isoOf(at), rows, auditUid: auditUid(business_uid) }
    } finally {
      // One that fails may be half done.
      onAction(record)
    }
  }
}
