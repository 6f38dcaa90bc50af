import type { Clock } from '../../base/clock.js'
import { requireIdentifier } from '../../base/record.js'
import { nextTurn } from '../../base/waiting.js'
import type { DecisionRules } from '../../entitlement/decide.js'
import { auditUid } from '../../store/journal/audit.js'
import type { Store } from '../../store/port/store.js'
import { MAX_LISTED } from '../journal/entry-filter.js'
import { entryPages, subscriptionPages } from '../journal/pages.js'
import { type JournalEntry, publicEntry } from '../journal/public-entry.js'
import { isoOf, type SubscriptionStatus, statusOf } from '../subscriptions/subscriptions.js'

/** All stored data of a business. Times are ISO 8601, UTC. */
export interface BusinessData {
  /** Identifier of the business. */
  business_uid: string
  /** When the export began: ISO 8601, UTC. */
  exportedAt: string
  /** The stored subscriptions of the business. */
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
  /** The search for subscriptions of the business with `platform.findSubscriptions`; null: there is none. */
  search: {
    /** Whether the app has asked for it; else only an install has. */
    isAsked: boolean
    /** When somebody last wanted its answer. */
    wantedAt: string | null
    /** When the platform last answered. */
    answeredAt: string | null
    /** When it is made next; null while it is made. */
    nextAt: string | null
    /** Code of the failure of the last try. */
    failure: string | null
  } | null
  /** Entries that name the business or one of its subscriptions, oldest first. */
  journal: JournalEntry[]
}

/** Small, because a payload may have 1 MB. */
const PAGE = 100
/** The subscriptions whose entries one list contains: 60,000 take 7.2 s of CPU time, and with a list for each 9.3 s. */
const SUBSCRIPTIONS = 25

/** Length of a piece of text, apart from its last item: made in about a millisecond. */
const PIECE = 64 * 1024

/** Reads the stored data of a business. */
export function createExport(options: {
  store: Pick<Store, 'listEntries' | 'listSubscriptions' | 'searchOf'>
  rules: DecisionRules
  clock: Clock
}) {
  const { store, rules, clock } = options

  /** The lists of an export, in pages. They are read in this order: the journal needs the subscriptions. */
  function read(businessUid: string | number) {
    const business_uid = requireIdentifier(businessUid, 'business_uid')
    const now = clock.now()
    const uids: string[] = []

    async function* subscriptions(): AsyncGenerator<BusinessData['subscriptions']> {
      for await (const page of subscriptionPages(store, { businessUid: business_uid }, MAX_LISTED)) {
        uids.push(...page.map(({ subscriptionUid }) => subscriptionUid))
        yield page.map((row) => ({
          ...statusOf(row, rules, now),
          candidate_business_uid: row.candidateBusinessUid,
          installAt: isoOf(row.installAt),
          uninstalledAt: isoOf(row.uninstalledAt),
        }))
      }
    }

    async function* candidateOf(): AsyncGenerator<string[]> {
      for await (const page of subscriptionPages(store, { candidateBusinessUid: business_uid }, MAX_LISTED))
        yield page.map(({ subscriptionUid }) => subscriptionUid)
    }

    /** The entries of the business, then those of its subscriptions that do not name it. */
    async function* journal(): AsyncGenerator<JournalEntry[]> {
      const audit = auditUid(business_uid)
      const isOfBusiness = ({ businessUid: of, kind }: { businessUid: string | null; kind: string }) =>
        of === business_uid || (of === audit && kind === 'action')
      for await (const page of entryPages(store, { businessUid: business_uid }, PAGE))
        yield page.map(publicEntry)
      for (let at = 0; at < uids.length; at += SUBSCRIPTIONS) {
        const subscriptionUid = uids.slice(at, at + SUBSCRIPTIONS)
        for await (const page of entryPages(store, { subscriptionUid }, PAGE))
          yield page.filter((entry) => !isOfBusiness(entry)).map(publicEntry)
      }
    }

    return {
      head: { business_uid, exportedAt: isoOf(now) },
      lists: { subscriptions, candidateOf, journal },
    }
  }

  async function searchOf(businessUid: string): Promise<BusinessData['search']> {
    const found = await store.searchOf(businessUid)
    if (!found) return null
    const { isAsked, wantedAt, answeredAt, nextAt, failure } = found
    return {
      isAsked,
      wantedAt: isoOf(wantedAt),
      answeredAt: isoOf(answeredAt),
      nextAt: isoOf(nextAt),
      failure,
    }
  }

  return {
    async data(businessUid: string | number): Promise<BusinessData> {
      const { head, lists } = read(businessUid)
      const data: BusinessData = {
        ...head,
        subscriptions: [],
        candidateOf: [],
        search: await searchOf(head.business_uid),
        journal: [],
      }
      for await (const page of lists.subscriptions()) data.subscriptions.push(...page)
      for await (const page of lists.candidateOf()) data.candidateOf.push(...page)
      for await (const page of lists.journal()) data.journal.push(...page)
      data.journal.sort((a, b) => compare(a.receivedAt, b.receivedAt) || compare(a.id, b.id))
      return data
    },

    /** The same as JSON, in pieces that one turn of the event loop makes, with a line for each item. */
    async *text(businessUid: string | number): AsyncGenerator<string, void> {
      const { head, lists } = read(businessUid)
      let text = JSON.stringify({ ...head, search: await searchOf(head.business_uid) }).slice(0, -1)
      for (const [name, pages] of Object.entries(lists)) {
        text += `,\n"${name}":[`
        let separator = '\n'
        for await (const page of pages()) {
          for (const item of page) {
            text += `${separator}${JSON.stringify(item)}`
            separator = ',\n'
            if (text.length < PIECE) continue
            yield text
            text = ''
            await nextTurn()
          }
        }
        text += ']'
      }
      yield `${text}}\n`
    },
  }
}

/** Orders texts of one form, as ISO times are, without parsing them. */
function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
