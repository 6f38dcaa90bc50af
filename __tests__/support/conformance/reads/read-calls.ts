import assert from 'node:assert/strict'
import { newId } from '../../../../lib/base/ids.js'
import {
  type ClaimReads,
  type NewEvent,
  type ReadClaim,
  type ReadFinish,
  type RefreshRequest,
  type Store,
  type Subscription,
  subscriptionKey,
  URGENCY,
  type Urgency,
} from '../../../../lib/store/port/store.js'
import { LATER, LONG } from '../lease-times.js'

/** An event that names a subscription, unless `more` changes that. */
export function eventOf(subscriptionUid: string, more: Partial<NewEvent> = {}): NewEvent {
  const businessUid = more.businessUid ?? businessOf(subscriptionUid)
  return {
    id: newId(Date.now()),
    kind: 'event',
    name: 'purchasable_subscription/update',
    key: subscriptionKey(subscriptionUid),
    businessUid,
    subscriptionUid,
    payload: '{}',
    issues: null,
    refresh: named(subscriptionUid, businessUid),
    ...more,
  }
}

/** The business of a subscription whose event names no other. */
export const businessOf = (subscriptionUid: string): string => `business of ${subscriptionUid}`

export function named(subscriptionUid: string, businessUid = businessOf(subscriptionUid)) {
  const request = { kind: 'subscription', subscriptionUid, businessUid, purchasableUid: 'item' } as const
  return request satisfies RefreshRequest
}

/** The finish of a successful read that found this state. The next read is due later. */
export function shows(claim: ReadClaim, state: string, more: Partial<ReadFinish> = {}): ReadFinish {
  const { subscriptionUid: uid, businessUid: business_uid } = claim.subscription
  const record = { uid, business_uid, purchasable_uid: 'item', purchase_state: state }
  return {
    found: { record, state, gone: null },
    settled: true,
    failure: null,
    progress: null,
    nextInMs: LATER,
    ...more,
  }
}

/** The finish of a failed read. */
export function fails(failure: string, nextInMs: number | null = LATER): ReadFinish {
  return { settled: false, failure, progress: null, nextInMs }
}

/** Leases one read, if any is due: a suspect one only if no other is. */
export async function claimOne(
  store: Pick<Store, 'claimReads' | 'claimSuspectRead'>,
  options: Omit<ClaimReads, 'limit'>,
): Promise<ReadClaim | undefined> {
  const claims = await store.claimReads({ limit: 1, ...options })
  assert(claims.length <= 1, 'claimReads has leased more than the limit')
  return claims[0] ?? store.claimSuspectRead({ leaseMs: options.leaseMs })
}

/** Leases one due subscription. */
export async function claimed(
  store: Store,
  options: Partial<Omit<ClaimReads, 'limit'>> = {},
): Promise<ReadClaim> {
  const { urgencies = ALL_URGENCIES, leaseMs = LONG, except = [] } = options
  const claim = await claimOne(store, { ...options, urgencies, leaseMs, except })
  return claim ?? assert.fail(`claimReads found nothing due of the urgencies ${urgencies.join()}`)
}

export const ALL_URGENCIES: readonly Urgency[] = Object.values(URGENCY)
/** The first reads that an event, `track` or `refresh` requests. */
export const REQUESTED: readonly Urgency[] = [URGENCY.eventOfUnread, URGENCY.track]

/** Leases every due subscription. */
export async function claimedAll(store: Store): Promise<ReadClaim[]> {
  const claims: ReadClaim[] = []
  for (;;) {
    const claim = await claimOne(store, { urgencies: ALL_URGENCIES, leaseMs: LONG, except: [] })
    if (!claim) return claims
    claims.push(claim)
    assert(claims.length < 10_000, 'claimReads never returns nothing')
  }
}

/** Stores a subscription and reads it once, so that it is known and not due. */
export async function known(
  store: Store,
  subscriptionUid: string,
  state = 'purchased',
  businessUid?: string,
) {
  await store.requestRefresh(named(subscriptionUid, businessUid))
  const claim = await claimed(store)
  assert.equal(claim.id, subscriptionUid)
  assert.equal(await store.finishRead(claim, shows(claim, state)), true)
}

/** The only subscription of a business. */
export async function only(store: Store, businessUid: string): Promise<Subscription> {
  const subscriptions = await store.subscriptionsOf(businessUid)
  assert.equal(subscriptions.length, 1, `${subscriptions.length} subscriptions of ${businessUid}`)
  return subscriptions[0] as Subscription
}

/** A request for all subscriptions of a business, with the install or uninstall that it comes from. */
export function business(businessUid: string, installed?: boolean, at: number | null = null) {
  const install = installed === undefined ? null : { installed, at }
  return { kind: 'business', businessUid, install } as const satisfies RefreshRequest
}

/** A request for a subscription only if it is stored. */
export function ifKnown(subscriptionUid: string, businessUid: string) {
  return { kind: 'stored', subscriptionUid, businessUid } as const satisfies RefreshRequest
}

/** A change for the journal, of the business `b1`. */
export function changeOf(id: string, more: Partial<NewChange> = {}): NewChange {
  return { id, key: id, businessUid: 'b1', cause: 'event', payload: '1', ...more }
}

export const uidsOf = (rows: readonly { subscriptionUid: string }[]): string[] =>
  rows.map(({ subscriptionUid }) => subscriptionUid)

type NewChange = NonNullable<ReadFinish['changes']>[number]
