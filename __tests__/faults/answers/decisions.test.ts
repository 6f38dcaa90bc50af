import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from '@jest/globals'
import { HOUR, SECOND, systemClock } from '../../../lib/base/clock.js'
import { createEntitlements } from '../../../lib/entitlement/entitlements.js'
import type { Hint, Subscription } from '../../../lib/store/port/store.js'
import { EVAL_TYPESCRIPT } from '../../support/processes/processes.js'
import { gate } from '../../support/until.js'

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
    const { ask, loads, startCounting } = create()
    for (let at = 0; at < 12_000; at++) await ask(`known-${at}`)
    startCounting()
    let kept = 0
    for (; kept <= 12_000; kept++) {
      await ask(`known-${11_999 - kept}`)
      if (loads() > 0) break
    }
    expect(kept).toBe(10_000)
  })
})

describe('J4 a thousand callers', () => {
  it('cause one load for an answer that was never loaded, and one for an answer that has expired', async () => {
    const { ask, loads, pass } = create()
    const all = () => Promise.all(Array.from({ length: 1_000 }, () => ask('known-1')))
    expect(new Set(await all())).toEqual(new Set([true]))
    expect(loads()).toBe(1)
    pass(4 * SECOND)
    await all()
    expect(loads()).toBe(1)
    pass(2 * SECOND)
    expect(new Set(await all())).toEqual(new Set([true]))
    expect(loads()).toBe(2)
  })

  it('cause at most two loads when a change arrives while the first is under way', async () => {
    const { ask, loads, hold, notify, set } = create()
    const first = hold()
    const early = Array.from({ length: 500 }, () => ask('known-1'))
    set('suspended')
    notify({ kind: 'decided', businessUid: 'known-1', superseded: true })
    const late = Array.from({ length: 500 }, () => ask('known-1'))
    first.open()
    expect(new Set(await Promise.all([...early, ...late]))).toEqual(new Set([false]))
    expect(loads()).toBe(2)
  })
})

describe('J5 a load that began before a change', () => {
  it.each([
    ['of the business', 'known-1'],
    ['of an unknown business', null],
  ] as const)('%s does not overwrite it', async (_whose, businessUid) => {
    const { ask, loads, hold, notify, set } = create()
    const first = hold()
    const asked = ask('known-1')
    // The load has read purchased, but its result has not arrived yet.
    set('suspended')
    notify({ kind: 'decided', businessUid, superseded: true })
    first.open()
    expect(await asked).toBe(false)
    expect(await ask('known-1')).toBe(false)
    expect(loads()).toBe(2)
  })

  it('does not overwrite it if the change comes between two loads and no caller waits', async () => {
    const { ask, hold, notify, set, pass } = create()
    expect(await ask('known-1')).toBe(true)
    pass(6 * SECOND)
    const second = hold()
    const asked = ask('known-1')
    set('canceled')
    notify({ kind: 'decided', businessUid: 'known-1', superseded: true })
    second.open()
    await asked
    set('purchased')
    // No change announced this, so the earlier answer stays valid for its time.
    expect(await ask('known-1')).toBe(false)
    pass(6 * SECOND)
    expect(await ask('known-1')).toBe(true)
  })

  it('of another business is not repeated', async () => {
    const { ask, loads, hold, notify } = create()
    const first = hold()
    const asked = ask('known-1')
    notify({ kind: 'decided', businessUid: 'known-2', superseded: true })
    first.open()
    expect(await asked).toBe(true)
    expect(loads()).toBe(1)
  })
})

describe('J20 a decision that was superseded', () => {
  it('is not returned again when the store is down, unlike one that was only reloaded', async () => {
    const { ask, notify, fail, pass } = create()
    for (const business of ['known-1', 'known-2']) expect(await ask(business)).toBe(true)
    notify({ kind: 'decided', businessUid: 'known-1', superseded: true })
    notify({ kind: 'decided', businessUid: 'known-2', superseded: false })
    notify({ kind: 'requested', businessUid: 'known-2' })
    fail()
    pass(6 * SECOND)
    expect([await ask('known-1'), await ask('known-2')]).toEqual([false, true])
  })

  it('is not cached by a load that ended after it', async () => {
    const { ask, hold, notify, fail, set, pass } = create()
    const load = hold()
    const asked = ask('known-1')
    set('canceled')
    pass(2 * SECOND)
    notify({ kind: 'decided', businessUid: 'known-1', superseded: true })
    load.open()
    await asked
    fail()
    expect(await ask('known-1')).toBe(false)
  })
})

