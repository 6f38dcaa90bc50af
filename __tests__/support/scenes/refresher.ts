import { MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { ReadResult } from '../../../lib/platform/read-result.js'
import { type ClaimReads, type ReadClaim, URGENCY, type Urgency } from '../../../lib/store/port/store.js'
import { createRefresher } from '../../../lib/work/reading/refresher.js'
import { createVirtualClock } from '../machine/virtual-clock.js'
import { createReader, subscriptionOf } from './reader.js'

/** A leased read of this class. */
export function readOf(urgency: Urgency, businessUid = 'b'): ReadClaim {
  return { ...createReader().claim, urgency, subscription: subscriptionOf({ businessUid }) }
}

/**
 * A refresher over a store in which a test makes reads due, one for each business, and answers them. `isEndless`: reads
 * of further businesses, s0 and so on, are always due. `isFlooded`: so are reads of subscriptions that were never read.
 * `isInTheWay`: a claim finds one read, and puts off rows that are in the way of others.
 */
export function createReads(
  concurrency: number,
  { isEndless = false, isFlooded = false, isInTheWay = false } = {},
) {
  const { event, eventOfUnread } = URGENCY
  const clock = createVirtualClock()
  const waiting: string[] = []
  const asked: ClaimReads[] = []
  const [claimed, begun, given]: [string[], string[], string[]] = [[], [], []]
  const answers = new Map<string, (result: ReadResult) => void>()
  const refresher = createRefresher({
    store: {
      async claimReads(options) {
        asked.push(options)
        if (isEndless) for (let i = 0; i < options.limit; i++) waiting.push(`s${claimed.length + i}`)
        const businesses = waiting.splice(0, isInTheWay ? 1 : options.limit)
        if (isInTheWay && businesses.length > 0) options.onPutOff?.()
        const taken = businesses.map((): Urgency => event)
        while (isFlooded && taken.length < options.limit && options.choose?.([eventOfUnread], taken))
          businesses.push(`u${claimed.length + taken.push(eventOfUnread)}`)
        claimed.push(...businesses)
        return businesses.map((id, i) => ({ ...readOf(taken[i] as Urgency, id), id }))
      },
      async finishRead({ id }, { nextInMs }) {
        if (nextInMs === 0) given.push(id)
        return true
      },
      renewRead: async () => true,
      otherBusinesses: async () => ({
        ...{ failing: 1, served: 0, recovered: 0, isSteady: false, exist: false },
        ...{ untested: 0, lately: { failing: 0, served: 0 } },
      }),
      readOthers: async () => 0,
    },
    read({ businessUid }) {
      begun.push(businessUid)
      return new Promise((resolve) => answers.set(businessUid, resolve))
    },
    isWaitingForToken: () => false,
    stateOf: ({ purchase_state }) => purchase_state,
    accessOf: ({ purchase_state }) => ({ entitled: purchase_state === 'purchased', until: null }),
    concurrency,
    leaseMs: 10 * MINUTE,
    renewEveryMs: 5 * MINUTE,
    pollMs: SECOND,
    reconcileEveryMs: MINUTE,
    maxStaleMs: 4_320 * MINUTE,
    waitMs: 0,
    clock: clock.forProcess(),
    onError(error) {
      throw error
    },
  })
  return {
    refresher,
    clock,
    /** The claims of the refresher, the businesses that it claimed, and those whose reads began or were given back. */
    ...{ asked, claimed, begun, given },
    due: (...businesses: string[]) => void waiting.push(...businesses),
    answer: (business: string, result: ReadResult = { kind: 'missing' }) => answers.get(business)?.(result),
  }
}
