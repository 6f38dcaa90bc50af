import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../../../lib/base/clock.js'
import { createLease } from '../../../lib/work/leases/lease.js'
import { createVirtualClock, type VirtualClock } from '../../support/machine/virtual-clock.js'
import { gate } from '../../support/until.js'

describe('a lease', () => {
  it('that ended before its renewal would begin is lost at once', async () => {
    for (const lateMs of [0, 1]) {
      const { lease, clock, lost } = leased({ heldForMs: 0 })
      await clock.advance(lateMs)
      lease.startRenewal(SECOND)
      expect(lost()).toBe(1)
    }
  })

  it('whose item ends during a renewal is neither renewed again nor lost', async () => {
    for (const answer of [true, false]) {
      const renewal = gate<boolean>()
      const { lease, clock, lost, renewals } = leased({ renew: () => renewal.opened })
      lease.startRenewal(20 * SECOND)
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
    lease.startRenewal(20 * SECOND)
    await clock.advance(300 * SECOND)
    expect([lost(), renewals()]).toEqual([0, 0])
  })

  it('ends by the clock, also before its timers have run', async () => {
    const { lease, clock } = leased()
    await clock.advance(60 * SECOND - 1)
    expect(lease.isHeld()).toBe(true)
    await clock.advance(1)
    expect(lease.isHeld()).toBe(false)
  })

  it('is held for as long as a renewal says', async () => {
    const { lease, clock, lost } = leased()
    lease.startRenewal(20 * SECOND)
    await clock.advance(300 * SECOND)
    expect([lease.isHeld(), lost()]).toEqual([true, 0])
  })

  it('that the store refuses to renew is lost once', async () => {
    const { lease, clock, lost, lostAt, renewals } = leased({ renew: async () => false })
    lease.startRenewal(20 * SECOND)
    await clock.advance(50 * SECOND)
    expect([lost(), lostAt(), renewals()]).toEqual([1, 20 * SECOND, 1])
  })

  it('ends when it cannot be renewed, and not before', async () => {
    const { lease, clock, lost, renewals } = leased({ renew: () => Promise.reject(new Error('down')) })
    lease.startRenewal(20 * SECOND)
    await clock.advance(60 * SECOND - 1)
    expect([lost(), renewals()]).toEqual([0, 2])
    await clock.advance(1)
    expect(lost()).toBe(1)
  })

  it('counts from the time before the renewal was sent', async () => {
    const { lease, clock, lostAt } = leased({ renew: ({ sleep }) => sleep(30 * SECOND).then(() => true) })
    lease.startRenewal(20 * SECOND)
    await clock.advance(50 * SECOND)
    expect(lostAt()).toBeUndefined()
    // It is renewed at 20 s, and the answer comes at 50 s. The next renewal is sent at 70 s and answered after 80 s.
    await clock.advance(60 * SECOND)
    expect(lostAt()).toBe(80 * SECOND)
  })
})

function leased({
  renew = async () => true,
  heldForMs = 60 * SECOND,
}: {
  renew?(clock: VirtualClock): Promise<boolean>
  heldForMs?: number
} = {}) {
  const clock = createVirtualClock({ isBusy: () => false })
  let losses = 0
  let lostAt: number | undefined
  let renewals = 0
  const lease = createLease({
    renew() {
      renewals++
      return renew(clock)
    },
    onLost() {
      losses++
      lostAt = clock.passed()
    },
    heldUntil: clock.forProcess().monotonic() + heldForMs,
    leaseMs: 60 * SECOND,
    renewEveryMs: 20 * SECOND,
    clock: clock.forProcess(),
  })
  return { lease, clock, lost: () => losses, lostAt: () => lostAt, renewals: () => renewals }
}
