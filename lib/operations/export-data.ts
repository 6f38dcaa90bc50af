import type { Clock } from '../clock.js'
import type { DecisionRules } from '../entitlement/decide.js'
import { requireIdentifier } from '../record.js'
import { MOST_LISTED } from '../store/entry-filter.js'
import type { EntryFilter, KeptSubscription, Store, SubscriptionFilter } from '../store/store.js'
import { nextTurn } from '../waiting.js'
import { type JournalEntry, publicEntry } from './public-entry.js'
import { isoOf, type SubscriptionStatus, statusOf } from './subscriptions.js'

/** What is kept of a business, all of it. Times are ISO 8601, UTC. */
export interface BusinessData {
  business_uid: string
  exportedAt: string
  subscriptions: (SubscriptionStatus & {
    /** Another business that was named for it. */
    candidate_business_uid: string | null
    /** When the last install or uninstall happened, by the platform. */
    installAt: string | null
    /** When the business was last said to have uninstalled the app. */
    uninstalledAt: string | null
  })[]
  /** Subscriptions of other businesses that this one was named for. */
  candidateOf: string[]
  /** Entries that name the business or one of its subscriptions, oldest first. */
  journal: JournalEntry[]
}

/** Entries with payloads of 1 MB must not be read by the thousand. */
const PAGE = 100

/** Gathers what is kept of a business. */
export function createExport(options: {
  store: Pick<Store, 'listEntries' | 'listSubscriptions'>
  rules: DecisionRules
  clock: Clock
}) {
  const { store, rules, clock } = options

  async function allSubscriptions(filter: Omit<SubscriptionFilter, 'after' | 'limit'>) {
    const found: KeptSubscription[] = []
    for (;;) {
      const after = found.at(-1)?.subscriptionUid
      const page = await store.listSubscriptions({
        ...filter,
        limit: MOST_LISTED,
        ...(after === undefined ? {} : { after }),
      })
      found.push(...page)
      if (page.length < MOST_LISTED) return found
      await nextTurn()
    }
  }

  async function addEntries(found: Map<string, JournalEntry>, filter: EntryFilter) {
    for (let before: string | undefined; ; ) {
      const page = await store.listEntries({
        ...filter,
        limit: PAGE,
        ...(before === undefined ? {} : { before }),
      })
      for (const entry of page) found.set(entry.id, publicEntry(entry))
      before = page.at(-1)?.id
      if (page.length < PAGE) return
      await nextTurn()
    }
  }

  return async function exportData(businessUid: string | number): Promise<BusinessData> {
    const business_uid = requireIdentifier(businessUid, 'business_uid')
    const subscriptions = await allSubscriptions({ businessUid: business_uid })
    const candidates = await allSubscriptions({ candidateBusinessUid: business_uid })
    const entries = new Map<string, JournalEntry>()
    await addEntries(entries, { businessUid: business_uid })
    for (const { subscriptionUid } of subscriptions) await addEntries(entries, { subscriptionUid })
    const now = clock.now()
    return {
      business_uid,
      exportedAt: isoOf(now),
      subscriptions: subscriptions.map((kept) => ({
        ...statusOf(kept, rules, now),
        candidate_business_uid: kept.candidateBusinessUid,
        installAt: isoOf(kept.installAt),
        uninstalledAt: isoOf(kept.uninstalledAt),
      })),
      candidateOf: candidates.map(({ subscriptionUid }) => subscriptionUid),
      journal: [...entries.values()].sort(
        (a, b) => Date.parse(a.receivedAt) - Date.parse(b.receivedAt) || (a.id < b.id ? -1 : 1),
      ),
    }
  }
}
