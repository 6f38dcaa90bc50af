import { HOUR, install, MINUTE, notice, SECOND, type Stage } from './stage.js'

const STANDS = 'While the platform is down, the last answer stands'
const EQUAL = 'When the platform answers, the database becomes equal to it'
const NEVER = 'A payload never grants access'

/** Lives about what a question gets while something is down, late or forged. */
export const LIVES_OF_ANSWERS = {
  /** "Then the reason is `stale`, and the gate answers 503", also for a visitor who comes just then. */
  async stale({ time, open, sold, expect, now, explain }: Stage) {
    const app = await open({ freshness: { maxStaleMs: 20 * MINUTE, reconcileEveryMs: 10 * MINUTE } })
    const { business } = await sold(app, 'waits')
    now.fault = () => 'failing'
    await time.advance(12 * MINUTE)
    expect((await explain(app, business)).entitled, STANDS, 'it does not stand')
    await time.advance(20 * MINUTE)
    const { reason } = await explain(app, business)
    expect(reason === 'stale', STANDS, `after maxStaleMs the reason is ${reason}`)
    now.fault = () => undefined
    await time.advance(15 * MINUTE)
    expect((await explain(app, business)).entitled, EQUAL, 'not within a reconcile after an outage')
  },

  /** "While the database cannot be read, a process gives its last decision from memory for as long." */
  async storeDown({ time, open, sold, expect, explain }: Stage) {
    const app = await open({ freshness: { maxStaleMs: 10 * MINUTE, reconcileEveryMs: 5 * MINUTE } })
    const { business } = await sold(app, 'remembered')
    expect((await explain(app, business)).entitled, EQUAL, 'a purchase gives no access')
    app.cutFromStore(HOUR)
    await time.advance(4 * MINUTE)
    expect((await explain(app, business)).entitled, STANDS, 'not while the database cannot be read')
    const stranger = await explain(app, 'stranger')
    expect(
      stranger.reason === 'store_unavailable',
      STANDS,
      `the reason for a stranger is ${stranger.reason}, and the database cannot be read`,
    )
    await time.advance(10 * MINUTE)
    const { reason } = await explain(app, business)
    expect(
      reason === 'store_unavailable',
      STANDS,
      `the reason is ${reason} after maxStaleMs without a database`,
    )
    const { status } = await time.until(app.marketplace.health())
    expect(
      status !== 'ok',
      'Health that is ok means that the app works',
      `the database cannot be read, and health is ${status}`,
    )
    await time.advance(HOUR)
    expect((await explain(app, business)).entitled, EQUAL, 'not after the database came back')
  },

  /** "It stands for `freshness.maxStaleMs` after the last read that confirmed it, also while the machine sleeps." */
  async asleep({ time, open, sold, expect, explain }: Stage) {
    const app = await open({ freshness: { maxStaleMs: 10 * MINUTE, reconcileEveryMs: 5 * MINUTE } })
    const { business } = await sold(app, 'sleeps')
    expect((await explain(app, business)).entitled, EQUAL, 'a purchase gives no access')
    app.cutFromStore(3 * HOUR)
    app.cutFromPlatform(3 * HOUR)
    await time.suspend(2 * HOUR)
    await time.advance(10)
    const { entitled, reason } = await explain(app, business)
    expect(!entitled, STANDS, `the reason is ${reason} after a sleep that is longer than maxStaleMs`)
  },

  /** "`not_read_yet`: a subscription was announced, and no read has shown it yet": never a definite no meanwhile. */
  async announced({ time, open, sold, expect, explain, platform, deliver }: Stage) {
    const app = await open()
    for (let i = 0; i < 6; i++) await sold(app, `stays-${i}`)
    const late = platform.set('late', 'b-late', 'purchased')
    platform.hide('late', 'nothing')
    await deliver(app, notice(late, 'created'))
    for (const forMs of [10 * SECOND, 30 * SECOND, 2 * MINUTE, 6 * MINUTE]) {
      await time.advance(forMs)
      const { reason } = await explain(app, 'b-late')
      expect(reason === 'not_read_yet', 'Reasons', `${reason} while the reads after an event go on`)
    }
    platform.hide('late', null)
    await time.advance(10 * MINUTE)
    expect(
      (await explain(app, 'b-late')).entitled,
      'A read that lags behind its event is repeated',
      'a lag of 9 min',
    )
  },

  /** "Who buys during an outage gets no definite no: the answer stays `not_read_yet` until others are served." */
  async buyer({ time, open, sold, expect, explain, platform, now, deliver }: Stage) {
    const app = await open()
    for (let i = 0; i < 6; i++) await sold(app, `stays-${i}`)
    await time.advance(20 * MINUTE)
    now.fault = ({ kind }) => (kind === 'token' ? 'token refused' : 'forbidden')
    for (let i = 0; i < 6; i++)
      await deliver(app, notice({ uid: `none-${i}`, business: `stays-${i}`, item: 'item-ours' }))
    await deliver(app, notice(platform.set('bought', 'b-buyer', 'purchased'), 'created'))
    for (const forMs of [MINUTE, 20 * MINUTE, HOUR]) {
      await time.advance(forMs)
      const { reason } = await explain(app, 'b-buyer')
      expect(
        reason === 'not_read_yet',
        'An outage is not the end of many',
        `a buyer of an outage gets ${reason}`,
      )
    }
    now.fault = () => undefined
    await time.advance(45 * MINUTE)
    expect((await explain(app, 'b-buyer')).entitled, EQUAL, 'a buyer of an outage is out')
  },

  /** "Until it has answered, the gate replies 503 (`not_read_yet`); after that 402 (`unknown_business`)." */
  async failedSearches({ time, open, expect, platform, explain }: Stage) {
    platform.set('lost', 'searched', 'purchased')
    let isFailing = true
    const findSubscriptions = async (business: string) => {
      if (isFailing) throw new Error('the list cannot be read')
      return business === 'searched' ? ['lost'] : []
    }
    const app = await open({ platform: { findSubscriptions } })
    for (const forMs of [SECOND, MINUTE, 10 * MINUTE]) {
      for (const business of ['searched', 'stranger']) {
        const { reason } = await explain(app, business)
        expect(reason === 'not_read_yet', 'Reasons', `${reason} before the platform has answered a search`)
      }
      await time.advance(forMs)
    }
    isFailing = false
    await time.advance(6 * MINUTE)
    const found = await explain(app, 'searched')
    expect(found.entitled, EQUAL, `after a search the reason is ${found.reason}`)
    const { reason } = await explain(app, 'stranger')
    expect(reason === 'unknown_business', 'Reasons', `${reason} after a search that found nothing`)
  },

  /** "Until a subscription has been read, the first event that names it decides its business." */
  async named({ time, open, sold, expect, platform, now, deliver, explain }: Stage) {
    const app = await open()
    const known = await sold(app, 'known')
    const fresh = platform.set('fresh', 'first', 'purchased')
    now.fault = () => 'failing'
    await deliver(app, notice(fresh, 'created'))
    await time.advance(SECOND)
    await deliver(app, notice({ ...fresh, business: 'thief' }))
    await deliver(app, notice({ ...known, business: 'thief' }))
    await time.advance(2 * SECOND)
    now.fault = () => undefined
    await time.advance(5 * MINUTE)
    for (const business of ['first', 'known']) {
      const { entitled, reason } = await explain(app, business)
      expect(entitled, NEVER, `an event that names another business puts out ${business}: ${reason}`)
    }
    expect(
      !(await explain(app, 'thief')).entitled,
      NEVER,
      'an event gives a subscription to the business it names',
    )
    // A refused first business gives the word to the next event.
    await deliver(
      app,
      notice({ ...platform.set('second', 'owner', 'purchased'), business: 'nobody' }, 'created'),
    )
    await time.advance(10 * SECOND)
    await deliver(app, notice({ uid: 'second', business: 'owner', item: 'item-ours' }))
    await time.advance(15 * MINUTE)
    expect((await explain(app, 'owner')).entitled, NEVER, 'a forged first event keeps out the owner')
  },

  /** "One subscription that gives access is enough", whatever the others are and in which order they came. */
  async several({ time, open, sold, expect, platform, deliver, explain }: Stage) {
    const app = await open()
    for (const [business, first, second] of [
      ['newer-ended', 'purchased', 'canceled'],
      ['older-ended', 'canceled', 'purchased'],
    ] as const) {
      for (const state of [first, second]) {
        const { uid } = await sold(app, business)
        if (state === 'canceled') await deliver(app, notice(platform.set(uid, business, state)))
        await time.advance(MINUTE)
      }
      const { entitled, reason } = await explain(app, business)
      expect(entitled, 'The gate', `of two subscriptions one is purchased, and ${business} gets ${reason}`)
    }
  },

  /** "A changed decision reaches the other instances within five seconds", also where no notification arrives. */
  async deaf({ time, open, sold, expect, platform, deliver, explain, deafStore }: Stage) {
    const app = await open()
    const deaf = await open({ worker: false }, () => {}, deafStore())
    const { uid, business } = await sold(app, 'asked')
    expect((await explain(deaf, business)).entitled, EQUAL, 'another process gives no access')
    await deliver(app, notice(platform.set(uid, business, 'suspended')))
    await time.advance(7 * SECOND)
    expect(
      !(await explain(deaf, business)).entitled,
      'Several instances: poolers',
      'a changed decision has not reached another instance after 7 s',
    )
  },

  /** An uninstall of another app is no evidence: docs/options.md, `app.codeName`. */
  async foreign({ time, open, sold, expect, platform, deliver, explain }: Stage) {
    const app = await open()
    for (let i = 0; i < 6; i++) await sold(app, `stays-${i}`)
    const { business } = await sold(app, 'visits')
    await time.advance(20 * MINUTE)
    const foreign = install(business, time.now())
    Object.assign(foreign.data, { app_code_name: 'another-app' })
    platform.refuse(business)
    await deliver(app, foreign)
    await time.until(app.marketplace.businesses.refresh(business))
    await time.advance(3 * HOUR)
    const { entitled, reason } = await explain(app, business)
    expect(entitled, 'Options: app.codeName', `${reason} after an uninstall of another app`)
  },

  /** "The app token must be one that was issued for the business": a record of another one proves nothing. */
  async anothersRecord({ time, open, sold, expect, platform, now, deliver, explain }: Stage) {
    const app = await open()
    await sold(app, 'stays')
    now.fault = ({ kind, of }) => (kind === 'read' && of === 'fresh' ? 'mismatch' : undefined)
    await deliver(app, notice(platform.set('fresh', 'buyer', 'purchased'), 'created'))
    for (const forMs of [SECOND, 15 * MINUTE, HOUR]) {
      await time.advance(forMs)
      for (const business of ['buyer', 'somebody-else'])
        expect(
          !(await explain(app, business)).entitled,
          NEVER,
          `the record of another business lets in ${business}`,
        )
    }
  },
} satisfies Record<string, (stage: Stage) => Promise<void>>
