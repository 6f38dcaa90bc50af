import { internals } from '../../internals.js'
import { DELIVERY_SECRET, OTHER_ITEM, OUR_ITEM } from '../../settings.js'
import type { Database } from '../../world/database.js'
import type { Sabotage } from '../../world/sabotage.js'
import type { Finding } from '../log.js'
import { LIVES_OF_ANSWERS } from './answers.js'
import { LIVES_OF_ENDS } from './ends.js'
import { LIVES_OF_HANDLERS } from './handlers.js'
import { LIVES_OF_REFUSALS } from './refusals.js'
import { createStage, HOUR, MINUTE, notice, SECOND, type Stage } from './stage.js'
import { LIVES_OF_WORK } from './work.js'

/** Plays one short life, which the number chooses. What it finds contradicts a heading of the documents. */
export function examine(number: number, database: Database, sabotage?: Sabotage): Promise<Finding[]> {
  return live(LIFE_NAMES[number % LIFE_NAMES.length] as LifeName, database, sabotage)
}

export async function live(name: LifeName, database: Database, sabotage?: Sabotage): Promise<Finding[]> {
  const stage = await createStage(database, sabotage)
  await LIVES[name](stage).catch((error) => stage.expect(false, name, String(error.stack ?? error)))
  return (await stage.close()).map((each) => ({ ...each, message: `${each.message} (${name})` }))
}