describe('J2 a business whose last subscription belongs to another business', () => {
  it('gets no access from its earlier cached answer when the store is down', async () => {
    const { ask, pass, lose, fail } = create()
    expect(await ask('known-1')).toBe(true)
    pass(6 * SECOND)
    lose()
    expect(await ask('known-1')).toBe(false)
    pass(6 * SECOND)
    fail()
    expect(await ask('known-1')).toBe(false)
  })
})

/**
 * Runs in a process of its own: there a million questions take a third of the time that they take in jest's sandbox,
 * and memory can be measured. The function uses nothing outside of itself.
 */
function askAMillion(path: string) {
  const { createEntitlements } = require(path)
  const row = { record: { purchasable_uid: 'p' }, state: 'purchased', gone: null, readAt: 1, pending: false }
  const [bought, nothing] = [Promise.resolve([row]), Promise.resolve([])]
  let loads = 0
  const { isEntitled } = createEntitlements({
    store: {
      subscriptionsOf: (business: string) => (++loads && business.startsWith('known-') ? bought : nothing),
      subscribe: () => () => {},
    },
    rules: { purchasableUids: [], entitledWhen: () => true, maxStaleMs: 1_000 },
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

/** Answers over a store in which every `known-…` business has bought, and no other is known. The clock stands still. */
function create() {
  let now = Date.UTC(2030, 0, 1)
  let loads = 0
  let state = 'purchased'
  let isLost = false
  let isDown = false
  let held: ReturnType<typeof gate<void>> | undefined
  let notify: (hint: Hint) => void = () => {}
  const entitlements = createEntitlements({
    store: {
      readFirst: async () => {},
      subscriptionsOf(businessUid) {
        loads++
        if (isDown) return Promise.reject(new Error('down'))
        if (isLost || !businessUid.startsWith('known-')) return NOTHING
        const seen = [subscription(businessUid, state, now)]
        const waitsFor = held
        held = undefined
        return waitsFor ? waitsFor.opened.then(() => seen) : Promise.resolve(seen)
      },
      subscribe(listener) {
        notify = listener
        return () => {}
      },
    },
    rules: {
      purchasableUids: [],
      entitledWhen: ({ purchase_state }) => purchase_state === 'purchased',
      maxStaleMs: 72 * HOUR,
    },
    waitMs: 0,
    clock: { ...systemClock, now: () => now, monotonic: () => now },
  })
  return {
    ask: entitlements.isEntitled,
    /** The number of queries of the store. */
    loads: () => loads,
    startCounting() {
      loads = 0
    },
    /** The next load has read its result, which arrives when the gate opens. */
    hold() {
      held = gate<void>()
      return held
    },
    notify: (hint: Hint) => notify(hint),
    set(next: string) {
      state = next
    },
    pass(ms: number) {
      now += ms
    },
    /** From now on the store has no subscriptions. */
    lose() {
      isLost = true
    },
    fail() {
      isDown = true
    },
  }
}

// One shared promise, because a million questions get it.
const NOTHING = Promise.resolve<Subscription[]>([])

function subscription(businessUid: string, state: string, now: number): Subscription {
  const subscriptionUid = `s-${businessUid}`
  return {
    subscriptionUid,
    purchasableUid: 'p',
    businessUid,
    record: { uid: subscriptionUid, business_uid: businessUid, purchasable_uid: 'p', purchase_state: state },
    state,
    gone: null,
    readAt: now,
    requestedAt: now,
    owedSince: now,
    generation: 1,
    settledGeneration: 0,
    pending: false,
    verifying: false,
    failure: null,
    refreshAt: now + HOUR,
    quiet: false,
  }
}
