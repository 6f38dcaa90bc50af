import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../../../lib/base/clock.js'
import type { LaneClaim, ReadClaim, SuspectKind } from '../../../lib/store/port/store.js'
import { createSuspectRounds } from '../../../lib/work/leases/suspects.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'
import { gate } from '../../support/until.js'

const POLL_MS = SECOND
const HANG_MS = 30 * SECOND
const LEASE_MS = 60 * SECOND

describe('rounds of suspects', () => {
  it('H67 a suspect that hangs takes at most half of the time from other work', async () => {
    const { advance, heldMs, rounds, due } = scene(HANG_MS)
    for (let i = 0; i < 100; i++) due.push('lane')
    rounds.start()
    await advance(6 * HANG_MS)
    expect(due).not.toEqual([])
    expect(heldMs('lane')).toBeLessThanOrEqual(3 * HANG_MS + SECOND)
    // The reads were never held.
    expect(heldMs('read')).toBe(0)
  })

  it('H67 a suspect that hangs holds other work up for a lease, and no suspect begins beside it', async () => {
    const { advance, rounds, due, halted, begun, atOnce } = scene(10 * LEASE_MS)
    due.push('lane', 'lane')
    rounds.start()
    await advance(LEASE_MS + 1)
    expect([begun(), halted()]).toEqual([1, []])
    await advance(8 * LEASE_MS)
    expect([begun(), halted()]).toEqual([1, []])
    await advance(3 * LEASE_MS)
    expect([begun(), due, atOnce()]).toEqual([2, [], 1])
  })

  it('H67 other work that hangs holds suspects and the work behind it up for a lease', async () => {
    const { advance, rounds, due, halted, halting } = scene(10)
    halting()
    due.push('lane', 'lane')
    rounds.start()
    await advance(LEASE_MS - 1)
    expect([due, halted()]).toEqual([['lane', 'lane'], ['lane']])
    await advance(100)
    expect([due, halted()]).toEqual([[], []])
  })

  it('H67 quick suspects run one after the other in one round', async () => {
    const { advance, rounds, due, holds } = scene(10)
    for (let i = 0; i < 6; i++) due.push('lane')
    rounds.start()
    await advance(SECOND / 2)
    expect(due).toEqual([])
    expect(holds).toEqual(['lane'])
  })

  it('never run two suspects at once, of either kind', async () => {
    const { advance, rounds, due, holds, atOnce, halted } = scene(100)
    due.push('lane', 'read', 'lane', 'read')
    rounds.start()
    await advance(2 * SECOND)
    expect(due).toEqual([])
    expect(holds).toEqual(['lane', 'read', 'lane', 'read'])
    expect(atOnce()).toBe(1)
    expect(halted()).toEqual([])
  })

  it('run beside no search, which other work does not wait for', async () => {
    const { advance, rounds, due, halted, holds, searches } = scene(100)
    const search = gate()
    searches.ending = search.opened
    due.push('read')
    rounds.start()
    await advance(SECOND)
    expect([searches.isHalted, due, halted()]).toEqual([true, ['read'], []])
    search.open()
    await advance(SECOND)
    expect([searches.isHalted, due, holds]).toEqual([false, [], ['read']])
  })

  it('leave out the lanes whose handlers still run here', async () => {
    const { advance, rounds, due, running, excepted } = scene(10)
    running.push({ id: 'a' })
    due.push('lane')
    rounds.start()
    await advance(SECOND / 2)
    expect(due).toEqual([])
    expect(excepted.map((keys) => [...keys])).toEqual(excepted.map(() => ['a']))
  })

  it('leave reads alone while all reads are paused', async () => {
    const { advance, rounds, due, pause } = scene(10)
    pause(true)
    due.push('read')
    rounds.start()
    await advance(5 * SECOND)
    expect(due).toEqual(['read'])
    pause(false)
    await advance(2 * POLL_MS)
    expect(due).toEqual([])
  })

  it('continue after the store has failed, and end at close', async () => {
    const { advance, rounds, due, fail, errors, heldMs } = scene(10)
    fail(true)
    due.push('lane')
    rounds.start()
    await advance(3 * SECOND)
    expect(errors.length).toBeGreaterThan(0)
    fail(false)
    await advance(2 * POLL_MS)
    expect(due).toEqual([])
    void rounds.close(0)
    due.push('lane')
    await advance(5 * POLL_MS)
    expect(due).toEqual(['lane'])
    expect(heldMs('lane')).toBeLessThan(SECOND)
  })
})

