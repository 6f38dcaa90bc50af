import { HOUR, install, MINUTE, notice, SECOND, type Stage } from './stage.js'

const ENDS = 'A subscription that the platform no longer shows ends'
const OUTAGE = 'An outage is not the end of many'

/** What a change says about an end, by its evidence: docs/gate.md, "Changes". */
const GONE = { uninstalled: 'revoked', record: 'ended', update: 'ended', missing: 'missing' }

/** Lives about subscriptions that end, and about failures that look like ends. */
export const LIVES_OF_ENDS = {
  async ends({ time, open, sold, expect, platform, deliver, explain, calls }: Stage) {
    const app = await open()
    for (let i = 0; i < 8; i++) await sold(app, `stays-${i}`)
    const ways = ['uninstalled', 'record', 'update', 'missing'] as const
    const of = new Map<string, { uid: string; business: string; item: string }>()
    for (const way of ways) of.set(way, await sold(app, `ends-${way}`))
    await time.advance(20 * MINUTE)
    const reasonOf = async (way: string) => (await explain(app, `ends-${way}`)).reason
    const end = async (way: (typeof ways)[number]) => {
      const sold = of.get(way) as { uid: string; business: string; item: string }
      if (way === 'missing') platform.hide(sold.uid, 'nothing')
      else platform.refuse(sold.business)
      const record = {
        uid: sold.uid,
        business_uid: sold.business,
        purchasable_uid: sold.item,
        purchase_state: 'canceled',
      }
      const body = { entity_name: 'purchasable_subscription', event_type: 'update', data: record }
      await deliver(
        app,
        way === 'uninstalled' ? install(sold.business, time.now()) : way === 'record' ? body : notice(sold),
      )
    }
    for (const way of ways) {
      await end(way)
      await time.advance(20 * SECOND)
      if (way === 'record')
        expect((await reasonOf(way)) === 'ended', ENDS, `a record ends it: ${await reasonOf(way)}`)
      else expect((await reasonOf(way)) === 'purchased', ENDS, `${way}: ${await reasonOf(way)} after 20 s`)
      await time.advance(6 * MINUTE)
      if (way === 'uninstalled')
        expect((await reasonOf(way)) === 'revoked', ENDS, `revoked: ${await reasonOf(way)}`)
      if (way === 'missing')
        expect((await reasonOf(way)) === 'missing', ENDS, `missing: ${await reasonOf(way)}`)
      if (way === 'update') {
        expect((await reasonOf(way)) === 'purchased', ENDS, `update: ${await reasonOf(way)} after minutes`)
        await time.advance(100 * MINUTE)
        expect(
          (await reasonOf(way)) === 'ended',
          ENDS,
          `update: ${await reasonOf(way)} after an hour and a half`,
        )
      }
      const gone = calls.find(
        ({ topic, payload }) =>
          topic === 'change' && payload.business_uid === `ends-${way}` && payload.gone !== null,
      )?.payload.gone
      expect(gone === GONE[way], ENDS, `${way}: a change with gone ${gone}`)
      const call = calls.filter(
        ({ topic, payload }) => topic === 'entitlement' && payload.business_uid === `ends-${way}`,
      )
      expect(
        call.at(-1)?.payload.entitled === false,
        'Handlers are called when access begins or ends',
        `${way}: no call after the end`,
      )
    }
    // A read that finds the record brings the subscription back, with a change.
    for (const way of ['missing', 'update']) {
      const back = of.get(way) as { uid: string; business: string; item: string }
      platform.hide(back.uid, null)
      platform.refuse(back.business, 0)
      await deliver(app, notice(back))
      await time.advance(2 * MINUTE)
      expect(
        (await reasonOf(way)) === 'purchased',
        ENDS,
        `${way}: ${await reasonOf(way)} after it is shown again`,
      )
    }
    for (let i = 0; i < 8; i++)
      expect((await explain(app, `stays-${i}`)).entitled, OUTAGE, 'others lose their access')
  },

  /** Refusals without any event end a subscription after `freshness.maxStaleMs`, and no sooner. */
  async silentEnd({ time, open, sold, expect, platform, explain }: Stage) {
    const app = await open({ freshness: { maxStaleMs: 6 * HOUR, reconcileEveryMs: HOUR } })
    for (let i = 0; i < 6; i++) await sold(app, `stays-${i}`)
    const { business } = await sold(app, 'leaves')
    platform.refuse(business)
    await time.advance(5 * HOUR)
    expect(
      (await explain(app, business)).entitled,
      ENDS,
      'it ends before maxStaleMs, and nothing announced it',
    )
    await time.advance(5 * HOUR)
    const { reason, entitled } = await explain(app, business)
    expect(!entitled, ENDS, `${reason} after maxStaleMs`)
    expect(reason === 'ended', ENDS, `the reason is ${reason}, and others were served`)
  },

  /** All keep their access while most fail, and health says so. */
  async outage({ time, open, sold, expect, now, deliver, explain }: Stage) {
    const app = await open()
    for (let i = 0; i < 10; i++) await sold(app, `many-${i}`)
    await time.advance(20 * MINUTE)
    now.fault = ({ kind }) => (kind === 'token' ? 'token refused' : 'revoked')
    for (let i = 0; i < 10; i++) await deliver(app, install(`many-${i}`, time.now()))
    for (const forMs of [2 * MINUTE, 20 * MINUTE, 2 * HOUR]) {
      await time.advance(forMs)
      for (let i = 0; i < 10; i++) {
        const { entitled, reason } = await explain(app, `many-${i}`)
        expect(entitled, OUTAGE, `many-${i} is ${reason} while all are refused`)
      }
    }
    const { status } = await time.until(app.marketplace.health())
    expect(status !== 'ok', OUTAGE, `health is ${status} while all are refused`)
    now.fault = () => undefined
    await time.advance(2 * HOUR)
    for (let i = 0; i < 10; i++) {
      const { entitled, reason } = await explain(app, `many-${i}`)
      expect(entitled, OUTAGE, `many-${i} is ${reason} after the outage`)
    }
  },

  /** The last answer stands for `freshness.maxStaleMs`, and then it is `stale`. */
  async down({ time, open, sold, expect, now, explain, deliver, platform }: Stage) {
    const app = await open({ freshness: { maxStaleMs: 4 * HOUR, reconcileEveryMs: HOUR } })
    const { business } = await sold(app, 'stands')
    now.fault = () => 'failing'
    await deliver(app, notice(platform.set('new', 'buys-meanwhile', 'purchased'), 'created'))
    await time.advance(2.5 * HOUR)
    expect(
      (await explain(app, business)).entitled,
      'While the platform is down, the last answer stands',
      'it does not stand',
    )
    const buyer = await explain(app, 'buys-meanwhile')
    expect(buyer.reason === 'not_read_yet', 'Reasons', `a buyer of an outage gets ${buyer.reason}`)
    await time.advance(2.5 * HOUR)
    const { reason } = await explain(app, business)
    expect(
      reason === 'stale',
      'While the platform is down, the last answer stands',
      `after maxStaleMs the reason is ${reason}`,
    )
    const { status } = await time.until(app.marketplace.health())
    expect(
      status !== 'ok',
      'Health that is ok means that the app works',
      `the platform fails, and health is ${status}`,
    )
    now.fault = () => undefined
    await time.advance(90 * MINUTE)
    expect(
      (await explain(app, business)).entitled,
      'When the platform answers, the database becomes equal to it',
      'not in time',
    )
    expect(
      (await explain(app, 'buys-meanwhile')).entitled,
      'When the platform answers, the database becomes equal to it',
      'a buyer of the outage is out',
    )
  },

  /** A subscription that moved to another business gives access there only. */
  async moves({ time, open, sold, expect, platform, deliver, explain }: Stage) {
    const app = await open()
    const { uid, item } = await sold(app, 'from')
    await sold(app, 'other')
    await time.advance(20 * MINUTE)
    await deliver(app, notice({ ...platform.set(uid, 'into', 'purchased'), item }))
    await time.advance(20 * MINUTE)
    expect(
      (await explain(app, 'into')).entitled,
      'A read that lags behind its event is repeated',
      'the new business is out',
    )
    expect(
      !(await explain(app, 'from')).entitled,
      'A read that lags behind its event is repeated',
      'the former business is in',
    )
  },
} satisfies Record<string, (stage: Stage) => Promise<void>>
