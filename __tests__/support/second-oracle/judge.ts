import { judgeAnswers } from './checks/answers.js'
import { createBelief } from './checks/belief.js'
import { judgeEntitlements } from './checks/entitlements.js'
import { judgeHandling } from './checks/handling.js'
import { historyOf } from './checks/history.js'
import { judgeHealth, judgeLife } from './checks/life.js'
import { judgeReaching } from './checks/reaching.js'
import { judgeReads } from './checks/reads.js'
import type { Exactness, Finding, Observation } from './log.js'

/**
 * The second oracle: everything in a log that breaks a promise of docs/guarantees.md, docs/platform-interface.md or the
 * pages that they lead to. It knows the documents only, and none of the package's code.
 */
export function judge(log: readonly Observation[], exactness: Exactness): Finding[] {
  const history = historyOf(log, exactness)
  const belief = createBelief(history)
  // Only the app knows what its own rule makes of a record.
  const hasRule = history.processes.some(({ rules }) => rules.hasRule)
  const onRecords = hasRule
    ? []
    : [
        ...judgeAnswers(history, belief),
        ...judgeReaching(history, belief),
        ...judgeEntitlements(history, belief),
      ]
  return [
    ...onRecords,
    ...judgeReads(history, belief),
    ...judgeHandling(history),
    ...judgeLife(history),
    ...judgeHealth(history, belief),
  ].sort((a, b) => a.at - b.at)
}
