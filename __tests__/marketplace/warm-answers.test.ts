import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../../lib/base/clock.js'
import type { Hint } from '../../lib/store/port/store.js'
import { openMarketplace } from '../support/scene.js'
import { createAnswers, inState } from '../support/scenes/answers.js'

const TTL_MS = 5 * SECOND
const MAX_STALE_MS = 60 * SECOND

describe('isEntitled', () => {
  it('looks into the store once, and then answers from memory', async () => {
    const { isEntitled, looks } = remembered()
    for (const _time of ['cold', 'warm']) expect(await isEntitled('b')).toBe(true)
    expect(looks()).toBe(1)
  })

  it('answers no from memory for a business that is not entitled, and for one that was never named', async () => {
    const { isEntitled, change, looks } = remembered()
    change(inState('canceled'))
    for (const _time of ['cold', 'warm'])
      expect([await isEntitled('b'), await isEntitled('unknown')]).toEqual([false, false])
    expect(looks()).toBe(2)
  })

  it('looks again as soon as the answer has reached its maximum age', async () => {
    const { isEntitled, isInMemory, clock } = remembered()
    await isEntitled('b')
    await clock.advance(TTL_MS - 1)
    expect(await isInMemory('b')).toBe(true)
    await clock.advance(1)
    expect(await isInMemory('b')).toBe(false)
  })

  it('looks again as soon as the read behind a yes is too old', async () => {
    const { isEntitled, isInMemory, clock } = remembered(MAX_STALE_MS - SECOND)
    await isEntitled('b')
    await clock.advance(SECOND - 1)
    expect(await isInMemory('b')).toBe(true)
    await clock.advance(1)
    expect(await isInMemory('b')).toBe(false)
  })

  const HINTS: [string, Hint][] = [
    ['a read is requested', { kind: 'requested', businessUid: 'b' }],
    ['a read is requested of any business', { kind: 'requested', businessUid: null }],
    ['a read was finished', { kind: 'decided', businessUid: 'b', superseded: false }],
    ['a read has changed something', { kind: 'decided', businessUid: 'b', superseded: true }],
    ['anything may have changed', { kind: 'decided', businessUid: null, superseded: true }],
  ]

  it.each(HINTS)('looks again once %s', async (_what, hint) => {
    const { isEntitled, isInMemory, notify } = remembered()
    await isEntitled('b')
    notify({ kind: 'journal' })
    notify({ kind: 'decided', businessUid: 'another', superseded: true })
    expect(await isInMemory('b')).toBe(true)
    notify(hint)
    expect(await isInMemory('b')).toBe(false)
    expect(await isInMemory('b')).toBe(true)
  })

  it('ignores the result of a load whose second query too was outdated before it ended', async () => {
    const { isEntitled, isInMemory, notify, clock, hold } = remembered()
    const looking = hold()
    const asked = isEntitled('b')
    await clock.rest()
    notify({ kind: 'requested', businessUid: 'b' })
    const again = hold()
    looking.open()
    await clock.rest()
    notify({ kind: 'requested', businessUid: 'b' })
    again.open()
    expect(await asked).toBe(true)
    expect(await isInMemory('b')).toBe(false)
  })
})

describe('isEntitled, if the store fails while it is asked,', () => {
  const superseded = { kind: 'decided', businessUid: 'b', superseded: true } as const
  const read = { kind: 'decided', businessUid: 'b', superseded: false } as const
  const requested = { kind: 'requested', businessUid: 'b' } as const

  it.each<[string, Hint[], boolean]>([
    ['gives the last answer', [], true],
    ['gives the last answer after a hint that changes nothing', [read, requested], true],
    ['does not give an answer that was superseded meanwhile', [superseded], false],
    [
      'does not give an answer that was superseded meanwhile, whatever hint follows',
      [superseded, read],
      false,
    ],
    [
      'does not give an answer that was superseded meanwhile, with that of all',
      [{ ...superseded, businessUid: null }],
      false,
    ],
  ])('%s', async (_what, hints, answer) => {
    for (const firstQuery of ['fails', 'is answered']) {
      const { isEntitled, notify, clock, hold, fail } = remembered()
      expect(await isEntitled('b')).toBe(true)
      await clock.advance(TTL_MS)
      const looking = hold()
      const asked = isEntitled('b')
      await clock.rest()
      fail()
      for (const hint of hints) notify(hint)
      if (firstQuery === 'fails') looking.fail(new Error('down'))
      else looking.open()
      expect(await asked).toBe(answer)
      expect(await isEntitled('b')).toBe(answer)
    }
  })
})

describe('an answer from memory', () => {
  it('does not keep the process alive with a timer, and is always the same promise', async () => {
    const marketplace = openMarketplace(
      { baseUrl: 'https://p.test', authUrl: 'https://a.test' },
      { worker: false },
    )
    await marketplace.start()
    const timers = () => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length
    const before = timers()
    const cold = marketplace.isEntitled('b1')
    expect(timers()).toBe(before + 1)
    await cold
    expect(timers()).toBe(before)
    const warm = marketplace.isEntitled('b1')
    expect(timers()).toBe(before)
    expect(marketplace.isEntitled('b1')).toBe(warm)
  })
})

/** The answers to questions about a business that has bought. */
function remembered(readMsAgo = 0) {
  const more = (now: number) => ({ readAt: now - readMsAgo })
  const answers = createAnswers({ more, rules: { maxStaleMs: MAX_STALE_MS } })
  return {
    ...answers,
    /** Asks, and says whether the store was left alone. */
    async isInMemory(businessUid: string) {
      const before = answers.looks()
      await answers.isEntitled(businessUid)
      return answers.looks() === before
    },
  }
}
