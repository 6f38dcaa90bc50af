import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../../../lib/base/clock.js'
import { EVAL_TYPESCRIPT } from '../../support/processes/processes.js'
import { createAnswers, inState } from '../../support/scenes/answers.js'

describe('J1 a million unknown businesses', () => {
  it('cannot evict the known ones, and at most ten thousand of them are cached', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      '--expose-gc',
      ...EVAL_TYPESCRIPT,
      `(${askAMillion})(${JSON.stringify(join(__dirname, '../../../lib/entitlement/entitlements.ts'))})`,
    ])
    const { grownBytes, ...counted } = JSON.parse(stdout)
    expect(counted).toEqual({ loads: 1_001_000, loadsOfKnown: 0, kept: 10_000 })
    // This is a thirtieth of a million decisions of a kilobyte each.
    expect(grownBytes).toBeLessThan(30_000_000)
  }, 180_000)

  it('cannot increase memory, and neither can any number of known ones', async () => {
    const { isEntitled, looks } = createAnswers()
    for (let at = 0; at < 12_000; at++) await isEntitled(`known-${at}`)
    const before = looks()
    let kept = 0
    for (; kept <= 12_000; kept++) {
      await isEntitled(`known-${11_999 - kept}`)
      if (looks() > before) break
    }
    expect(kept).toBe(10_000)
  })
})

describe('J4 a thousand callers', () => {
  it('cause one load for an answer that was never loaded, and one for an answer that has expired', async () => {
    const { isEntitled, looks, clock } = createAnswers()
    const all = () => Promise.all(Array.from({ length: 1_000 }, () => isEntitled('known-1')))
    expect(new Set(await all())).toEqual(new Set([true]))
    expect(looks()).toBe(1)
    await clock.advance(4 * SECOND)
    await all()
    expect(looks()).toBe(1)
    await clock.advance(2 * SECOND)
    expect(new Set(await all())).toEqual(new Set([true]))
    expect(looks()).toBe(2)
  })

  it('cause at most two loads when a change arrives while the first is under way', async () => {
    const { isEntitled, looks, hold, notify, change } = createAnswers()
    const first = hold()
    const early = Array.from({ length: 500 }, () => isEntitled('known-1'))
    change(inState('suspended'))
    notify({ kind: 'decided', businessUid: 'known-1', superseded: true })
    const late = Array.from({ length: 500 }, () => isEntitled('known-1'))
    first.open()
    expect(new Set(await Promise.all([...early, ...late]))).toEqual(new Set([false]))
    expect(looks()).toBe(2)
  })
})

describe('J5 a load that began before a change', () => {
  it.each([
    ['of the business', 'known-1'],
    ['of an unknown business', null],
  ] as const)('%s does not overwrite it', async (_whose, businessUid) => {
    const { isEntitled, looks, hold, notify, change } = createAnswers()
    const first = hold()
    const asked = isEntitled('known-1')
    // The load has read purchased, but its result has not arrived yet.
    change(inState('suspended'))
    notify({ kind: 'decided', businessUid, superseded: true })
    first.open()
    expect(await asked).toBe(false)
    expect(await isEntitled('known-1')).toBe(false)
    expect(looks()).toBe(2)
  })

  it('does not overwrite it if the change comes between two loads and no caller waits', async () => {
    const { isEntitled, hold, notify, change, clock } = createAnswers()
    expect(await isEntitled('known-1')).toBe(true)
    await clock.advance(6 * SECOND)
    const second = hold()
    const asked = isEntitled('known-1')
    change(inState('canceled'))
    notify({ kind: 'decided', businessUid: 'known-1', superseded: true })
    second.open()
    await asked
    change(inState('purchased'))
    // No change announced this, so the earlier answer stays valid for its time.
    expect(await isEntitled('known-1')).toBe(false)
    await clock.advance(6 * SECOND)
    expect(await isEntitled('known-1')).toBe(true)
  })

  it('of another business is not repeated', async () => {
    const { isEntitled, looks, hold, notify } = createAnswers()
    const first = hold()
    const asked = isEntitled('known-1')
    notify({ kind: 'decided', businessUid: 'known-2', superseded: true })
    first.open()
    expect(await asked).toBe(true)
    expect(looks()).toBe(1)
  })
})

