import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../../../lib/base/clock.js'
import { MarketplaceError } from '../../../lib/base/errors.js'
import { createRunningItems, type RunningLease, writeWhileLeased } from '../../../lib/work/leases/lease.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'
import { gate } from '../../support/until.js'

describe('a lease', () => {
  it('that ended before its item begins is lost at once', () => {
    for (const heldForMs of [0, -1]) {
      const { lease } = leased({ heldForMs })
      expect([lease.signal.aborted, lease.isHeld()]).toEqual([true, false])
    }
  })

  it('that ends before its renewal is lost then', async () => {
    const { lease, clock, renewals } = leased({ heldForMs: 5 * SECOND })
    await clock.advance(5 * SECOND - 1)
    expect(lease.signal.aborted).toBe(false)
    await clock.advance(1)
    expect([lease.signal.aborted, renewals()]).toEqual([true, 0])
  })

  it('whose item ends during a renewal is neither renewed again nor lost', async () => {
    for (const answer of [true, false]) {
      const renewal = gate<boolean>()
      const { lease, clock, end, renewals } = leased({ renew: () => renewal.opened })
      await clock.advance(20 * SECOND)
      expect(renewals()).toBe(1)
      end()
      renewal.open(answer)
      await clock.advance(300 * SECOND)
      expect([lease.signal.aborted, renewals()]).toEqual([false, 1])
    }
  })

  it('whose item has ended is never renewed', async () => {
    const { lease, clock, end, renewals } = leased()
    end()
    await clock.advance(300 * SECOND)
    expect([lease.signal.aborted, renewals()]).toEqual([false, 0])
  })

  it('ends by the clock, also before its timers have run', () => {
    const { lease, freeze } = leased()
    freeze(60 * SECOND - 1)
    expect(lease.isHeld()).toBe(true)
    freeze(1)
    expect([lease.isHeld(), lease.signal.aborted]).toEqual([false, false])
  })

  it('is held for as long as a renewal says', async () => {
    const { lease, clock } = leased()
    await clock.advance(300 * SECOND)
    expect([lease.isHeld(), lease.signal.aborted]).toEqual([true, false])
  })

  it('is held from the call of a renewal on, however late its answer comes', async () => {
    const renewal = gate<boolean>()
    const { lease, clock, freeze } = leased({ renew: () => renewal.opened })
    await clock.advance(20 * SECOND)
    freeze(30 * SECOND)
    renewal.open(true)
    await clock.rest()
    freeze(30 * SECOND - 1)
    expect(lease.isHeld()).toBe(true)
    freeze(1)
    expect(lease.isHeld()).toBe(false)
  })

  it('that the store refuses to renew is lost once', async () => {
    const { lease, clock, renewals } = leased({ renew: async () => false })
    await clock.advance(50 * SECOND)
    expect([lease.signal.aborted, lease.isHeld(), renewals()]).toEqual([true, false, 1])
  })

  it('of another claim is renewed at its own times, by the same timer', async () => {
    const { clock, begin, timers, renewed } = leased()
    await clock.advance(10 * SECOND)
    begin('b')
    expect(timers()).toBe(1)
    await clock.advance(10 * SECOND)
    expect([renewed, timers()]).toEqual([['a'], 1])
    await clock.advance(10 * SECOND)
    expect([renewed, timers()]).toEqual([['a', 'b'], 1])
  })
})

describe('a write that failed', () => {
  it('is made again while its lease is held, and not once it is lost during the pause', async () => {
    for (const [isLost, expected] of [
      [false, 2],
      [true, 1],
    ] as const) {
      const clock = createVirtualClock({ isBusy: () => false })
      const lost = new AbortController()
      let writes = 0
      const written = writeWhileLeased(
        async () => {
          if (++writes === 1) throw new MarketplaceError('store_unavailable', 'not now')
        },
        lost.signal,
        clock.forProcess(),
      ).then(
        () => 'written',
        () => 'failed',
      )
      await clock.rest()
      if (isLost) lost.abort()
      await clock.advance(SECOND)
      expect([await written, writes]).toEqual([isLost ? 'failed' : 'written', expected])
    }
  })
})

/** The lease of the item `a`, which runs until `end()`. */
function leased({ renew = async () => true, heldForMs = 60 * SECOND } = {}) {
  const clock = createVirtualClock({ isBusy: () => false })
  const process = clock.forProcess()
  const renewed: string[] = []
  const leases: RunningLease[] = []
  const ending = gate()
  let frozenMs = 0
  const timers = new Set<unknown>()
  const running = createRunningItems<string>({
    run(_item, lease) {
      leases.push(lease)
      return ending.opened
    },
    renew(item) {
      renewed.push(item)
      return renew()
    },
    leaseMs: 60 * SECOND,
    renewEveryMs: 20 * SECOND,
    clock: {
      now: process.now,
      monotonic: () => process.monotonic() + frozenMs,
      setTimeout(callback, delayMs) {
        const handle = process.setTimeout(() => {
          timers.delete(handle)
          callback()
        }, delayMs)
        timers.add(handle)
        return handle
      },
      clearTimeout(handle) {
        timers.delete(handle)
        process.clearTimeout(handle)
      },
    },
    onError() {},
    onEnd() {},
  })
  const begin = (item: string) => running.begin([item], process.monotonic() + heldForMs)
  begin('a')
  return {
    clock,
    lease: leases[0] as RunningLease,
    begin,
    end: ending.open,
    renewed,
    renewals: () => renewed.length,
    timers: () => timers.size,
    /** Lets the time pass in which no timer of the process runs. */
    freeze: (ms: number) => {
      frozenMs += ms
    },
  }
}
