import { z } from 'zod'
import { REASONS, type Reason } from '../../index.js'
import type { CallName } from './calls.js'
import { ATTENTION_STATUSES, type MaxOutcomes, type SearchCharacters } from './shapes.js'

const uid = z.string().min(1).max(255)
const SEARCH_CHARACTERS: SearchCharacters = 1_500
const MAX_OUTCOMES: MaxOutcomes = 100
const searched = z
  .string()
  .max(
    SEARCH_CHARACTERS,
    `a text to search has at most ${SEARCH_CHARACTERS} characters. Paste only the identifier`,
  )
const reason = z.string().trim().max(300)
const status = z.enum(ATTENTION_STATUSES)
/** An entry, as the place in a list from which a call continues. */
const entry = z.string().min(1).max(64)
/** One entry, the entries of a group, or all of a status. `before`: where the examined entries begin. */
const which = {
  entryId: entry.optional(),
  group: z.string().min(1).max(64).optional(),
  status: status.optional(),
  before: entry.optional(),
}

/** The input of each call. Reads get text from the query. */
export const INPUTS = {
  session: z.strictObject({}),
  search: z.strictObject({ q: searched }),
  business: z.strictObject({ business_uid: uid, after: uid.optional() }),
  history: z.strictObject({ business_uid: uid, before: z.string().max(64).optional() }),
  subscriptions: z.strictObject({
    reason: z.enum(Object.keys(REASONS) as [Reason, ...Reason[]]).optional(),
    after: uid.optional(),
  }),
  entry: z.strictObject({ id: z.string().min(1).max(64) }),
  attention: z.strictObject({ status: status.optional(), before: entry.optional() }),
  group: z.strictObject({ key: z.string().max(64), before: entry.optional(), from: entry.optional() }),
  shapes: z.strictObject({ before: entry.optional() }),
  webhooks: z.strictObject({}),
  live: z.strictObject({ after: z.string().max(64).optional() }),
  health: z.strictObject({}),
  activity: z.strictObject({}),
  previewReplay: z.strictObject(which),
  /** Ids with commas between them. */
  outcomes: z.strictObject({
    ids: z
      .string()
      .max(8_000)
      .refine((ids) => ids.split(',').length <= MAX_OUTCOMES, { error: `at most ${MAX_OUTCOMES} ids` }),
  }),
  stored: z.strictObject({ business_uid: uid }),
  refresh: z.strictObject({ business_uid: uid, reason: reason.optional() }),
  track: z.strictObject({
    business_uid: uid,
    subscription_uid: uid,
    announce: z.boolean().optional(),
    reason: reason.optional(),
  }),
  replay: z.strictObject({ ...which, reason: reason.optional() }),
  export: z.strictObject({ business_uid: uid, reason: reason.min(1) }),
  /** The person types the identifier again, to prevent a mistake. */
  erase: z.strictObject({ business_uid: uid, typed: z.string().max(255), reason: reason.min(1) }),
} satisfies Record<CallName, z.ZodType>

export type Inputs = { [Name in CallName]: z.infer<(typeof INPUTS)[Name]> }