describe('close() while a suspect is being leased', () => {
  it('waits until it was returned, so that the stop of the process does not count as an end', async () => {
    const { advance, rounds, due, claim, begun } = scene(0)
    due.push('lane')
    const claiming = claim()
    rounds.start()
    await advance(0)
    const closing = Promise.resolve(rounds.close(SECOND)).then(begun)
    claiming.open()
    await advance(100)
    expect(await closing).toBe(1)
  })

  it('lets none begin while the loop of its kind still ends its work', async () => {
    const { advance, rounds, due, halting, begun, halted } = scene(0)
    due.push('lane')
    const working = halting()
    rounds.start()
    await advance(0)
    const closing = rounds.close(SECOND)
    working.open()
    await advance(100)
    await closing
    expect([due, begun(), halted()]).toEqual([['lane'], 0, []])
  })

  it('waits no longer than its grace', async () => {
    const { advance, rounds, due, claim } = scene(0)
    due.push('lane')
    claim()
    rounds.start()
    await advance(0)
    const closing = rounds.close(SECOND)
    await advance(SECOND)
    await closing
  })
})

/** Rounds over a store with these due suspects, each of which runs for so long. */
function scene(runMs: number) {
  const time = createVirtualClock({ isBusy: () => false })
  const clock = time.forProcess()
  const due: SuspectKind[] = []
  const holds: SuspectKind[] = []
  const errors: unknown[] = []
  const held = { lane: { since: 0, ms: 0 }, read: { since: 0, ms: 0 } }
  let [running, most, begun] = [0, 0, 0]
  let claiming: ReturnType<typeof gate<void>> | undefined
  let working: ReturnType<typeof gate<void>> | undefined
  const halted = new Set<SuspectKind>()
  const lanes: { id: string }[] = []
  const excepted: (readonly string[])[] = []
  let isPaused = false
  let isFailing = false

  const loop = (kind: SuspectKind) => ({
    async halt() {
      holds.push(kind)
      halted.add(kind)
      held[kind].since = clock.monotonic()
      await working?.opened
    },
    resume() {
      halted.delete(kind)
      held[kind].ms += clock.monotonic() - held[kind].since
    },
    async runAlone() {
      begun++
      most = Math.max(most, ++running)
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, runMs))
      running--
    },
  })
  const take = async (kind: SuspectKind) => {
    await claiming?.opened
    const at = due.indexOf(kind)
    return at < 0 ? undefined : due.splice(at, 1)
  }
  const searches = { isHalted: false, ending: Promise.resolve() }
  const rounds = createSuspectRounds({
    searches: {
      halt() {
        searches.isHalted = true
        return searches.ending
      },
      resume() {
        searches.isHalted = false
      },
    },
    store: {
      async dueSuspect({ kinds, exceptKeys }) {
        excepted.push(exceptKeys)
        if (isFailing) throw new Error('the database is away')
        return due.find((kind) => kinds.includes(kind)) ?? null
      },
      async claimSuspectLane({ exceptKeys }) {
        excepted.push(exceptKeys)
        return (await take('lane')) && ({} as LaneClaim)
      },
      claimSuspectRead: async () => (await take('read')) && ({} as ReadClaim),
    },
    topics: () => ['change'],
    lanes: { ...loop('lane'), items: () => lanes },
    reads: { ...loop('read'), isPaused: () => isPaused },
    leaseMs: LEASE_MS,
    pollMs: POLL_MS,
    clock,
    onError: (error) => void errors.push(error),
  })
  return {
    advance: time.advance,
    rounds,
    due,
    holds,
    searches,
    /** The loops that are halted now. */
    halted: () => [...halted],
    /** The lanes whose handlers run. */
    running: lanes,
    /** The lanes that each call of the store left out. */
    excepted,
    errors,
    heldMs: (kind: SuspectKind) => held[kind].ms,
    atOnce: () => most,
    begun: () => begun,
    /** A loop that is halted works on until the gate opens. */
    halting: () => (working = gate()),
    /** The claims wait until the gate opens. */
    claim: () => (claiming = gate()),
    pause: (is: boolean) => {
      isPaused = is
    },
    fail: (is: boolean) => {
      isFailing = is
    },
  }
}
