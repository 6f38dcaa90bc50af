import { HOUR, install, MINUTE, notice, SECOND, type Stage } from './stage.js'

const ORDER =
  'Events of one subscription, and changes of one business, are handled in order, never two at once'

/** Lives about reads and handlers: their order, their number, and what comes first. */
export const LIVES_OF_WORK = {
  /** "Whoever has the delivery secret delays no customer." */
  async crowd({ time, open, sold, expect, platform, deliver, explain, calls, now }: Stage) {
    const app = await open({}, async (topic) => {
      if (topic === 'event') await time.sleep(SECOND)
    })
    const { uid, business } = await sold(app, 'customer')
    await time.advance(20 * MINUTE)
    now.latencyMs = 200
    for (let i = 0; i < 300; i++) {
      const forged = { uid: `made-up-${i}`, business: `nobody-${i}`, item: 'item-ours' }
      void app.deliver([JSON.stringify(notice(forged, 'created'))])
    }
    await time.advance(SECOND)
    const from = time.passed()
    const status = await deliver(app, notice(platform.set(uid, business, 'suspended')))
    expect(
      status === 200,
      'Whoever has the delivery secret delays no customer',
      `a customer's delivery gets ${status}`,
    )
    await time.advance(4 * SECOND)
    const { entitled } = await explain(app, business)
    expect(!entitled, 'Whoever has the delivery secret delays no customer', 'a read of a customer waits')
    const own = calls.filter(({ at, payload }) => at >= from && JSON.stringify(payload).includes(uid))
    for (const topic of ['event', 'change'])
      expect(
        own.some((each) => each.topic === topic),
        'Whoever has the delivery secret delays no customer',
        `a handler of a customer's ${topic} waits`,
      )
    await time.advance(10 * MINUTE)
    const got = new Set(
      calls
        .filter(({ topic }) => topic === 'event')
        .map(({ payload }) => `${payload.name} ${JSON.stringify(payload.data)}`),
    )
    expect(got.size === 302, 'Acknowledged means on disk', `handlers got ${got.size} of 302 events`)
  },

  /** `handlers.timeoutMs`, a read without a reply, and the end of its process. */
  async hangs({ time, open, sold, expect, platform, deliver, explain, calls, now }: Stage) {
    let aborted = 0
    const app = await open({}, (topic, attempt, signal) => {
      if (topic !== 'change' || attempt > 1) return undefined
      return new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => {
          aborted = time.passed()
          reject(new Error('too late'))
        }),
      )
    })
    const from = time.passed()
    await sold(app, 'slow')
    await time.advance(MINUTE)
    const tries = calls.filter(({ topic }) => topic === 'change')
    expect(
      aborted >= from + 29 * SECOND && aborted <= from + 33 * SECOND,
      'Handlers: time',
      `aborted after ${aborted - from} ms`,
    )
    expect(
      tries.length === 2,
      'Handlers: success and retries',
      `${tries.length} tries of a handler that hangs once`,
    )
    now.fault = ({ kind }) => (kind === 'read' ? 'hang' : undefined)
    const { uid, business } = await sold(app, 'hung')
    await time.advance(SECOND)
    now.fault = () => undefined
    await time.advance(3 * MINUTE)
    expect(
      (await explain(app, business)).entitled,
      'Options: durations that are no option',
      'a read that hangs is not made again',
    )
    app.kill()
    const next = await open()
    await deliver(next, notice(platform.set(uid, business, 'suspended')))
    await time.advance(3 * MINUTE)
    expect(
      !(await explain(next, business)).entitled,
      'Work that ends the process does not take other work with it',
      'no read after a restart',
    )
  },

  /** A handler that is busy while more changes come: order, and what joins. */
  async order({ time, open, sold, expect, platform, deliver, calls }: Stage) {
    let slowMs = 0
    const app = await open({}, async (topic) => {
      if (slowMs > 0 && topic !== 'event') await time.sleep(slowMs)
    })
    const { uid, business } = await sold(app, 'flips')
    slowMs = 20 * SECOND
    const begun = calls.length
    for (const state of ['suspended', 'purchased', 'suspended', 'purchased'] as const) {
      await deliver(app, notice(platform.set(uid, business, state)))
      await time.advance(6 * SECOND)
    }
    await time.advance(5 * MINUTE)
    const changes = calls.slice(begun).filter(({ topic }) => topic === 'change')
    const steps = changes.map(({ payload }) => payload.to).join()
    expect(steps === 'suspended,purchased,suspended,purchased', ORDER, `the changes are ${steps}`)
    const last = calls.filter(({ topic }) => topic === 'entitlement').at(-1)?.payload
    expect(last?.entitled === true, 'Handlers are called when access begins or ends', 'the last call says no')
    const ids = new Set(changes.map(({ payload }) => payload.id))
    expect(
      ids.size === changes.length,
      'Every observed change reaches every handler at least once',
      'two changes have one id',
    )
  },

  /** "If the platform shows the same older record for an hour, the package believes it." */
  async older({ time, open, sold, expect, platform, deliver, explain, now }: Stage) {
    const app = await open({ freshness: { reconcileEveryMs: 15 * MINUTE } })
    const { uid, business } = await sold(app)
    await time.advance(20 * MINUTE)
    await deliver(app, notice(platform.set(uid, business, 'suspended')))
    await time.advance(30 * SECOND)
    now.fault = ({ kind }) => (kind === 'read' ? 'older' : undefined)
    await deliver(app, notice({ uid, business, item: 'item-ours' }))
    await time.advance(10 * MINUTE)
    expect(
      !(await explain(app, business)).entitled,
      'An older record never replaces a newer one',
      'an older record gives access',
    )
    await time.advance(2 * HOUR)
    expect(
      (await explain(app, business)).entitled,
      'An older record never replaces a newer one',
      'it is not believed after hours',
    )
  },

  /** What a killed process had in its hands is done by the next one, with the same id. */
  async restarts({ time, open, expect, platform, deliver, calls, explain }: Stage) {
    const app = await open({}, () => time.sleep(10 * SECOND))
    await deliver(app, notice(platform.set('s', 'b', 'purchased'), 'created'))
    await time.advance(3 * SECOND)
    app.kill()
    const before = calls.splice(0)
    const next = await open()
    await time.advance(5 * MINUTE)
    for (const { topic, payload } of before) {
      const again = calls.find(
        (each) => each.topic === topic && (topic === 'entitlement' || each.payload.id === payload.id),
      )
      expect(
        again !== undefined,
        'Every observed change reaches every handler at least once',
        `the ${topic} of a killed process is lost`,
      )
    }
    expect(
      (await explain(next, 'b')).entitled,
      'Acknowledged means on disk',
      'a purchase is lost with its process',
    )
  },

  /** "4 reads of a subscription a second, and one in five seconds while they follow each other closely." */
  async flurry({ time, open, sold, expect, platform, explain, witness }: Stage) {
    const app = await open()
    const { uid, business } = await sold(app)
    await time.advance(20 * MINUTE)
    const from = time.passed()
    for (let i = 0; i < 100; i++) {
      void app.deliver([
        JSON.stringify(notice(platform.set(uid, business, i % 2 ? 'purchased' : 'suspended'))),
      ])
      await time.advance(100)
    }
    const reads = witness.log.filter(
      (each) => each.kind === 'called' && each.of === 'read' && each.at >= from,
    ).length
    expect(reads <= 14, 'A payload never grants access', `${reads} reads in 10 s`)
    await time.advance(20 * SECOND)
    expect(
      (await explain(app, business)).entitled,
      'When the platform answers, the database becomes equal to it',
      'not after a flurry',
    )
  },

  /** Installs have a time of their own, and come in any order. */
  async installs({ time, open, sold, expect, platform, deliver, explain }: Stage) {
    const app = await open()
    for (let i = 0; i < 6; i++) await sold(app, `stays-${i}`)
    const { business } = await sold(app, 'returns')
    await time.advance(20 * MINUTE)
    const uninstalledAt = time.now()
    await time.advance(MINUTE)
    await deliver(app, install(business, time.now(), 'installed'))
    await deliver(app, install(business, uninstalledAt))
    platform.refuse(business, 10 * MINUTE)
    await time.advance(8 * MINUTE)
    const { entitled, reason } = await explain(app, business)
    expect(
      entitled,
      'A subscription that the platform no longer shows ends',
      `an uninstall before the last install counts: ${reason}`,
    )
  },

  /** Retention, and what an app may list. */
  async retention({ time, open, sold, expect }: Stage) {
    const app = await open({ retention: { eventsMs: 2 * HOUR, changesMs: 4 * HOUR } })
    await sold(app)
    const { journal } = app.marketplace
    await time.advance(HOUR)
    const [soon, kinds] = [
      await time.until(journal.list({})),
      (list: { kind: string }[]) => list.map(({ kind }) => kind),
    ]
    expect(kinds(soon).includes('event'), 'Options: retention.eventsMs', 'an event is deleted too early')
    expect(
      soon.every(({ status }) => status === 'done'),
      'The life of an entry in the journal',
      `not done: ${soon.map(({ status }) => status).join()}`,
    )
    await time.advance(2 * HOUR)
    const later = kinds(await time.until(journal.list({})))
    expect(
      !later.includes('event') && later.includes('change'),
      'Options: retention',
      `after 3 h there are ${later.join()}`,
    )
    await time.advance(3 * HOUR)
    const last = kinds(await time.until(journal.list({})))
    expect(!last.includes('change'), 'Options: retention.changesMs', `after 6 h there are ${last.join()}`)
    const found = await time.until(app.marketplace.subscriptions.list({}))
    expect(found.length === 1, 'The life of a subscription', `${found.length} subscriptions are stored`)
  },

  /** `track` and `refresh` cause a read at once. */
  async requests({ time, open, expect, platform, explain, calls }: Stage) {
    const app = await open()
    platform.set('old', 'old-customer', 'purchased')
    await time.until(
      app.marketplace.subscriptions.track({ subscriptionUid: 'old', businessUid: 'old-customer' }),
    )
    await time.advance(5 * SECOND)
    expect(
      (await explain(app, 'old-customer')).entitled,
      'When the platform answers, the database becomes equal to it',
      'track causes no read',
    )
    await time.advance(HOUR)
    platform.set('old', 'old-customer', 'suspended')
    await time.until(app.marketplace.businesses.refresh('old-customer'))
    const { entitled } = await time.until(app.marketplace.explain('old-customer', {}))
    expect(!entitled, 'Methods: businesses.refresh', 'after a refresh the answer is the former one')
    await time.advance(10 * SECOND)
    const causes = calls.filter(({ topic }) => topic === 'change').map(({ payload }) => payload.cause)
    expect(
      causes.every((cause) => cause === 'request'),
      'Changes: cause',
      `the causes are ${causes.join()}`,
    )
    const { status, problems } = await time.until(app.marketplace.health())
    expect(
      status === 'ok',
      'Health that is ok means that the app works',
      `${status}: ${problems.map(({ code }) => code).join()}`,
    )
  },
} satisfies Record<string, (stage: Stage) => Promise<void>>
