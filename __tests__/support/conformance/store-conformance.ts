import { COMPARING } from './comparing.js'
import { IDENTIFIERS } from './identifiers.js'
import { ACCEPTING } from './journal/accepting.js'
import { CAUSES_OF_READS } from './journal/causes.js'
import { COUNTING } from './journal/counting.js'
import { ERASING } from './journal/erasing.js'
import { LISTING } from './journal/listing.js'
import { LOOKING } from './journal/looking.js'
import { PRUNING } from './journal/pruning.js'
import { runInLab, type StoreConformanceOptions } from './lab.js'
import { ENDING } from './lanes/ending-entries.js'
import { ENTITLEMENTS } from './lanes/entitlements.js'
import { HANDING_OVER } from './lanes/handing-over.js'
import { HANDLED_TOPICS } from './lanes/handled-topics.js'
import { HINTS } from './lanes/hints.js'
import { SUSPECTS } from './lanes/suspects.js'
import { OPENING } from './opening.js'
import { BURSTS } from './reads/bursts.js'
import { ENDS } from './reads/ends.js'
import { FENCING } from './reads/fencing.js'
import { FINISHING } from './reads/finishing.js'
import { INSTALLS } from './reads/installs.js'
import { LEASING } from './reads/leasing.js'
import { OBSERVING } from './reads/observing.js'
import { QUIET_READS } from './reads/quiet-reads.js'
import { REFRESHING_ALL } from './reads/refreshing-all.js'
import { REQUESTING } from './reads/requesting.js'
import { SEARCHING } from './reads/searching.js'
import { REOPENING } from './reopening.js'
import { SEVERAL } from './several.js'

/** A promise of both engines as a test. */
export interface ConformanceCheck {
  /** The method and its promise; unique in the suite. */
  name: string
  /** Rejects with an `AssertionError` if the promise is broken, and with the store's error if a call fails. */
  run(): Promise<void>
}

/**
 * The promises of both engines as checks. Each check uses its own store.
 *
 * @example
 * for (const { name, run } of storeConformance({ createStore: () => createSqlStore(engine()) })) it(name, run)
 */
export function storeConformance(options: StoreConformanceOptions): ConformanceCheck[] {
  const groups = [...ALL, ...(options.reopen ? [REOPENING] : []), ...(options.beside ? [SEVERAL] : [])]
  const checks = groups.flatMap((group) => Object.entries(group))
  if (new Map(checks).size < checks.length) throw new Error('two checks have the same name')
  return checks.map(([name, check]) => ({ name, run: () => runInLab(options, check) }))
}

const ALL = [
  OPENING,
  ACCEPTING,
  IDENTIFIERS,
  REQUESTING,
  BURSTS,
  QUIET_READS,
  ENDS,
  COMPARING,
  INSTALLS,
  REFRESHING_ALL,
  CAUSES_OF_READS,
  LEASING,
  FINISHING,
  FENCING,
  OBSERVING,
  SEARCHING,
  HANDING_OVER,
  ENDING,
  HANDLED_TOPICS,
  SUSPECTS,
  ENTITLEMENTS,
  LISTING,
  LOOKING,
  ERASING,
  PRUNING,
  COUNTING,
  HINTS,
]
