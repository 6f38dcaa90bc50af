import { z } from 'zod'
import { MarketplaceError } from '../../base/errors.js'
import { identifier } from '../../base/record.js'
import { ENTRY_KINDS, ENTRY_STATUSES } from '../../store/port/journal.js'
import type { EntryFilter } from '../../store/port/store.js'

/** Which entries of the journal to list: those that meet every field. */
export interface JournalFilter
  extends Omit<EntryFilter, 'businessUid' | 'subscriptionUid' | 'since' | 'until'> {
  /** Only entries that name this business. */
  businessUid?: string | number
  /** Only entries that name this subscription. */
  subscriptionUid?: string | number
  /** Received at this time or later: a `Date`, or ISO 8601 with an offset or `Z`. */
  since?: Date | string
  /** Received before this time. */
  until?: Date | string
}

/** The most entries of one list. */
export const MAX_LISTED = 1_000

/** Parses a `Date`, or a day or a time with its offset in ISO 8601, to milliseconds since 1970. */
export const time = z.unknown().transform((value, { issues }): number => {
  const isText = typeof value === 'string' && ISO_TIME.test(value)
  const at = value instanceof Date ? value.getTime() : isText ? Date.parse(value) : Number.NaN
  if (!Number.isNaN(at)) return at
  const message = 'expected a Date, or a time in ISO 8601 with an offset or Z'
  issues.push({ code: 'custom', message, input: value })
  return z.NEVER
})
const ISO_TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d))?$/

export const limit = z.int().min(1).max(MAX_LISTED)
export const status = z.enum(['retrying', ...ENTRY_STATUSES])

const text = z.string().min(1)
const FILTER = z.strictObject({
  status: status.optional(),
  kind: z.enum(ENTRY_KINDS).optional(),
  name: text.optional(),
  businessUid: identifier.optional(),
  subscriptionUid: identifier.optional(),
  since: time.optional(),
  until: time.optional(),
  limit: limit.optional(),
  before: text.optional(),
})

/** The filter for the store. Throws `argument_invalid`, also for a misspelt field, which would otherwise list everything. */
export function checkedFilter(filter: JournalFilter): EntryFilter {
  return checked(FILTER, filter, 'list the journal') as EntryFilter
}

/** `value` as parsed by `schema`. Throws `argument_invalid` with every fault and, for an unknown field, the known ones. */
export function checked<T>(schema: z.ZodType<T>, value: unknown, cannot: string): T {
  const { data, error } = schema.safeParse(value)
  if (!error) return withoutUndefined(data as T)
  const faults = error.issues.map((issue) => {
    const named = [...issue.path, issue.message].join(': ')
    return issue.code === 'unrecognized_keys' ? `${named}, known are ${namesOf(schema)}` : named
  })
  throw new MarketplaceError('argument_invalid', `Cannot ${cannot}: ${faults.join('; ')}`)
}

function namesOf(schema: z.ZodType): string {
  return schema instanceof z.ZodObject ? Object.keys(schema.shape).join(', ') : ''
}

/** Drops the fields that are `undefined`. */
function withoutUndefined<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as T
}
