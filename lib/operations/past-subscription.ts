import type { Evidence } from '../entitlement/evidence.js'
import type { SubscriptionRecord } from '../record.js'
import type { Gone, JournalEntry, StoredSubscription, Subscription } from '../store/store.js'
import { isoOf } from './subscriptions.js'

/** A change of one subscription, as the journal has it. */
export interface Change {
  id: string
  subscriptionUid: string
  at: number
  from: string | null
  to: string | null
  gone: Gone | 'moved' | null
  record: SubscriptionRecord | null
}

export function asChange({ id, subscriptionUid, receivedAt, payload }: JournalEntry): Change {
  const { from, to, gone, record } = payload as Pick<Change, 'from' | 'to' | 'gone' | 'record'>
  return { id, subscriptionUid: subscriptionUid ?? '', at: Date.parse(receivedAt), from, to, gone, record }
}

/** A subscription at a time of the past, and the evidence for it. Both are missing if it was not known at that time. */
export type Past = {
  subscription?: Subscription
  evidence?: WithoutUid<Evidence>
}

/** For each kind of evidence its own fields: `Omit` of a union would leave only the common ones. */
type WithoutUid<Each> = Each extends Evidence ? Omit<Each, 'subscription_uid'> : never

/**
 * One subscription at the time `at`:
 *
 * - The last change before `at` decides. If the next change, or the present row, does not begin with the state in which
 *   that change ended, a change between them was deleted, and the state is not recorded.
 * - Without a change before `at`, the present row decides, provided that no change since `at` can have been deleted.
 */
export function subscriptionAt(options: {
  at: number
  businessUid: string
  /** The changes of this subscription, oldest first. */
  changes: readonly Change[]
  row: StoredSubscription | undefined
  /** Whether the journal still has every change since `at`. */
  hasAllChanges: boolean
}): Past {
  const { at, businessUid, changes, row, hasAllChanges } = options
  const last = changes.findLast((change) => change.at <= at)
  const next = changes.find((change) => change.at > at)
  const notRecorded = (why: string): Past => ({ evidence: { kind: 'not_recorded', why } })
  if (last) {
    const followingState = next ? next.from : (row?.state ?? null)
    if (followingState !== last.to)
      return notRecorded('a change between that time and the next recorded change was deleted')
    const evidence = { kind: 'change', id: last.id, on: isoOf(last.at), to: last.to } as const
    if (last.gone === 'moved') return { evidence }
    return { subscription: afterChange(last, businessUid), evidence }
  }
  if (row && row.createdAt > at) return {}
  if (!hasAllChanges) return notRecorded('the changes of that time were deleted')
  if (next && next.from !== null)
    return notRecorded('the first recorded change of the subscription is later than that time')
  if (!row) return {}
  if (next || row.record === null)
    return { subscription: unread(row, at), evidence: { kind: 'record', asOf: null } }
  const evidence = { kind: 'record', asOf: isoOf(row.readAt) } as const
  return { subscription: { ...row, readAt: Math.min(row.readAt ?? at, at), ...NO_READ_DUE }, evidence }
}

/** The fields of a subscription without a read under way or due. */
const NO_READ_DUE = {
  requestedAt: null,
  owedSince: null,
  generation: 0,
  settledGeneration: 0,
  pending: false,
  verifying: false,
  failure: null,
  refreshAt: null,
  quiet: false,
}

function afterChange({ subscriptionUid, at, to, gone, record }: Change, businessUid: string): Subscription {
  const whyGone = to === null ? (gone === null || gone === 'moved' ? 'missing' : gone) : null
  const purchasableUid = record?.purchasable_uid ?? null
  return {
    subscriptionUid,
    businessUid,
    purchasableUid,
    record,
    state: to,
    gone: whyGone,
    readAt: at,
    ...NO_READ_DUE,
  }
}

/** A subscription that was known and not read yet, or that is not read because it is of another item. */
function unread(row: StoredSubscription, at: number): Subscription {
  const { subscriptionUid, businessUid, purchasableUid } = row
  const withoutRecord = { record: null, state: null, gone: null, readAt: null }
  const isRead = row.pending || row.refreshAt !== null
  const reading = isRead ? { pending: true, refreshAt: at } : {}
  return { subscriptionUid, businessUid, purchasableUid, ...withoutRecord, ...NO_READ_DUE, ...reading }
}
