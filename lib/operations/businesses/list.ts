import { z } from 'zod'
import { identifier } from '../../base/record.js'
import type { Store } from '../../store/port/store.js'
import { checked, limit } from '../journal/entry-filter.js'

/**
 * Which page of the businesses to list.
 *
 * @example await marketplace.businesses.list({ after: 'business-1', limit: 50 })
 */
export interface BusinessesPage {
  /** The last `business_uid` of the previous page, or any text. */
  after?: string | number
  /** At most this many: 1 to 1,000, default 100. */
  limit?: number
}

const PAGE = z.strictObject({ after: identifier.optional(), limit: limit.optional() })

/** Returns `businesses.list(page)`. */
export function createBusinessList({ store }: { store: Pick<Store, 'listBusinesses'> }) {
  return async function list(page: BusinessesPage = {}): Promise<string[]> {
    const { after, limit: most = 100 } = checked(PAGE, page, 'list businesses')
    return store.listBusinesses({ limit: most, ...(after === undefined ? {} : { after }) })
  }
}