describe('J20 a decision that was superseded', () => {
  it('is not returned again when the store is down, unlike one that was only reloaded', async () => {
    const { isEntitled, notify, fail, clock } = createAnswers()
    for (const business of ['known-1', 'known-2']) expect(await isEntitled(business)).toBe(true)
    notify({ kind: 'decided', businessUid: 'known-1', superseded: true })
    notify({ kind: 'decided', businessUid: 'known-2', superseded: false })
    notify({ kind: 'requested', businessUid: 'known-2' })
    fail()
    await clock.advance(6 * SECOND)
    expect([await isEntitled('known-1'), await isEntitled('known-2')]).toEqual([false, true])
  })

  it('is not cached by a load that ended after it', async () => {
    const { isEntitled, hold, notify, fail, change, clock } = createAnswers()
    const load = hold()
    const asked = isEntitled('known-1')
    change(inState('canceled'))
    await clock.advance(2 * SECOND)
    notify({ kind: 'decided', businessUid: 'known-1', superseded: true })
    load.open()
    await asked
    fail()
    expect(await isEntitled('known-1')).toBe(false)
  })
})

describe('J2 a business whose last subscription belongs to another business', () => {
  it('gets no access from its earlier cached answer when the store is down', async () => {
    const { isEntitled, clock, have, fail } = createAnswers()
    expect(await isEntitled('known-1')).toBe(true)
    await clock.advance(6 * SECOND)
    have([])
    expect(await isEntitled('known-1')).toBe(false)
    await clock.advance(6 * SECOND)
    fail()
    expect(await isEntitled('known-1')).toBe(false)
  })
})

/**
 * Runs in a process of its own: there a million questions take a third of the time that they take in jest's sandbox,
 * and memory can be measured. The function uses nothing outside of itself.
 */
function askAMillion(path: string) {
  const { createEntitlements } = require(path)
  const row = {
    subscriptionUid: 's',
    record: { purchasable_uid: 'p' },
    state: 'purchased',
    gone: null,
    readAt: 1,
    pending: false,
  }
  const [bought, nothing] = [Promise.resolve([row]), Promise.resolve([])]
  let loads = 0
  const { isEntitled } = createEntitlements({
    store: {
      subscriptionsOf: (business: string) => (++loads && business.startsWith('known-') ? bought : nothing),
      subscribe: () => () => {},
    },
    rules: { purchasableUids: [], entitledWhen: () => ({ entitled: true, until: null }), maxStaleMs: 1_000 },
    waitMs: 0,
    // The clock stands still, so no answer expires.
    clock: { now: () => 1, monotonic: () => 1, setTimeout: () => 0, clearTimeout() {} },
  })
  const weigh = () => {
    global.gc?.()
    return process.memoryUsage().heapUsed
  }
  async function run() {
    const before = weigh()
    for (let at = 0; at < 1_000; at++) await isEntitled(`known-${at}`)
    for (let at = 0; at < 1_000_000; at++) await isEntitled(`unknown-${at}`)
    const grownBytes = weigh() - before
    const loadsInAll = loads
    loads = 0
    for (let at = 0; at < 1_000; at++) if (!(await isEntitled(`known-${at}`))) throw new Error('not known')
    const loadsOfKnown = loads
    // The latest comes first: a cached answer needs no load, and a question does not evict it.
    let kept = 0
    for (loads = 0; ; kept++) {
      await isEntitled(`unknown-${999_999 - kept}`)
      if (loads > 0) break
    }
    process.stdout.write(JSON.stringify({ loads: loadsInAll, loadsOfKnown, kept, grownBytes }))
  }
  run()
}
