import type { Clock } from '../../base/clock.js'
import { requireIdentifier } from '../../base/record.js'
import type { DecisionRules } from '../../entitlement/decide.js'
import type { EntryFilter, Store, StoredSubscription, SubscriptionFilter } from '../../store/port/store.js'
import { MAX_LISTED } from '../journal/entry-filter.js'
import { entryPages, subscriptionPages } from '../journal/pages.js'
import { type JournalEntry, publicEntry } from '../journal/public-entry.js'
import { isoOf, type SubscriptionStatus, statusOf } from '../subscriptions/subscriptions.js'

/** All stored data of a business. Times are ISO 8601, UTC. */
export interface BusinessData {
  business_uid: string
  exportedAt: string
  subscriptions: (SubscriptionStatus & {
    /** Another business that an event named for this subscription. */
    candidate_business_uid: string | null
    /** Time of the last install or uninstall, by the platform's clock. */
    installAt: string | null
    /** Time of the last event that reported an uninstall by the business. */
    uninstalledAt: string | null
  })[]
  /** Subscriptions of other businesses for which an event named this business. */
  candidateOf: string[]
  /** Entries that name the business or one of its subscriptions, oldest first. */
  journal: JournalEntry[]
}

/** Small, because a payload may have 1 MB. */
const PAGE = 100
/** The subscriptions whose entries one list contains: 60,000 take 7.2 s of CPU time, and with a list for each 9.3 s. */
const SUBSCRIPTIONS = 25

/** Collects the stored data of a business. */
export function createExport(options: {
  store: Pick<Store, 'listEntries' | 'listSubscriptions'>
  rules: DecisionRules
  clock: Clock
}) {
  const { store, rules, clock } = options

  /** Each page is converted before the event loop has its turn, since a business may have very many forged ones. */
  async function allSubscriptions<Item>(
    filter: Omit<SubscriptionFilter, 'after' | 'limit'>,
    itemOf: (row: StoredSubscription) => Item,
  ) {
    const found: Item[] = []
    for await (const page of subscriptionPages(store, filter, MAX_LISTED)) found.push(...page.map(itemOf))
    return found
  }

  async function addEntries(found: Map<string, JournalEntry>, filter: Omit<EntryFilter, 'before' | 'limit'>) {
    for await (const page of entryPages(store, filter, PAGE))
      for (const entry of page) found.set(entry.id, publicEntry(entry))
  }

  return async function exportData(businessUid: string | number): Promise<BusinessData> {
    const business_uid = requireIdentifier(businessUid, 'business_uid')
    const now = clock.now()
    const subscriptions = await allSubscriptions({ businessUid: business_uid }, (row) => ({
      ...statusOf(row, rules, now),
      candidate_business_uid: row.candidateBusinessUid,
      installAt: isoOf(row.installAt),
      uninstalledAt: isoOf(row.uninstalledAt),
    }))
    const candidateOf = await allSubscriptions(
      { candidateBusinessUid: business_uid },
      ({ subscriptionUid }) => subscriptionUid,
    )
    const entries = new Map<string, JournalEntry>()
    await addEntries(entries, { businessUid: business_uid })
    const uids = subscriptions.map(({ subscription_uid }) => subscription_uid)
    for (let at = 0; at < uids.length; at += SUBSCRIPTIONS)
      await addEntries(entries, { subscriptionUid: uids.slice(at, at + SUBSCRIPTIONS) })
    return {
      business_uid,
      exportedAt: isoOf(now),
      subscriptions,
      candidateOf,
      journal: [...entries.values()].sort(
        (a, b) => compare(a.receivedAt, b.receivedAt) || compare(a.id, b.id),
      ),
    }
  }
}

/** Orders texts of one form, as ISO times are, without parsing them. */
function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
