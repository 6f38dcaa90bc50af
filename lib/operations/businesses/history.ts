import { z } from 'zod'
import { requireIdentifier } from '../../base/record.js'
import { type DecisionRules, givesAccess } from '../../entitlement/decide.js'
import type { Cause, EntryKind, Store, TimelineItem, TimelinePlace } from '../../store/port/store.js'
import { checked, limit, time } from '../journal/entry-filter.js'
import { isoOf } from '../subscriptions/subscriptions.js'

/** One event in the history of a business. */
export type HistoryItem = {
  /** Its position in the history: pass it as `before` to get the next page. */
  id: string
  /** When it happened: ISO 8601, UTC. */
  at: string
  /** The entry of the journal. */
  entryId: string
  /** The subscription that it concerns; null if it concerns none. */
  subscription_uid: string | null
} & (
  | {
      /** A delivery arrived. */
      kind: 'delivery'
      /** The registration name of its event. */
      name: string
      /** No handler of the app has answered it so far, and a process has one. */
      waiting: boolean
    }
  | {
      /** A read found another `purchase_state`. */
      kind: 'change'
      /** The `purchase_state` before; null: never read, or not shown. */
      from: string | null
      /** The `purchase_state` after; null: no longer shown. */
      to: string | null
      /** Why `to` is null: see `gone` of `PurchaseChange`. */
      gone: string | null
      /** Why the subscription was read: see `cause` of `PurchaseChange`. */
      cause: Cause | null
      /**
       * Whether this subscription gave access after the change, by today's rules; null when `entitledWhen` fails. Another
       * subscription of the business may have given access meanwhile.
       */
      entitledAfter: boolean | null
      /** No handler of the app has answered it so far, and a process has one. */
      waiting: boolean
    }
  | {
      /** The outcome of a delivery, a change or an entitlement. */
      kind: 'handled'
      /** What was handled. */
      of: 'delivery' | 'change' | 'entitlement'
      /** The registration name of an event; '' for all others. */
      name: string
      /** `retrying`: its handler failed, and is called again. `waiting`: an entitlement that no handler has answered so far. */
      outcome: 'done' | 'retrying' | 'dead' | 'unhandled' | 'waiting'
      /** Number of tries. */
      attempts: number
      /** The last error in one line; null without one. */
      error: string | null
      /** `retrying`: when the next try is due: ISO 8601, UTC. Null otherwise. */
      dueAt: string | null
    }
  | {
      /** An action of a person. */
      kind: 'action'
      /** The name of the action, such as `replay`. */
      action: string
      /** The person; null if the action names none. */
      actor: string | null
      /** Why the person did it; null if no reason was given. */
      reason: string | null
      /** The entry that the action concerns; null if it concerns none. */
      on: string | null
    }
)

/**
 * Which page of a business's history.
 *
 * @example await marketplace.businesses.history('business-1', { limit: 20, before: id })
 */
export interface HistoryOptions {
  /** Only items before the item with this `id` (the last one of the previous page), or before this time. */
  before?: string | Date
  /** At most this many: 1 to 1,000, default 100. */
  limit?: number
}

const PLACE = /^(\d{1,16})-(\d{1,16})-([01])$/
const OPTIONS = z.strictObject({
  before: z.union([z.string().regex(PLACE), time]).optional(),
  limit: limit.optional(),
})

/** The history of a business: deliveries, changes, their outcomes, and actions of people, newest first. */
export function createHistory(options: { store: Pick<Store, 'timelineOf'>; rules: DecisionRules }) {
  const { store, rules } = options
  return async function history(
    businessUid: string | number,
    given: HistoryOptions = {},
  ): Promise<HistoryItem[]> {
    const uid = requireIdentifier(businessUid, 'business_uid')
    const { before, limit: most = 100 } = checked(OPTIONS, given, 'show the history')
    const from = typeof before === 'string' ? placeOf(before) : before
    const items = await store.timelineOf(uid, {
      limit: most,
      ...(from === undefined ? {} : { before: from }),
    })
    return items.map((item) => asHistoryItem(item, rules))
  }
}

function placeOf(id: string): TimelinePlace {
  const [, at, seq, rank] = PLACE.exec(id) as RegExpExecArray
  return { at: Number(at), seq: Number(seq), rank: Number(rank) as 0 | 1 }
}

function asHistoryItem(item: TimelineItem, rules: DecisionRules): HistoryItem {
  const { place, kind, name, attempts, error } = item
  const common = {
    id: `${place.at}-${place.seq}-${place.rank}`,
    at: isoOf(item.at),
    entryId: item.entryId,
    subscription_uid: item.subscriptionUid,
  }
  if (item.of === 'outcome' || kind === 'entitlement')
    return {
      ...common,
      kind: 'handled',
      of: kind === 'change' || kind === 'entitlement' ? kind : 'delivery',
      name,
      outcome: outcomeOf(item),
      attempts,
      error,
      dueAt: isoOf(item.dueAt),
    }
  const payload = item.payload === null ? {} : JSON.parse(item.payload)
  const text = (field: string): string | null => (typeof payload[field] === 'string' ? payload[field] : null)
  if (kind === 'change') {
    const [from, to, gone] = [text('from'), text('to'), text('gone')]
    const cause = text('cause') as Cause | null
    const entitledAfter = givesAccess(to === null ? null : (payload.record ?? null), rules, item.at)
    return { ...common, kind, from, to, gone, cause, entitledAfter, waiting: item.isWaiting }
  }
  if (kind === 'action')
    return {
      ...common,
      kind,
      action: name,
      actor: text('actor'),
      reason: text('reason'),
      on: text('entry_id'),
    }
  return { ...common, kind: 'delivery', name: nameOf(kind, name), waiting: item.isWaiting }
}

function nameOf(kind: EntryKind, name: string): string {
  return kind === 'unrecognised' ? 'unrecognised' : name
}

function outcomeOf({ of, status }: TimelineItem): Extract<HistoryItem, { kind: 'handled' }>['outcome'] {
  if (of === 'entry') return 'waiting'
  return status === 'pending' ? 'retrying' : status
}
