import { describe, expect, it } from '@jest/globals'
import { MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { SearchResult } from '../../../lib/platform/find-subscriptions.js'
import type { ClaimSearches, SearchClaim, SearchFinish } from '../../../lib/store/port/store.js'
import { createReadOutcomes } from '../../../lib/work/reading/outcomes.js'
import { createUnreadPace } from '../../../lib/work/reading/unread-pace.js'
import { createSearcher } from '../../../lib/work/searching/searcher.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'

const NONE: SearchResult = { kind: 'found', subscriptionUids: [] }
const LIMITED: SearchResult = { kind: 'throttled', code: 'platform_throttled', retryAfterMs: 5 * SECOND }

describe('the searcher', () => {
  it('makes no search while reads are paused, and pauses them after a limit, which leaves them half of the time', async () => {
    const { searcher, advance, due, answers, begun, outcomes, finishes } = scene()
    answers.push(LIMITED)
    due.push(asked('b1'))
    searcher.start()
    await advance(SECOND)
    expect(outcomes.isPaused()).toBe(true)
    expect(outcomes.problems().map(({ code }) => code)).toEqual(['reads_throttled'])
    expect(finishes[0]).toMatchObject({ kind: 'failed', failure: 'platform_throttled' })
    expect((finishes[0] as { nextInMs: number }).nextInMs).toBeGreaterThanOrEqual(10 * SECOND)
    due.push(asked('b2'))
    // The reads go on before the searches.
    await advance(6 * SECOND)
    expect([outcomes.isPaused(), begun]).toEqual([false, ['b1']])
    await advance(5 * SECOND)
    expect(begun).toEqual(['b1', 'b2'])
  })

  it('shows with the next answer that the credentials are right again', async () => {
    const { searcher, advance, due, answers, outcomes } = scene()
    answers.push({ kind: 'credentials_refused', code: 'app_credentials_refused' })
    due.push(asked('b1'), asked('b2'))
    searcher.start()
    await advance(SECOND)
    const codes = () => outcomes.problems().map(({ code }) => code)
    expect(codes()).toEqual(['credentials_refused'])
    await advance(MINUTE)
    expect(codes()).toEqual([])
  })

  it('keeps for installs the pace of what was never read, and for no others', async () => {
    const { searcher, advance, due, answers, begun } = scene()
    due.push(...Array.from({ length: 1_000 }, (_, i) => ofInstall(`i${i}`)))
    answers.push(...Array(20).fill(NONE), LIMITED)
    searcher.start()
    await advance(10 * SECOND)
    const before = begun.length
    for (let i = 0; i < 20; i++) due.push(asked(`a${i}`))
    await advance(2 * SECOND)
    const later = begun.slice(before)
    expect(later.filter((uid) => uid.startsWith('a'))).toHaveLength(20)
    // Half of the rate before the limit, at which 21 began in a second.
    await advance(8 * SECOND)
    const ofInstalls = begun.slice(before).filter((uid) => uid.startsWith('i')).length
    expect(ofInstalls).toBeGreaterThan(0)
    expect(ofInstalls).toBeLessThanOrEqual(10 * 10.5 + 2)
  })
})

/** A searcher over a store in which these searches are due. `answers`: the next results; after them nothing is found. */
function scene() {
  const time = createVirtualClock()
  const clock = time.forProcess()
  const pace = createUnreadPace(clock)
  const outcomes = createReadOutcomes({ clock, onThrottled: pace.limited })
  const due: SearchClaim[] = []
  const answers: SearchResult[] = []
  const begun: string[] = []
  const finishes: SearchFinish[] = []
  const searcher = createSearcher({
    store: {
      async claimSearches({ limit, installLimit }: ClaimSearches) {
        const claimed: SearchClaim[] = []
        for (const [isOfInstall, most] of [
          [false, limit],
          [true, Math.min(limit, installLimit)],
        ] as const)
          for (const claim of due.filter((each) => each.isOfInstall === isOfInstall)) {
            const taken = claimed.filter((each) => each.isOfInstall === isOfInstall).length
            if (taken >= most || claimed.length >= limit) break
            claimed.push(claim)
            due.splice(due.indexOf(claim), 1)
          }
        return claimed
      },
      renewSearch: async () => true,
      async finishSearch(_claim, finish) {
        finishes.push(finish)
        return true
      },
    },
    async find(businessUid) {
      begun.push(businessUid)
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, 20))
      return answers.shift() ?? NONE
    },
    reads: { isPaused: outcomes.isPaused, noteSearch: outcomes.noteSearch, pace },
    reconcileEveryMs: 24 * 60 * MINUTE,
    leaseMs: MINUTE,
    renewEveryMs: 10 * SECOND,
    pollMs: SECOND,
    clock,
    onError(error) {
      throw error
    },
  })
  return { searcher, advance: time.advance, due, answers, begun, outcomes, finishes }
}

const asked = (id: string): SearchClaim => ({
  id,
  leaseToken: id,
  isOfInstall: false,
  generation: 1,
  failures: 0,
})
const ofInstall = (id: string): SearchClaim => ({ ...asked(id), isOfInstall: true })
