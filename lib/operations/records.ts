import type { Clock } from '../clock.js'
import type { Decision, DecisionRules } from '../entitlement/decide.js'
import type { ItemOptions } from '../entitlement/items.js'
import type { Retention, Store } from '../store/store.js'
import { createErase } from './erase.js'
import { createExplainAt } from './explain-at.js'
import { createExport } from './export-data.js'
import { createHistory } from './history.js'
import { createJournalOperations } from './journal-operations.js'
import { createSubscriptionQueries } from './subscriptions.js'

/**
 * Which answer to explain.
 *
 * @example await marketplace.explain('business-1', { at: '2026-03-01T09:00:00Z' })
 */
export interface ExplainOptions extends ItemOptions {
  /** The answer at this time, by today's rules: a `Date`, or ISO 8601 with an offset or `Z`. */
  at?: Date | string
}

/** The marketplace's methods for stored data. `call` wraps each, so that it rejects with `closed` after `close()`. */
export function createRecords(options: {
  store: Store
  rules: DecisionRules
  retention: Retention
  clock: Clock
  /** The present answer. */
  explain(businessUid: string | number, options?: Omit<ExplainOptions, 'at'>): Promise<Decision>
  call<Arguments extends unknown[], T>(
    work: (...given: Arguments) => Promise<T>,
  ): (...given: Arguments) => Promise<T>
}) {
  const { store, explain, call } = options
  const subscriptions = createSubscriptionQueries(options)
  const journal = createJournalOperations(options)
  const explainAt = call(createExplainAt(options))

  return {
    /** Without `at` it never rejects; with `at` it may. */
    explain(businessUid: string | number, { at, ...rest }: ExplainOptions = {}): Promise<Decision> {
      return at === undefined ? explain(businessUid, rest) : explainAt(businessUid, { at, ...rest })
    },
    subscriptions: { list: call(subscriptions.list), get: call(subscriptions.get) },
    journal: {
      list: call(journal.list),
      get: call(journal.get),
      replay: call(journal.replay),
      replayAll: call(journal.replayAll),
      recordAction: call(journal.recordAction),
    },
    history: call(createHistory(store)),
    erase: call(createErase(options)),
    exportData: call(createExport(options)),
  }
}