/** Short lives, one for a heading or two. Each has only the faults that it is about. */
const LIVES = {
  ...LIVES_OF_ANSWERS,
  ...LIVES_OF_HANDLERS,
  ...LIVES_OF_REFUSALS,
  ...LIVES_OF_ENDS,
  ...LIVES_OF_WORK,

  /** docs/gate.md: after a delivery the answer waits up to `freshness.waitMs` for the read. */
  async waits({ time, now, platform, open, deliver, expect, explain }: Stage) {
    const app = await open({ freshness: { waitMs: 2 * SECOND } })
    now.latencyMs = 500
    const quick = platform.set('quick', 'b-quick', 'purchased')
    await deliver(app, notice(quick, 'created'))
    const soon = await explain(app, 'b-quick')
    expect(soon.entitled, 'The gate', `an answer that waits for its read is ${soon.reason}`)
    now.latencyMs = 20 * SECOND
    const slow = platform.set('slow', 'b-slow', 'purchased')
    await deliver(app, notice(slow, 'created'))
    const from = time.passed()
    const late = await explain(app, 'b-slow')
    const tookMs = time.passed() - from
    expect(late.reason === 'not_read_yet', 'Reasons', `before any read the reason is ${late.reason}`)
    expect(tookMs >= 1_500 && tookMs <= 3_000, 'Options: freshness.waitMs', `the answer took ${tookMs} ms`)
    now.latencyMs = 10
    const waiting = time.until(app.marketplace.waitForEntitlement('b-later', { timeoutMs: 25 * SECOND }))
    time.after(5 * SECOND, () => {
      void app.deliver([JSON.stringify(notice(platform.set('later', 'b-later', 'purchased'), 'created'))])
    })
    const waited = await waiting
    expect(
      waited.entitled,
      'The page to which a buyer returns',
      `waitForEntitlement ends with ${waited.reason}`,
    )
  },

  /** docs/options.md, `entitledWhen`, and "Handlers are called when access begins or ends". */
  async rules({ time, platform, open, deliver, expect, explain, sold, calls }: Stage) {
    const rule = { says: 'until' as 'until' | 'throws' | 'no' }
    const until = new Date(time.now() + HOUR)
    const app = await open({
      ...internals({ pollMs: SECOND }),
      entitledWhen: (record: { purchase_state: string | null }) => {
        if (rule.says === 'throws') throw new Error('no rule')
        if (rule.says === 'no') return false
        return record.purchase_state === 'purchased' ? { entitled: true, until } : false
      },
    } as never)
    const bought = await sold(app, 'ruled')
    const first = await time.until(app.marketplace.explain('ruled', {}))
    expect(first.entitled, 'Reasons', `a rule allows it, and the reason is ${first.reason}`)
    expect(first.accessUntil === until.toISOString(), 'The gate', `accessUntil is ${first.accessUntil}`)
    await time.advance(HOUR - (time.passed() - SECOND))
    const end = time.passed()
    const after = await time.until(app.marketplace.explain('ruled', {}))
    expect(
      !after.entitled,
      'While the platform is down, the last answer stands',
      'access does not end at its time',
    )
    await time.advance(30 * SECOND)
    const call = calls.find(
      ({ topic, at, payload }) => topic === 'entitlement' && at >= end - SECOND && payload.entitled === false,
    )
    expect(
      call !== undefined,
      'Handlers are called when access begins or ends',
      'no call after the end of an answer',
    )
    expect(
      !call || call.payload.cause === 'clock',
      'Changes: cause',
      `the cause of the end is ${call?.payload.cause}`,
    )
    rule.says = 'throws'
    await deliver(app, notice(platform.set(bought.uid, 'ruled', 'purchased')))
    await time.advance(10 * SECOND)
    const failed = await explain(app, 'ruled')
    expect(
      failed.reason === 'entitled_when_failed',
      'Reasons',
      `a rule throws, and the reason is ${failed.reason}`,
    )
    const before = calls.length
    await deliver(app, notice(platform.set(bought.uid, 'ruled', 'suspended')))
    await time.advance(MINUTE)
    const isChange = ({ topic }: { topic: string }) => topic === 'change'
    expect(
      !calls.slice(before).some(isChange),
      'Changes',
      'a handler is called while the answer is not known',
    )
    rule.says = 'no'
    await time.advance(2 * MINUTE)
    expect(calls.slice(before).some(isChange), 'Changes', 'no handler is called after the answer is known')
    await deliver(app, notice(platform.set(bought.uid, 'ruled', 'purchased')))
    await time.advance(10 * SECOND)
    const denied = await explain(app, 'ruled')
    expect(denied.reason === 'denied_by_rule', 'Reasons', `a rule denies, and the reason is ${denied.reason}`)
  },

  /** docs/gate.md, "Several items, such as plans". */
  async items({ time, open, expect, sold }: Stage) {
    const app = await open({
      app: {
        clientId: 'test-client',
        clientSecret: 'test-client-secret',
        purchasableUid: [OUR_ITEM, 'pro'],
        codeName: 'ours',
      },
    })
    const { marketplace } = app
    await sold(app, 'two')
    await sold(app, 'two', 'pro')
    await sold(app, 'one')
    const both = await time.until(marketplace.explain('two'))
    expect(
      both.entitledItems.join() === `${OUR_ITEM},pro`,
      'Several items',
      `the items are ${both.entitledItems.join()}`,
    )
    const other = await time.until(marketplace.explain('one', { purchasableUid: 'pro' }))
    expect(
      other.reason === 'other_item' && !other.entitled,
      'Several items',
      `another item gives ${other.reason}`,
    )
    expect(
      other.otherItems?.bought.join() === OUR_ITEM,
      'Several items',
      `bought is ${other.otherItems?.bought}`,
    )
    const unknown = await time.until(marketplace.explain('one', { purchasableUid: OTHER_ITEM }))
    expect(unknown.reason === 'item_unknown', 'Several items', `an item of nobody gives ${unknown.reason}`)
    const none = await time.until(marketplace.isEntitled('one', { purchasableUid: [] }))
    expect(!none, 'Several items', 'an empty list of items lets a business in')
    const nobody = await time.until(marketplace.explain(''))
    expect(nobody.reason === 'invalid_business_uid', 'Reasons', `no identifier gives ${nobody.reason}`)
    const stranger = await time.until(marketplace.explain('nobody-knows'))
    expect(
      stranger.reason === 'unknown_business' && stranger.known,
      'Reasons',
      `a stranger gives ${stranger.reason}`,
    )
  },

  /** docs/events.md and the receiver: bodies, names, and who may deliver. */
  async deliveries({ time, platform, open, deliver, expect, calls }: Stage) {
    const app = await open()
    const bought = platform.set('s', 'b', 'purchased')
    const wrong = await deliver(app, notice(bought, 'created'), `${DELIVERY_SECRET}x`)
    expect(wrong !== 200, 'Options: deliverySecrets', `a wrong secret gets ${wrong}`)
    const broken = await deliver(app, '{"entity_name":')
    expect(broken !== 200, 'Acknowledged means on disk', `a body that is not JSON gets ${broken}`)
    const large = await deliver(app, { ...notice(bought), more: 'x'.repeat(70_000) })
    expect(large !== 200, 'Options: bodyLimitBytes', `a body of 70 KB gets ${large}`)
    await time.advance(MINUTE)
    expect(calls.length === 0, 'Options: deliverySecrets', 'a refused delivery reaches a handler')
    const strange = await deliver(app, { entity_name: 'made', event_type: 'up', data: {} })
    expect(strange === 200, 'Glossary: unrecognised', `an unrecognised event gets ${strange}`)
    const many = await deliver(
      app,
      Array.from({ length: 1_001 }, () => 1),
    )
    expect(many === 200, 'The events', `an array of 1,001 gets ${many}`)
    const numbers = {
      entity_name: 'application',
      event_type: 'installed',
      data: { business_id: 7, app_code_name: 'ours' },
    }
    await deliver(app, [notice(bought, 'created'), notice(bought), numbers])
    await time.advance(MINUTE)
    const unknown = calls.filter(({ topic }) => topic === 'unrecognised')
    expect(
      unknown.length === 2,
      'The events',
      `${unknown.length} of 2 unrecognised deliveries reach their handler`,
    )
    const names = calls.filter(({ topic }) => topic === 'event').map(({ payload }) => String(payload.name))
    const expected = [
      'application/installed',
      'purchasable_subscription/create',
      'purchasable_subscription/update',
    ]
    expect(names.toSorted().join() === expected.join(), 'The events', `the handlers get ${names.join()}`)
    expect(
      names.indexOf(expected[1] as string) < names.indexOf(expected[2] as string),
      'in order, never two at once',
      'an array is handled out of order',
    )
  },

  /** docs/events.md, "Success and retries", with the pauses of docs/options.md. */
  async retries({ time, open, sold, expect, calls, witness }: Stage) {
    let isBroken = true
    const app = await open(internals({ pollMs: 10 * MINUTE }), (topic) => {
      if (topic === 'change' && isBroken) throw new Error('the mail server is down')
    })
    await sold(app, 'tried')
    await time.advance(90 * HOUR)
    const tries = calls.filter(({ topic }) => topic === 'change')
    expect(tries.length === 13, 'Handlers: success and retries', `${tries.length} tries, of 13`)
    const ends = witness.log.filter((each) => each.kind === 'handler error' && each.retryInMs === null)
    expect(ends.length === 1, 'Methods: onHandlerError', `${ends.length} reports of a dead entry`)
    const { status } = await time.until(app.marketplace.health())
    expect(
      status !== 'ok',
      'Health that is ok means that the app works',
      `an entry is dead, and health is ${status}`,
    )
    isBroken = false
    const [dead] = await time.until(app.marketplace.journal.list({ status: 'dead' }))
    expect(dead !== undefined, 'The life of an entry in the journal', 'no entry is dead')
    if (!dead) return
    await time.until(app.marketplace.journal.replay(dead.id))
    await time.advance(MINUTE)
    const last = calls.filter(({ topic }) => topic === 'change').at(-1)
    expect(
      last?.payload.id === dead.id,
      'Handlers: success and retries',
      'replay does not call with the same id',
    )
    const entry = await time.until(app.marketplace.journal.get(dead.id))
    expect(
      entry?.status === 'done',
      'The life of an entry in the journal',
      `a replayed entry is ${entry?.status}`,
    )
  },

  /** "Closing lets work finish". */
  async closes({ time, open, platform, deliver, expect, calls }: Stage) {
    let endedAt = 0
    const app = await open({ closeTimeoutMs: 10 * SECOND }, async (topic) => {
      if (topic !== 'event') return
      await time.sleep(5 * SECOND)
      endedAt = time.passed()
    })
    await deliver(app, notice(platform.set('s', 'b', 'purchased'), 'created'))
    await time.advance(SECOND)
    await time.until(app.marketplace.close())
    const closedAt = time.passed()
    expect(
      endedAt > 0 && closedAt >= endedAt,
      'Closing lets work finish',
      'close() did not wait for a handler',
    )
    const after = await deliver(app, notice(platform.set('s2', 'b2', 'purchased'), 'created'))
    expect(after !== 200, 'Closing lets work finish', `a delivery after close() gets ${after}`)
    const count = calls.length
    await time.advance(10 * MINUTE)
    expect(calls.length === count, 'Closing lets work finish', 'a closed app calls handlers')
    const next = await open()
    await time.advance(3 * MINUTE)
    const again = calls.slice(count).filter(({ topic }) => topic === 'event')
    expect(again.length === 0, 'Handlers: success and retries', 'an event is handled again after a clean end')
    const hung = next.marketplace
    void hung.onAny(() => new Promise(() => {}))
    await deliver(next, notice(platform.set('s3', 'b3', 'purchased'), 'created'))
    await time.advance(SECOND)
    const from = time.passed()
    await time.until(hung.close())
    const tookMs = time.passed() - from
    expect(tookMs <= 16 * SECOND, 'Closing lets work finish', `close() took ${tookMs} ms`)
  },

  /** "An erasure leaves no uid". */
  async erasure({ time, open, sold, expect, database, platform, deliver }: Stage) {
    const app = await open()
    const { uid } = await sold(app, 'gone-business')
    const stays = await sold(app, 'stays')
    await deliver(app, notice(platform.set(uid, 'gone-business', 'suspended')))
    // Another business that an event named for a subscription.
    await deliver(app, notice({ ...stays, business: 'gone-business' }))
    await time.advance(20 * MINUTE)
    await time.until(app.marketplace.businesses.erase('gone-business'))
    await time.advance(5 * MINUTE)
    const rows = await database.dump()
    const left = rows.filter((row) => row.includes('gone-business') || row.includes(uid))
    expect(
      left.length === 0,
      'An erasure leaves no uid, and keeps who did what',
      `it leaves ${left[0]?.slice(0, 200)}`,
    )
    const kept = rows.filter((row) => row.includes('stays'))
    expect(kept.length > 0, 'An erasure leaves no uid, and keeps who did what', 'it deletes others too')
    const answer = await time.until(app.marketplace.explain('gone-business', {}))
    expect(answer.reason === 'unknown_business', 'Reasons', `after an erasure the reason is ${answer.reason}`)
  },

  /** "After a 429 all reads wait as long as the platform asks." */
  async throttled({ time, open, sold, expect, platform, now, deliver, explain }: Stage) {
    const app = await open()
    const some = [await sold(app), await sold(app), await sold(app)] as const
    // The tokens end, and the last one waits for its new one when the first meets the limit.
    await time.advance(2 * HOUR)
    now.latencyMs = 2 * SECOND
    now.fault = ({ of }) =>
      of === some[0].business ? { status: 429, text: '{}', retryAfter: '600' } : undefined
    await deliver(app, notice(platform.set(some[0].uid, some[0].business, 'suspended')))
    await time.advance(SECOND)
    await deliver(app, notice(some[2]))
    await time.advance(20 * SECOND)
    now.fault = () => undefined
    now.latencyMs = 10
    await deliver(app, notice(platform.set(some[1].uid, some[1].business, 'suspended')))
    await time.advance(20 * MINUTE)
    for (const [i, { business }] of some.entries()) {
      const { entitled } = await explain(app, business)
      expect(
        entitled === (i === 2),
        'When the platform answers, the database becomes equal to it',
        `${i} of 3 is ${entitled} after a rate limit`,
      )
    }
  },

  /** "A read that lags behind its event is repeated", and the older record. */
  async lags({ time, open, sold, expect, platform, now, deliver, explain, witness }: Stage) {
    const app = await open()
    const { uid, business } = await sold(app)
    await time.advance(20 * MINUTE)
    for (const lagMs of [3 * SECOND, 20 * SECOND, 100 * SECOND, 8 * MINUTE]) {
      now.lagMs = lagMs
      const state = (await explain(app, business)).entitled ? 'suspended' : 'purchased'
      await deliver(app, notice(platform.set(uid, business, state)))
      await time.advance(14 * MINUTE)
      const { entitled } = await explain(app, business)
      expect(
        entitled === (state === 'purchased'),
        'A read that lags behind its event is repeated',
        `a lag of ${lagMs / SECOND} s hides ${state}`,
      )
    }
    now.lagMs = 0
    await time.advance(HOUR)
    const from = time.passed()
    await time.advance(30 * HOUR)
    const reads = witness.log.filter(
      (each) => each.kind === 'called' && each.of === 'read' && each.uid === uid && each.at > from,
    )
    expect(
      reads.length >= 1 && reads.length <= 2,
      'Options: freshness.reconcileEveryMs',
      `${reads.length} reads in 30 h`,
    )
  },

  /** "`platform.findSubscriptions` searches at the first question about a business without a stored subscription." */
  async searches({ time, open, expect, platform }: Stage) {
    platform.set('lost', 'searched', 'purchased')
    const asked: string[] = []
    const findSubscriptions = async (business: string | { businessUid: string }) => {
      asked.push(JSON.stringify(business))
      return JSON.stringify(business).includes('searched') ? ['lost'] : []
    }
    const app = await open({ platform: { findSubscriptions } } as never)
    await time.until(app.marketplace.isEntitled('searched', {}))
    await time.advance(MINUTE)
    const found = await time.until(app.marketplace.explain('searched', {}))
    expect(asked.length > 0, 'When the platform answers, the database becomes equal to it', 'no search')
    expect(
      found.entitled,
      'When the platform answers, the database becomes equal to it',
      `after a search the reason is ${found.reason}`,
    )
  },
} satisfies Record<string, (stage: Stage) => Promise<void>>

export type LifeName = keyof typeof LIVES
export const LIFE_NAMES = Object.keys(LIVES) as readonly LifeName[]
