import type { Clock } from '../clock.js'
import type { DecisionRules } from '../entitlement/decide.js'
import type { Entitlements } from '../entitlement/entitlements.js'
import type { Retention, Store } from '../store/store.js'
import type { AnswersApi } from './answers-api.js'
import { createExplainAt } from './explain-at.js'
import type { WhileOpen } from './while-open.js'

/** The marketplace's answers. */
export function createAnswers(options: {
  store: Store
  rules: DecisionRules
  retention: Retention
  clock: Clock
  entitlements: Pick<Entitlements, 'isEntitled' | 'peek' | 'explain'>
  whileOpen: WhileOpen
}): AnswersApi {
  const { entitlements, whileOpen } = options
  const explainAt = whileOpen(createExplainAt(options))

  return {
    // The present answer never rejects, not even after `close()`.
    isEntitled: entitlements.isEntitled,
    peek: entitlements.peek,
    explain: (businessUid, { at, ...rest } = {}) =>
      at === undefined ? entitlements.explain(businessUid, rest) : explainAt(businessUid, { at, ...rest }),
  }
}
