import type { Clock } from '../clock.js'
import type { DecisionRules } from '../entitlement/decide.js'
import type { Entitlements } from '../entitlement/entitlements.js'
import { requireIdentifier } from '../record.js'
import type { Store } from '../store/store.js'
import { createRefreshAndWait } from '../work/refresh-and-wait.js'
import { createErase } from './erase.js'
import { createExport } from './export-data.js'
import { createHistory } from './history.js'
import { createJournalOperations } from './journal-operations.js'
import type { RecordsApi } from './records-api.js'
import { createRefreshAll } from './refresh-all.js'
import { createSubscriptionQueries } from './subscriptions.js'
import { createTrack } from './track.js'
import type { WhileOpen } from './while-open.js'

/** The marketplace's methods for stored data. */
export function createRecords(options: {
  store: Store
  rules: DecisionRules
  explain: Entitlements['explain']
  importSubscriptions: RecordsApi['subscriptions']['import']
  /** How long `businesses.refresh` waits for the reads. */
  refreshTimeoutMs: number
  clock: Clock
  whileOpen: WhileOpen
}): RecordsApi {
  const { store, explain, importSubscriptions, refreshTimeoutMs, clock, whileOpen } = options
  const subscriptions = createSubscriptionQueries(options)
  const journal = createJournalOperations(options)

  return {
    subscriptions: {
      list: whileOpen(subscriptions.list),
      get: whileOpen(subscriptions.get),
      track: whileOpen(createTrack({ store })),
      import: whileOpen(importSubscriptions),
      refreshAll: whileOpen(createRefreshAll({ store })),
    },
    businesses: {
      refresh: whileOpen(
        createRefreshAndWait({
          store,
          explain,
          requireUid: (uid) => requireIdentifier(uid, 'business_uid'),
          timeoutMs: refreshTimeoutMs,
          clock,
        }),
      ),
      history: whileOpen(createHistory(options)),
      export: whileOpen(createExport(options)),
      erase: whileOpen(createErase(options)),
    },
    journal: {
      list: whileOpen(journal.list),
      get: whileOpen(journal.get),
      replay: whileOpen(journal.replay),
      replayAll: whileOpen(journal.replayAll),
      recordAction: whileOpen(journal.recordAction),
    },
  }
}
