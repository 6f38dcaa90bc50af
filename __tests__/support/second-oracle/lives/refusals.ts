import { HOUR, install, MINUTE, notice, SECOND, type Stage } from './stage.js'

const ENDS = 'A subscription that the platform no longer shows ends'
const OUTAGE = 'An outage is not the end of many'
const LAGS = 'A read that lags behind its event is repeated'
const HEALTH = 'Health that is ok means that the app works'

/** Lives about reads that get no record: how often they are made, and what they mean. */
export const LIVES_OF_REFUSALS = {
  /** "It is read again after 5 s, 30 s and 2 min, then after half of the time since the end." */
  async returns({ time, open, sold, expect, platform, deliver, explain }: Stage) {
    const app = await open()
    for (let i = 0; i < 6; i++) await sold(app, `stays-${i}`)
    const gone = await sold(app, 'gone')
    await time.advance(20 * MINUTE)
    platform.hide(gone.uid, 'nothing')
    await deliver(app, notice(gone))
    await time.advance(10 * MINUTE)
    const { reason } = await explain(app, 'gone')
    expect(reason === 'missing', ENDS, `the reason is ${reason} after 10 min without a record`)
    await time.advance(30 * MINUTE)
    platform.hide(gone.uid, null)
    await time.advance(45 * MINUTE)
    expect(
      (await explain(app, 'gone')).entitled,
      ENDS,
      'a subscription that has ended is not read again in time',
    )
  },

  /** "Three answers that there is no such record": one or two of them, even after an event, end nothing. */
  async blink({ time, open, sold, expect, platform, deliver, explain, calls }: Stage) {
    const app = await open()
    for (let i = 0; i < 6; i++) await sold(app, `stays-${i}`)
    const blinks = await sold(app, 'blinks')
    await time.advance(20 * MINUTE)
    platform.hide(blinks.uid, 'nothing')
    await deliver(app, notice(blinks))
    await time.advance(2 * SECOND)
    expect((await explain(app, 'blinks')).entitled, ENDS, 'one answer without the record ends it')
    platform.hide(blinks.uid, null)
    await time.advance(10 * MINUTE)
    expect((await explain(app, 'blinks')).entitled, ENDS, 'it ends although it is shown again')
    const gone = calls.filter(
      ({ payload }) => payload.business_uid === 'blinks' && (payload.gone ?? null) !== null,
    )
    expect(gone.length === 0, ENDS, 'a change says that it has gone')
  },

  /** "Refused app credentials and calls without an answer end nothing", whatever was announced. */
  async unanswered({ time, open, sold, expect, now, deliver, explain }: Stage) {
    const app = await open()
    for (let i = 0; i < 6; i++) await sold(app, `stays-${i}`)
    const faults = {
      'fails-503': 'failing',
      'fails-secret': 'credentials',
      'fails-html': 'html',
      'fails-hang': 'hang',
    } as const
    const all = Object.keys(faults) as (keyof typeof faults)[]
    const of = new Map<string, Awaited<ReturnType<typeof sold>>>()
    for (const business of all) of.set(business, await sold(app, business))
    await time.advance(20 * MINUTE)
    now.fault = ({ business }) => faults[business as keyof typeof faults]
    for (const business of all) {
      await deliver(app, notice(of.get(business) as never))
      await deliver(app, install(business, time.now()))
    }
    for (const forMs of [5 * MINUTE, 2 * HOUR]) {
      await time.advance(forMs)
      for (const business of all) {
        const { entitled, reason } = await explain(app, business)
        expect(entitled, ENDS, `${business} is ${reason}, and no call about it was answered`)
      }
    }
  },

  /**
   * "A refused read is repeated after pauses that grow to half an hour", and "when the platform shows one business again,
   * the others are read within minutes".
   */
  async others({ time, open, sold, expect, now, deliver, explain, witness }: Stage) {
    const app = await open({ freshness: { maxStaleMs: 48 * HOUR, reconcileEveryMs: HOUR } })
    const all: Awaited<ReturnType<typeof sold>>[] = []
    for (let i = 0; i < 8; i++) all.push(await sold(app, `many-${i}`))
    now.fault = ({ kind }) => (kind === 'token' ? 'token refused' : 'revoked')
    await time.advance(5 * HOUR)
    const longAgo = time.passed()
    await time.advance(4 * HOUR)
    for (const { business } of all) {
      const tries = witness.log.filter(
        (each) =>
          each.kind === 'called' && each.of === 'token' && each.business === business && each.at >= longAgo,
      ).length
      expect(
        tries >= 4 && tries <= 12,
        'A subscription that was read once is always read again',
        `${tries} tries in 4 h, with pauses of half an hour`,
      )
    }
    now.fault = () => undefined
    const from = time.passed()
    await deliver(app, notice(all[0] as never))
    await time.advance(6 * MINUTE)
    const read = new Set(
      witness.log.flatMap((each) =>
        each.kind === 'called' && each.of === 'read' && each.at >= from ? each.uid : [],
      ),
    )
    expect(
      read.size === 8,
      OUTAGE,
      `${read.size} of 8 were read within minutes after the platform showed one`,
    )
    for (const { business } of all)
      expect((await explain(app, business)).entitled, OUTAGE, `${business} is out`)
  },

  /** A lag together with a move: "If an event names another business, reads try that one too", until it is shown there. */
  async lateMove({ time, open, sold, expect, platform, now, deliver, explain }: Stage) {
    const app = await open()
    for (let i = 0; i < 3; i++) await sold(app, `stays-${i}`)
    const moving = await sold(app, 'from')
    await time.advance(20 * MINUTE)
    const { updatedAt } = moving
    const record = {
      ...{ uid: moving.uid, business_uid: 'from', purchasable_uid: moving.item, purchase_state: 'purchased' },
      updated_at: new Date(updatedAt).toISOString(),
    }
    const text = JSON.stringify({ data: { subscriptions: [record] } })
    const moved = platform.set(moving.uid, 'into', 'purchased')
    now.fault = ({ kind, of, business }) => {
      if (kind !== 'read' || of !== moving.uid) return undefined
      return business === 'from' ? { status: 200, text } : 'empty'
    }
    await deliver(app, notice(moved))
    await time.advance(90 * SECOND)
    now.fault = () => undefined
    await time.advance(15 * MINUTE)
    const { entitled, reason } = await explain(app, 'into')
    expect(entitled, LAGS, `the new business is ${reason} after a move that reads showed late`)
    expect(
      !(await explain(app, 'from')).entitled,
      LAGS,
      'the former business is in after a move that reads showed late',
    )
  },

  /** "`health()` is not `ok` while most reads fail": requested ones within minutes, and regular ones before they are overdue. */
  async unwell({ time, open, sold, expect, now, deliver }: Stage) {
    const app = await open({ freshness: { reconcileEveryMs: 15 * MINUTE } })
    const all: Awaited<ReturnType<typeof sold>>[] = []
    for (let i = 0; i < 5; i++) all.push(await sold(app, `many-${i}`))
    await time.advance(20 * MINUTE)
    const codes = async () =>
      (await time.until(app.marketplace.health())).problems.map(({ code }) => code).join()
    expect((await codes()) === '', HEALTH, `${await codes()}, and nothing was ever wrong`)
    for (const fault of ['failing', 'network', 'token refused'] as const) {
      now.fault = () => fault
      // A regular read is overdue after 10 min.
      await time.advance(22 * MINUTE)
      expect((await codes()) !== '', HEALTH, `all regular reads get ${fault}, and health is ok`)
      for (const each of all) await deliver(app, notice(each))
      await time.advance(20 * MINUTE)
      expect((await codes()) !== '', HEALTH, `all reads get ${fault}, and health is ok`)
      now.fault = () => undefined
      await time.advance(HOUR)
      expect((await codes()) === '', HEALTH, `${await codes()} an hour after ${fault} has ended`)
    }
  },

  /** "Deliveries cause at most 4 reads of a subscription a second." */
  async burst({ time, open, sold, expect, platform, now, witness }: Stage) {
    const app = await open()
    const { uid, business } = await sold(app)
    await time.advance(20 * MINUTE)
    now.latencyMs = 2
    const from = time.passed()
    for (let i = 0; i < 60; i++) {
      void app.deliver([
        JSON.stringify(notice(platform.set(uid, business, i % 2 ? 'purchased' : 'suspended'))),
      ])
      await time.advance(20)
    }
    await time.advance(5 * SECOND)
    const reads = witness.log.filter(
      (each) => each.kind === 'called' && each.of === 'read' && each.at >= from,
    )
    for (const { at } of reads) {
      const inSecond = reads.filter((each) => each.at >= at && each.at < at + SECOND).length
      if (inSecond > 4)
        return expect(false, 'A payload never grants access', `${inSecond} reads within a second`)
    }
  },

  /** "A call to the platform has 10 s." */
  async silence({ time, open, sold, expect, now, deliver, witness }: Stage) {
    const app = await open()
    const asked = await sold(app, 'silent')
    await time.advance(20 * MINUTE)
    for (const fault of ['hang', 'hang in the body'] as const) {
      now.fault = ({ kind }) => (kind === 'read' ? fault : undefined)
      const from = time.passed()
      await deliver(app, notice(asked))
      await time.advance(13 * SECOND)
      const called = witness.log.find(
        (each) => each.kind === 'called' && each.of === 'read' && each.at >= from,
      )
      const isOver =
        called?.kind === 'called' &&
        witness.log.some((each) => each.kind === 'answered call' && each.call === called.call)
      expect(
        isOver,
        'Options: durations that are no option',
        `a call with the fault ${fault} takes longer than 10 s`,
      )
      now.fault = () => undefined
      await time.advance(20 * MINUTE)
    }
  },
} satisfies Record<string, (stage: Stage) => Promise<void>>
