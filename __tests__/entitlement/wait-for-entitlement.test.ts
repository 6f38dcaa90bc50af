import { describe, expect, it } from '@jest/globals'
import type { Decision } from '../../lib/entitlement/decide.js'
import { createEntitlementWaits } from '../../lib/entitlement/wait-for-entitlement.js'
import { createVirtualClock } from '../support/machine/virtual-clock.js'
import { createAnswers, inState } from '../support/scenes/answers.js'
import { gate } from '../support/until.js'

const SUSPENDED = inState('suspended')
const PURCHASED = inState('purchased')
const decided = (businessUid: string | null) => ({ kind: 'decided', businessUid, superseded: false }) as const

/** Answers about businesses that have not bought. `buy` writes the purchase, and sends its hint. */
function answers(waitMs = 0) {
  const lab = createAnswers({ more: SUSPENDED, waitMs })
  return {
    ...lab,
    buy(businessUid: string | null = 'b') {
      lab.change(PURCHASED)
      lab.notify(decided(businessUid))
    },
  }
}

describe('waiting for a purchase', () => {
  it('ends at once if the business may use the app, and else with the change, without a look between', async () => {
    const { waitForEntitlement, buy, clock, looks } = answers()
    const waiting = waitForEntitlement('b')
    await clock.advance(20_000)
    expect(looks()).toBe(1)
    buy()
    expect(await waiting).toMatchObject({ entitled: true, reason: 'purchased' })
    expect(looks()).toBe(2)
    expect(await waitForEntitlement('b')).toMatchObject({ entitled: true })
    expect(looks()).toBe(2)
  })

  it('ends with the last decision when time is up, after 30 s by default', async () => {
    const { waitForEntitlement, clock } = answers()
    for (const [options, ms] of [
      [undefined, 30_000],
      [{ timeoutMs: 5_000 }, 5_000],
      [{ timeoutMs: 0 }, 0],
    ] as const) {
      let ended = false
      const waiting = waitForEntitlement('b', options)
      void waiting.then(() => {
        ended = true
      })
      if (ms > 0) {
        await clock.advance(ms - 1)
        expect(ended).toBe(false)
        await clock.advance(1)
      }
      expect(await waiting).toMatchObject({ entitled: false, known: true, reason: 'not_purchased' })
    }
  })

  it('ends for thousands by a change of their business alone, and asks the store once for it', async () => {
    const { waitForEntitlement, buy, clock, looks } = answers()
    const others = Array.from({ length: 500 }, (_, i) => waitForEntitlement(`other${i}`))
    const same = Array.from({ length: 2_000 }, () => waitForEntitlement('b'))
    await clock.rest()
    const before = looks()
    expect(before).toBe(501)
    buy()
    expect((await Promise.all(same)).every(({ entitled }) => entitled)).toBe(true)
    expect(looks()).toBe(before + 1)
    buy(null)
    expect((await Promise.all(others)).every(({ entitled }) => entitled)).toBe(true)
    expect(looks()).toBe(before + 1 + 500)
  })

  it('misses no change that comes during a look', async () => {
    const look = gate<Decision>()
    const [denied, allowed] = [false, true].map((entitled) => ({ entitled }) as Decision)
    const answers = [look.opened, Promise.resolve(allowed as Decision)]
    const waits = createEntitlementWaits({
      explain: () => answers.shift() as Promise<Decision>,
      explainSoFar: () => Promise.reject(new Error('there was time')),
      searchAgain: async () => {},
      rules: { purchasableUids: [] },
      clock: createVirtualClock().forProcess(),
    })
    const waiting = waits.wait('b')
    waits.changed('b')
    look.open(denied as Decision)
    expect(await waiting).toBe(allowed)
  })

  it('finds a change whose hint was lost within a minute', async () => {
    const { waitForEntitlement, change, clock } = answers()
    const waiting = waitForEntitlement('b', { timeoutMs: 3_600_000 })
    await clock.rest()
    change(PURCHASED)
    expect(await clock.until(waiting)).toMatchObject({ entitled: true })
    expect(clock.passed()).toBeLessThan(60_000)
  })

  it('concerns the items that are asked for', async () => {
    const { waitForEntitlement, buy } = answers()
    const asked = { purchasableUid: 'another', timeoutMs: 0 }
    buy()
    expect(await waitForEntitlement('b', asked)).toMatchObject({ entitled: false, reason: 'other_item' })
    expect(await waitForEntitlement('b', { ...asked, purchasableUid: 'p' })).toMatchObject({ entitled: true })
  })

  it('ends at once if no change can make it a yes: no item is asked for, or one of another app', async () => {
    const { waitForEntitlement } = createAnswers({ more: SUSPENDED, rules: { purchasableUids: ['p'] } })
    const wrong = [
      { purchasableUid: 'typo' },
      { purchasableUid: [] },
      { purchasableUid: undefined },
      null,
      'p',
    ]
    for (const options of wrong)
      expect(await waitForEntitlement('b', options as never)).toMatchObject({ reason: 'item_unknown' })
  })

  it('rejects with the reason of its signal', async () => {
    const { waitForEntitlement, buy, clock } = answers()
    const left = new AbortController()
    const waiting = waitForEntitlement('b', { signal: left.signal }).catch((error) => error)
    await clock.rest()
    left.abort(new Error('the visitor left'))
    expect(await waiting).toEqual(new Error('the visitor left'))
    await expect(waitForEntitlement('b', { signal: left.signal })).rejects.toThrow('the visitor left')
    buy()
    await expect(waitForEntitlement('b', { signal: left.signal })).rejects.toThrow('the visitor left')
  })

  it('ends in time, and hears the signal, also while a read is requested or the store does not respond', async () => {
    const requested = (now: number) => ({ ...SUSPENDED, pending: true, owedSince: now, requestedAt: now })
    const { waitForEntitlement, hold, clock } = createAnswers({ more: requested, waitMs: 60_000 })
    const before = clock.now()
    const waiting = waitForEntitlement('b', { timeoutMs: 1_000 })
    expect(await clock.until(waiting)).toMatchObject({ entitled: false, reason: 'not_purchased' })
    expect(clock.now() - before).toBe(1_000)
    const left = new AbortController()
    const lasting = waitForEntitlement('b', { signal: left.signal }).catch((error) => error)
    await clock.rest()
    left.abort(new Error('the visitor left'))
    await clock.rest()
    expect(await lasting).toEqual(new Error('the visitor left'))

    hold()
    const silent = waitForEntitlement('c', { timeoutMs: 1_000 })
    const asked = clock.now()
    expect(await clock.until(silent)).toMatchObject({ known: false, reason: 'store_unavailable' })
    expect(clock.now() - asked).toBe(2_000)
  })

  it.each([
    ['never ends', 0],
    ['fails after a while', 700],
  ])(
    'ends in time, and hears the signal, also while the request of its search %s',
    async (_what, failsAfterMs) => {
      const virtual = createVirtualClock()
      const clock = virtual.forProcess()
      const denied = { entitled: false, subscriptions: [] } as unknown as Decision
      const waits = createEntitlementWaits({
        explain: async () => denied,
        explainSoFar: async () => denied,
        searchAgain: () =>
          new Promise((_resolve, reject) => {
            if (failsAfterMs > 0) clock.setTimeout(() => reject(new Error('the store is busy')), failsAfterMs)
          }),
        rules: { purchasableUids: [] },
        clock,
      })
      const before = clock.monotonic()
      expect(await virtual.until(waits.wait('b', { timeoutMs: 1_000 }))).toBe(denied)
      expect(clock.monotonic() - before).toBe(1_000)

      const left = new AbortController()
      let heard: unknown
      void waits.wait('b', { signal: left.signal }).catch((error) => {
        heard = error
      })
      await virtual.rest()
      left.abort(new Error('the visitor left'))
      await virtual.rest()
      expect(heard).toEqual(new Error('the visitor left'))
      await virtual.advance(failsAfterMs)
    },
  )

  it('ends with the last decision when the marketplace closes', async () => {
    const { waitForEntitlement, close, clock } = answers()
    const waiting = waitForEntitlement('b')
    await clock.rest()
    close()
    expect(await waiting).toMatchObject({ entitled: false, reason: 'not_purchased' })
  })

  it.each([
    [{ timeoutMs: -1 }, 'timeoutMs'],
    [{ timeoutMs: 3_600_001 }, 'timeoutMs'],
    [{ timeoutMs: '5' as never }, 'timeoutMs'],
    [{ timeoutMs: Number.NaN }, 'timeoutMs'],
    [{ signal: {} as never }, 'signal'],
  ])('refuses %p', async (options, name) => {
    const error = { code: 'argument_invalid', message: expect.stringContaining(`${name} must be`) }
    await expect(answers().waitForEntitlement('b', options)).rejects.toMatchObject(error)
  })

  it('refuses an option that it does not have', async () => {
    const error = { code: 'argument_invalid', message: expect.stringContaining('timeoutMS') }
    await expect(answers().waitForEntitlement('b', { timeoutMS: 5 } as never)).rejects.toMatchObject(error)
  })

  it('ends at once for a value that is no identifier', async () => {
    const { waitForEntitlement, looks } = answers()
    expect(await waitForEntitlement('')).toMatchObject({ reason: 'invalid_business_uid' })
    expect(looks()).toBe(0)
  })
})
