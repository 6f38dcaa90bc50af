import { CALLS } from '../protocol/calls.js'
import type { Inputs } from '../protocol/inputs.js'
import { mayDo, type Person } from '../protocol/roles.js'
import type { Replies, SubscriptionRow } from '../protocol/shapes.js'
import { createActs, type ExportFile } from './acts.js'
import { createFailedEntries, outcomeRow } from './attention/groups.js'
import { createReplay } from './attention/replay.js'
import { createBusinessCalls } from './business/business.js'
import type { Lookup } from './business/lookup.js'
import { createSearch } from './business/search.js'
import { createDeliveryCalls } from './deliveries.js'
import { createHealthCall } from './health.js'
import { Refusal } from './http.js'
import { createStoredCall } from './privacy.js'
import { type ConsoleMarketplace, rowsFor, rowsOf } from './rows.js'
import { createScans } from './scans.js'

const ROWS_A_PAGE = 50

export type Service = {
  [Name in keyof Replies]: (person: Person, input: Inputs[Name]) => Promise<Replies[Name]>
} & { export(person: Person, input: Inputs['export']): ExportFile }

/** Implements every call of the table with the public methods of a marketplace. The router has checked the permission. */
export function createService(options: {
  marketplace: ConsoleMarketplace
  tokenFor(person: Person): string
  /** Where a person signs in again; null if the app has not given it. */
  signInUrl: string | null
  lookup: Lookup | undefined
  sign(...values: unknown[]): string
}): Service {
  const { tokenFor, signInUrl, lookup, sign } = options
  // A person looks at any identifier, also a typed one. That must not make the platform be searched for it.
  const marketplace: ConsoleMarketplace = {
    ...options.marketplace,
    explain: (businessUid) => options.marketplace.explain(businessUid, { search: false }),
  }
  const scans = createScans(marketplace)
  const search = createSearch({ marketplace, scans, lookup })
  const { business, history } = createBusinessCalls(marketplace)
  const failed = createFailedEntries({ scans, sign })
  const replays = createReplay({ marketplace, failed })
  const deliveries = createDeliveryCalls(marketplace, scans)
  const stored = createStoredCall(marketplace)

  return {
    async session(person) {
      const calls = Object.entries(CALLS).filter(([, { role }]) => mayDo(person, role))
      return { person, token: tokenFor(person), calls: calls.map(([name]) => name), signInUrl }
    },
    search: (_person, { q }) => search(q),
    business,
    history,
    async subscriptions(person, { reason, after }) {
      const { subscriptionRow } = rowsFor(person)
      const subscriptions: SubscriptionRow[] = []
      const { examined, next } = await scans.subscriptions({
        from: after,
        take(row) {
          if (reason === undefined || row.reason === reason) subscriptions.push(subscriptionRow(row))
        },
        isFull: () => subscriptions.length === ROWS_A_PAGE,
        ...(reason === undefined ? { page: ROWS_A_PAGE + 1 } : {}),
      })
      return { subscriptions, examined, after: next }
    },
    async entry(person, { id }) {
      const entry = await marketplace.journal.get(id)
      if (entry) return rowsFor(person).entryDetail(entry)
      throw new Refusal(404, 'entry_gone', 'No entry has this id. Its retention may have ended.')
    },
    attention: failed.attention,
    group: failed.group,
    shapes: deliveries.shapes,
    webhooks: deliveries.webhooks,
    live: deliveries.live,
    health: createHealthCall(marketplace),
    activity: deliveries.activity,
    previewReplay: replays.preview,
    outcomes: (person, { ids }) =>
      scans.inTurn(async () => ({
        entries: await rowsOf(marketplace, ids.split(','), (entry) => outcomeRow(person, entry)),
      })),
    stored: (_person, { business_uid }) => scans.inTurn(() => stored(business_uid)),
    ...createActs({ marketplace, scans, business, replays, stored }),
  }
}
