import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../../../lib/base/clock.js'
import { createLeaseLoop } from '../../../lib/work/leases/lease-loop.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'

describe('the lease of running work', () => {
  it('aborts the work as soon as a renewal answers that another claimer has the lease', async () => {
    const { clock, abortedAt, start } = loopWith(async () => false)
    await start()
    await clock.advance(20 * SECOND - 1)
    expect(abortedAt()).toBeUndefined()
    await clock.advance(1)
    expect(abortedAt()).toBe(20 * SECOND)
  })

  it('lasts while it is renewed', async () => {
    const { clock, abortedAt, renewals, start } = loopWith(async () => true)
    await start()
    await clock.advance(300 * SECOND)
    expect(abortedAt()).toBeUndefined()
    expect(renewals()).toBe(15)
  })

  it('ends when it cannot be renewed, and not before', async () => {
    const { clock, abortedAt, renewals, start } = loopWith(() => Promise.reject(new Error('no database')))
    await start()
    await clock.advance(90 * SECOND)
    expect(abortedAt()).toBe(60 * SECOND)
    expect(renewals()).toBe(2)
  })

  it('counts from the time before the renewal was sent', async () => {
    const { clock, abortedAt, start } = loopWith(
      (passed) => new Promise((resolve) => passed(30 * SECOND, () => resolve(true))),
    )
    await start()
    await clock.advance(50 * SECOND)
    expect(abortedAt()).toBeUndefined()
    // The lease is renewed at 20 s. The answer comes at 50 s. The next renewal is sent at 70 s and answered after 80
    // s.
    await clock.advance(60 * SECOND)
    expect(abortedAt()).toBe(80 * SECOND)
  })
})

type Passed = (ms: number, then: () => void) => void

/** A loop with one item, which runs until it is aborted. */
function loopWith(renew: (passed: Passed) => Promise<boolean>) {
  const clock = createVirtualClock({ isBusy: () => false })
  const own = clock.forProcess()
  const begunAt = clock.now()
  const items = ['item']
  let abortedAt: number | undefined
  let renewals = 0
  const loop = createLeaseLoop<string>({
    concurrency: 1,
    claim: async () => ({ items: items.splice(0), isAll: true }),
    giveBack: async () => {},
    run: (_item, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          abortedAt = clock.now() - begunAt
          resolve()
        })
      }),
    renew() {
      renewals++
      return renew((ms, then) => void own.setTimeout(then, ms))
    },
    leaseMs: 60 * SECOND,
    renewEveryMs: 20 * SECOND,
    pollMs: SECOND,
    clock: own,
    onError(error) {
      throw error
    },
  })
  return {
    clock,
    abortedAt: () => abortedAt,
    renewals: () => renewals,
    async start() {
      loop.start()
      await clock.rest()
      expect(loop.items().length).toBe(1)
    },
  }
}
