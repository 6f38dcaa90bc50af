import type { Clock } from '../clock.js'
import type { Entitlements } from '../entitlement/entitlements.js'
import { requireIdentifier } from '../record.js'
import type { Store } from '../store/store.js'
import { createRefreshAndWait } from '../work/refresh-and-wait.js'
import type { AnswersApi } from './answers-api.js'
import { createTrack } from './track.js'
import type { WhileOpen } from './while-open.js'

/** The marketplace's answers, and the methods that bring them up to date. */
export function createAnswers(options: {
  store: Store
  clock: Clock
  entitlements: Pick<Entitlements, 'isEntitled' | 'explain'>
  importSubscriptions: AnswersApi['importSubscriptions']
  /** How long `refresh` waits for the reads. */
  refreshTimeoutMs: number
  whileOpen: WhileOpen
}): AnswersApi {
  const { store, clock, entitlements, importSubscriptions, refreshTimeoutMs, whileOpen } = options
  const refresh = createRefreshAndWait({
    store,
    explain: entitlements.explain,
    requireUid: (uid) => requireIdentifier(uid, 'business_uid'),
    timeoutMs: refreshTimeoutMs,
    clock,
  })

  return {
    // An answer never rejects, not even after `close()`.
    isEntitled: entitlements.isEntitled,
    explain: entitlements.explain,
    track: whileOpen(createTrack({ store })),
    importSubscriptions: whileOpen(importSubscriptions),
    refresh: whileOpen(refresh),
  }
}
