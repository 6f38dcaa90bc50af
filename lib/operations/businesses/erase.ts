import { z } from 'zod'
import type { Clock } from '../../base/clock.js'
import { newId } from '../../base/ids.js'
import { requireIdentifier, storable } from '../../base/record.js'
import type { Store } from '../../store/port/store.js'
import { checked } from '../journal/entry-filter.js'
import { isoOf } from '../subscriptions/subscriptions.js'

/** What `erase` did. */
export interface EraseSummary {
  business_uid: string
  /** ISO 8601, UTC. */
  erasedAt: string
  /** How many rows of the database were deleted, or no longer name the business. */
  rows: number
}

const text = z.string().min(1).max(500).transform(storable)
const OPTIONS = z.strictObject({ actor: text.optional() })

/** Deletes the stored data of a business and records the erasure in the journal. */
export function createErase({ store, clock }: { store: Pick<Store, 'erase'>; clock: Clock }) {
  return async function erase(
    businessUid: string | number,
    options: { actor?: string } = {},
  ): Promise<EraseSummary> {
    const business_uid = requireIdentifier(businessUid, 'business_uid')
    const { actor } = checked(OPTIONS, options, 'erase the business')
    const payload = JSON.stringify({ actor: actor ?? null, action: 'erase' })
    const { rows, at } = await store.erase(business_uid, {
      id: newId(clock.now()),
      name: 'erase',
      businessUid: business_uid,
      payload,
    })
    return { business_uid, erasedAt: isoOf(at), rows }
  }
}
