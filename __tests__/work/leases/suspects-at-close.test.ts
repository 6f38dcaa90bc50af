import { describe, expect, it } from '@jest/globals'
import { MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { LaneClaim } from '../../../lib/store/port/store.js'
import { createSuspectRounds } from '../../../lib/work/leases/suspects.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'
import { gate } from '../../support/until.js'

describe('close() while a suspect is being leased', () => {
  it('waits until it was returned, so that the stop of the process does not count as an end', async () => {
    const { rounds, claimed, begun } = scene()
    rounds.start()
    await new Promise((resolve) => setImmediate(resolve))
    const closing = Promise.resolve(rounds.close(SECOND)).then(() => begun.length)
    claimed.open({ id: 'lane', leaseToken: 'token', lapses: 0, entries: [] })
    expect(await closing).toBe(1)
  })

  it('waits no longer than its grace', async () => {
    const { rounds, time } = scene()
    rounds.start()
    await new Promise((resolve) => setImmediate(resolve))
    const closing = rounds.close(SECOND)
    await time.advance(SECOND)
    await closing
  })
})

function scene() {
  const time = createVirtualClock({ isBusy: () => false })
  const claimed = gate<LaneClaim>()
  const begun: LaneClaim[] = []
  const loop = { async halt() {}, resume() {} }
  const rounds = createSuspectRounds({
    store: {
      dueSuspect: async () => 'lane',
      claimSuspectLane: () => claimed.opened,
      claimSuspectRead: async () => undefined,
    },
    topics: () => [],
    lanes: { ...loop, busyKeys: () => [], runAlone: async (lane) => void begun.push(lane) },
    reads: { ...loop, isPaused: () => false, async runAlone() {} },
    leaseMs: MINUTE,
    pollMs: SECOND,
    clock: time.forProcess(),
    onError(error) {
      throw error
    },
  })
  return { rounds, time, claimed, begun }
}
