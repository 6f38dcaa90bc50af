import { z } from 'zod'
import { MarketplaceError } from '../errors.js'
import type { EntryFilter } from './store.js'

const text = z.string().min(1)
const FILTER = z.strictObject({
  status: z.enum(['pending', 'retrying', 'waiting', 'unhandled', 'done', 'dead']).optional(),
  kind: z.enum(['event', 'change', 'unrecognised']).optional(),
  businessUid: text.optional(),
  subscriptionUid: text.optional(),
  limit: z.number().optional(),
  before: text.optional(),
})

/** The filter as given. Throws `argument_invalid`: a misspelt name would otherwise list everything. */
export function checkedFilter(filter: EntryFilter): EntryFilter {
  const { error } = FILTER.safeParse(filter)
  if (!error) return filter
  const faults = error.issues.map(({ path, message }) => [...path, message].join(': '))
  throw new MarketplaceError('argument_invalid', `Cannot list the journal: ${faults.join('; ')}`)
}
