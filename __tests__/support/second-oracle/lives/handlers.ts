import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copyStore } from '../../../../lib/index.js'
import { createSqliteEngine } from '../../../../lib/sqlite/engine.js'
import { createSqlStore } from '../../../../lib/store/sql-store.js'
import { internals } from '../../internals.js'
import { HOUR, MINUTE, notice, SECOND, type Stage } from './stage.js'

const ORDER =
  'Events of one subscription, and changes of one business, are handled in order, never two at once'
const ONCE = 'Every observed change reaches every handler at least once'
const CRASH = 'Work that ends the process does not take other work with it'
const MOVED = 'A move to another database keeps everything'
const HEALTH = 'Health that is ok means that the app works'

/** Lives about handlers: several of them, several lanes, several processes and databases. */
export const LIVES_OF_HANDLERS = {
  /** "If some fail, only these are called again." */
  async twoHandlers({ time, open, sold, expect, calls }: Stage) {
    const app = await open()
    const tries: string[] = []
    let isBroken = true
    app.marketplace.onPurchaseChange(({ id }) => {
      tries.push(id)
      if (isBroken) throw new Error('the second handler fails')
    })
    await sold(app, 'two-handlers')
    const { status } = await time.until(app.marketplace.health())
    expect(status !== 'ok', HEALTH, `a handler fails, and health is ${status}`)
    isBroken = false
    await time.advance(3 * MINUTE)
    expect(tries.length >= 3, ONCE, `a handler that failed was called ${tries.length} times`)
    expect(new Set(tries).size === 1, ONCE, 'each try has another id')
    const first = calls.filter(({ topic }) => topic === 'change')
    expect(
      first.length === 1,
      'Handlers: several handlers',
      `the other handler was called ${first.length} times`,
    )
  },

  /** "Changes of one business": of all its subscriptions. */
  async twoSubscriptions({ time, open, platform, deliver, expect, calls }: Stage) {
    const app = await open({}, () => time.sleep(10 * SECOND))
    for (const state of ['purchased', 'suspended', 'purchased'] as const) {
      for (const uid of ['one', 'two']) await deliver(app, notice(platform.set(uid, 'b', state), 'update'))
      await time.advance(8 * SECOND)
    }
    await time.advance(5 * MINUTE)
    // The judge of the log sees two at once.
    for (const uid of ['one', 'two']) {
      const last = calls
        .filter(({ topic, payload }) => topic === 'change' && payload.subscription_uid === uid)
        .at(-1)
      expect(last?.payload.to === 'purchased', ORDER, `the last change of ${uid} is to ${last?.payload.to}`)
    }
  },

  /** "Events of one subscription", with handlers that take longer than the next delivery. */
  async slowEvents({ time, open, platform, deliver, expect, calls }: Stage) {
    const app = await open({}, (topic) => topic === 'event' && time.sleep(4 * SECOND))
    const bought = platform.set('s', 'b', 'purchased')
    for (let i = 0; i < 4; i++) {
      await deliver(app, { ...notice(bought, i === 0 ? 'created' : 'update') })
      await time.advance(SECOND)
    }
    await time.advance(2 * MINUTE)
    const events = calls.filter(({ topic }) => topic === 'event')
    expect(events.length === 4, 'Acknowledged means on disk', `${events.length} of 4 events were handled`)
    expect(
      events[0]?.payload.name === 'purchasable_subscription/create',
      ORDER,
      'not in the order of storing',
    )
  },

  /** "This holds for several instances too, while an app closes": a handler that is interrupted may still clean up. */
  async interrupted({ time, open, platform, deliver, expect }: Stage) {
    const spans: { from: number; until: number }[] = []
    const behave = async (topic: string, _attempt: number, signal: AbortSignal) => {
      if (topic !== 'event') return
      const span = { from: time.passed(), until: Number.POSITIVE_INFINITY }
      spans.push(span)
      if (spans.length === 1) {
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
        await time.sleep(3 * SECOND)
        span.until = time.passed()
        throw new Error('interrupted')
      }
      span.until = time.passed()
    }
    const first = await open({ closeTimeoutMs: 2 * SECOND, ...internals({ pollMs: SECOND }) }, behave)
    await deliver(first, notice(platform.set('s', 'b', 'purchased'), 'created'))
    await time.advance(SECOND)
    await open(internals({ pollMs: SECOND }), behave)
    await time.until(first.marketplace.close())
    await time.advance(2 * MINUTE)
    const [one, two] = spans
    expect(
      spans.length === 2,
      'Closing lets work finish',
      `an interrupted handler was called ${spans.length} times`,
    )
    if (one && two)
      expect(
        two.from >= one.until,
        ORDER,
        `called ${one.until - two.from} ms before the interrupted call has ended`,
      )
  },

  /** "Interrupted work is done again after the next start: at once if the handler ends when its `signal` aborts." */
  async handedOver({ time, open, platform, deliver, expect, calls }: Stage) {
    const first = await open({ closeTimeoutMs: SECOND }, (topic, _attempt, signal) => {
      if (topic !== 'event') return undefined
      return new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(new Error('interrupted')), { once: true }),
      )
    })
    await deliver(first, notice(platform.set('s', 'b', 'purchased'), 'created'))
    await time.advance(SECOND)
    await time.until(first.marketplace.close())
    first.kill()
    const from = calls.length
    await open()
    await time.advance(2 * SECOND)
    const again = calls.slice(from).filter(({ topic }) => topic === 'event')
    expect(
      again.length === 1,
      'Closing lets work finish',
      `${again.length} calls at once after an interruption`,
    )
    expect(again[0]?.attempt !== 2, 'Closing lets work finish', 'an interruption counts as a try')
  },

  /** "An entry becomes dead only if the process ended or froze five times while it ran alone." */
  async crashes({ time, open, platform, deliver, expect, calls, explain }: Stage) {
    const lives = async (deaths: number, business: string, isLast: boolean) => {
      for (let i = 0; i < deaths; i++) {
        const ends = { now: () => {} }
        const app = await open({}, (topic) => {
          if (topic !== 'change') return undefined
          ends.now()
          return new Promise(() => {})
        })
        ends.now = () => app.kill()
        if (i === 0)
          await deliver(app, notice(platform.set(`s-${business}`, business, 'purchased'), 'created'))
        await time.advance(6 * MINUTE)
      }
      if (!isLast) return
      calls.length = 0
      const well = await open()
      await time.advance(10 * MINUTE)
      return well
    }
    const well = await lives(4, 'survives', true)
    if (!well) return
    const change = calls.find(
      ({ topic, payload }) => topic === 'change' && payload.business_uid === 'survives',
    )
    expect(change !== undefined, CRASH, 'a change is dead after four ends of the process')
    expect((await explain(well, 'survives')).entitled, CRASH, 'a purchase is lost with its process')
    well.kill()
    const next = await lives(8, 'kills', true)
    if (!next) return
    const [dead] = await time.until(next.marketplace.journal.list({ status: 'dead' }))
    expect(
      dead?.kind === 'change',
      CRASH,
      'a change that always ends the process is not dead after eight ends',
    )
    await deliver(next, notice(platform.set('s-later', 'later', 'purchased'), 'created'))
    await time.advance(MINUTE)
    expect(
      calls.some(({ payload }) => payload.business_uid === 'later'),
      CRASH,
      'other work does not go on',
    )
  },

  /** "Its handlers get exactly what was not finished, in the same order and with the same `id` and tries." */
  async copied({ time, open, sold, platform, deliver, explain, expect, calls }: Stage) {
    const folder = mkdtempSync(join(tmpdir(), 'copied-'))
    const path = (name: string) => join(folder, `${name}.db`)
    const storeAt = (name: string) => {
      const clock = time.forProcess()
      return createSqlStore(createSqliteEngine({ path: path(name), clock }), clock)
    }
    try {
      const failing = () => {
        throw new Error('the mail server is down')
      }
      const retryDelaysMs = [5 * SECOND, 30 * SECOND, 30 * SECOND, HOUR]
      const behave = (topic: string) => topic === 'change' && failing()
      const app = await open({ handlers: { retryDelaysMs } }, behave, storeAt('from'))
      const { uid } = await sold(app, 'moves')
      await sold(app, 'moves-too')
      await deliver(app, notice(platform.set(uid, 'moves', 'suspended')))
      await time.advance(3 * MINUTE)
      await time.until(app.marketplace.close())
      app.kill()
      const before = calls.splice(0).filter(({ topic }) => topic === 'change')
      const tries = before.filter(({ payload }) => payload.subscription_uid === uid).length
      await time.standStillFor(copyStore(`sqlite:${path('from')}`, `sqlite:${path('to')}`, { actor: 'ada' }))
      const next = await open({ handlers: { retryDelaysMs } }, () => {}, storeAt('to'))
      await time.advance(2 * HOUR)
      const after = calls.filter(
        ({ topic, payload }) => topic === 'change' && payload.subscription_uid === uid,
      )
      const first = before.find(({ payload }) => payload.subscription_uid === uid)
      expect(
        after[0]?.payload.id === first?.payload.id,
        MOVED,
        'the first change that is not finished has another id',
      )
      expect(
        after[0]?.attempt === tries + 1,
        MOVED,
        `after ${tries} tries comes the try ${after[0]?.attempt}`,
      )
      const steps = after.map(({ payload }) => payload.to).join()
      expect(steps === 'purchased,suspended', MOVED, `the changes after a copy are to ${steps}`)
      const events = calls.filter(({ topic }) => topic === 'event')
      expect(events.length === 0, MOVED, `${events.length} events that were finished are handled again`)
      expect(!(await explain(next, 'moves')).entitled, MOVED, 'another answer than before')
      expect((await explain(next, 'moves-too')).entitled, MOVED, 'another answer than before')
      await time.until(next.marketplace.close())
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
} satisfies Record<string, (stage: Stage) => Promise<void>>
