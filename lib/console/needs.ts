import type { Marketplace } from '../index.js'

/** What the console asks of a marketplace: public methods only. */
export type ConsoleMarketplace = Pick<
  Marketplace,
  | 'explain'
  | 'refresh'
  | 'track'
  | 'history'
  | 'subscriptions'
  | 'exportData'
  | 'erase'
  | 'health'
  | 'targetUrl'
> & { journal: Journal; webhooks: { check(): Promise<WebhookReport> }; readiness(): Promise<Readiness> }

export interface WebhookReport {
  events: ({ event: string } & Arrivals)[]
  secrets: ({ secret: string } & Arrivals)[]
  unrecognised: Arrivals
  otherItems: Arrivals
  secretWrong: Arrivals
}
export interface Arrivals {
  count: number
  firstAt: string | null
  lastAt: string | null
}
export interface Readiness {
  ready: boolean
  reasons: string[]
}

type Theirs = Marketplace['journal']
type TheirEntry = NonNullable<Awaited<ReturnType<Theirs['get']>>>
export type JournalEntry = Omit<TheirEntry, 'businessUid' | 'subscriptionUid'> & {
  business_uid: string | null
  subscription_uid: string | null
}
type Journal = Pick<Theirs, 'replay' | 'recordAction'> & {
  list(filter: Parameters<Theirs['list']>[0]): Promise<JournalEntry[]>
  get(id: string): Promise<JournalEntry | undefined>
}

/** For now. */
export function adapted(theirs: any): ConsoleMarketplace {
  const named = (entry: any) =>
    entry && {
      ...entry,
      business_uid: entry.business_uid ?? entry.businessUid,
      subscription_uid: entry.subscription_uid ?? entry.subscriptionUid,
    }
  const none = { count: 0, firstAt: null, lastAt: null }
  return {
    ...theirs,
    journal: {
      ...theirs.journal,
      list: async (filter: any) => (await theirs.journal.list(filter)).map(named),
      get: async (id: string) => named(await theirs.journal.get(id)),
    },
    webhooks: theirs.webhooks ?? {
      check: async () => ({
        events: [],
        secrets: [],
        unrecognised: none,
        otherItems: none,
        secretWrong: none,
      }),
    },
    readiness: theirs.readiness ?? (async () => ({ ready: true, reasons: [] })),
  }
}
