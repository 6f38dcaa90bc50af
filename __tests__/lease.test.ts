import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../lib/clock.js'
import { createLease } from '../lib/work/lease.js'
import { gate } from './support/until.js'
import { createVirtualClock } from './support/virtual-clock.js'

describe('a lease', () => {
  it('that ended before its renewal would begin is lost at once', () => {
    for (const lateMs of [0, 1]) {
      const { lease, clock, lost } = leased()
      lease.startRenewal(clock.now() - lateMs, SECOND)
      expect(lost()).toBe(1)
    }
  })

  it('whose item ends during a renewal is neither renewed again nor lost', async () => {
    for (const answer of [true, false]) {
      const renewal = gate<boolean>()
      const { lease, clock, lost, renewals } = leased(() => renewal.opened)
      lease.startRenewal(clock.now() + 60 * SECOND, 20 * SECOND)
      await clock.advance(20 * SECOND)
      expect(renewals()).toBe(1)
      lease.end()
      renewal.open(answer)
      await clock.advance(300 * SECOND)
      expect([lost(), renewals()]).toEqual([0, 1])
    }
  })

  it('whose item has ended is never renewed', async () => {
    const { lease, clock, lost, renewals } = leased()
    lease.end()
    lease.startRenewal(clock.now() + 60 * SECOND, 20 * SECOND)
    await clock.advance(300 * SECOND)
    expect([lost(), renewals()]).toEqual([0, 0])
  })

  it('that the store refuses to renew is lost once', async () => {
    const { lease, clock, lost, renewals } = leased(async () => false)
    lease.startRenewal(clock.now() + 60 * SECOND, 20 * SECOND)
    await clock.advance(50 * SECOND)
    expect([lost(), renewals()]).toEqual([1, 1])
  })
})

function leased(renew = async () => true) {
  const clock = createVirtualClock({ isBusy: () => false })
  let losses = 0
  let renewals = 0
  const lease = createLease({
    renew() {
      renewals++
      return renew()
    },
    onLost: () => void losses++,
    leaseMs: 60 * SECOND,
    renewEveryMs: 20 * SECOND,
    clock: clock.forProcess(),
  })
  return { lease, clock, lost: () => losses, renewals: () => renewals }
}
