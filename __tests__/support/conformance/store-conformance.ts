import { COMPARING } from './comparing.js'
import { IDENTIFIERS } from './identifiers.js'
import { ACCEPTING } from './journal/accepting.js'
import { CAUSES_OF_READS } from './journal/causes.js'
import { ERASING } from './journal/erasing.js'
import { LISTING } from './journal/listing.js'
import { LOOKING } from './journal/looking.js'
import { MOVING } from './journal/moving.js'
import { PRUNING_AND_COUNTS } from './journal/pruning-and-counts.js'
import { type Check, createLab } from './lab.js'
import { CLAIMING_SEVERAL } from './lanes/claiming-several.js'
import { ENDING } from './lanes/ending-entries.js'
import { HANDING_OVER } from './lanes/handing-over.js'
import { HANDLED_TOPICS } from './lanes/handled-topics.js'
import { HINTS } from './lanes/hints.js'
import { LANE_LEASES } from './lanes/lane-leases.js'
import { SUSPECTS } from './lanes/suspects.js'
import { WAITING_IN_VAIN } from './lanes/waiting-in-vain.js'
import { OPENING } from './opening.js'
import type { StoreConformanceOptions } from './options.js'
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
  return ALL.filter(({ needs }) => needs === undefined || options[needs] !== undefined).map(
    ({ name, check }) => ({
      name,
      async run() {
        const lab = await createLab(options)
        try {
          await check(lab)
        } finally {
          await lab.close()
        }
      },
    }),
  )
}

const ALL: readonly Check[] = [
  ...OPENING,
  ...ACCEPTING,
  ...IDENTIFIERS,
  ...REQUESTING,
  ...BURSTS,
  ...QUIET_READS,
  ...ENDS,
  ...COMPARING,
  ...INSTALLS,
  ...REFRESHING_ALL,
  ...CAUSES_OF_READS,
  ...LEASING,
  ...CLAIMING_SEVERAL,
  ...FINISHING,
  ...MOVING,
  ...FENCING,
  ...OBSERVING,
  ...HANDING_OVER,
  ...LANE_LEASES,
  ...ENDING,
  ...HANDLED_TOPICS,
  ...WAITING_IN_VAIN,
  ...SUSPECTS,
  ...LISTING,
  ...LOOKING,
  ...ERASING,
  ...PRUNING_AND_COUNTS,
  ...HINTS,
  ...SEVERAL,
]
