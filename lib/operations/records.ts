import type { Clock } from '../clock.js'
import type { DecisionRules } from '../entitlement/decide.js'
import type { Retention, Store } from '../store/store.js'
import { createErase } from './erase.js'
import { createExport } from './export-data.js'
import { createHistory } from './history.js'
import { createJournalOperations } from './journal-operations.js'
import type { RecordsApi } from './records-api.js'
import { createSubscriptionQueries } from './subscriptions.js'
import type { WhileOpen } from './while-open.js'

/** The marketplace's methods for stored data. */
export function createRecords(options: {
  store: Store
  rules: DecisionRules
  retention: Retention
  clock: Clock
  whileOpen: WhileOpen
}): RecordsApi {
  const { whileOpen } = options
  const subscriptions = createSubscriptionQueries(options)
  const journal = createJournalOperations(options)

  return {
    subscriptions: { list: whileOpen(subscriptions.list), get: whileOpen(subscriptions.get) },
    journal: {
      list: whileOpen(journal.list),
      get: whileOpen(journal.get),
      replay: whileOpen(journal.replay),
      replayAll: whileOpen(journal.replayAll),
      recordAction: whileOpen(journal.recordAction),
    },
    history: whileOpen(createHistory(options)),
    erase: whileOpen(createErase(options)),
    exportData: whileOpen(createExport(options)),
  }
}
