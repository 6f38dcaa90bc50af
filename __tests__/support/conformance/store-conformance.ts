import { ACCEPTING } from './accepting.js'
import { BURSTS } from './bursts.js'
import { CAUSES_OF_READS } from './causes.js'
import { CLAIMING_SEVERAL } from './claiming-several.js'
import { COMPARING } from './comparing.js'
import { ENDING } from './ending-entries.js'
import { ENDS } from './ends.js'
import { ERASING } from './erasing.js'
import { FENCING } from './fencing.js'
import { FINISHING } from './finishing.js'
import { HANDING_OVER } from './handing-over.js'
import { HANDLED_TOPICS } from './handled-topics.js'
import { HINTS } from './hints.js'
import { IDENTIFIERS } from './identifiers.js'
import { INSTALLS } from './installs.js'
import { type Check, createLab } from './lab.js'
import { LANE_LEASES } from './lane-leases.js'
import { LEASING } from './leasing.js'
import { LISTING } from './listing.js'
import { LOOKING } from './looking.js'
import { MOVING } from './moving.js'
import { OBSERVING } from './observing.js'
import { OPENING } from './opening.js'
import type { StoreConformanceOptions } from './options.js'
import { PRUNING_AND_COUNTS } from './pruning-and-counts.js'
import { QUIET_READS } from './quiet-reads.js'
import { REFRESHING_ALL } from './refreshing-all.js'
import { REQUESTING } from './requesting.js'
import { SEVERAL } from './several.js'
import { SUSPECTS } from './suspects.js'
import { WAITING_IN_VAIN } from './waiting-in-vain.js'

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
