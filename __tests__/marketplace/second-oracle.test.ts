import { describe, expect, it } from '@jest/globals'
import { stillUnequal } from '../support/second-oracle/expected.js'
import { judge } from '../support/second-oracle/judge.js'
import type {
  Answer,
  Entry,
  Observation,
  Observed,
  Reply,
  Rules,
  Topic,
} from '../support/second-oracle/log.js'
import { replyOf } from '../support/second-oracle/witness.js'
import { OUR_ITEM } from '../support/settings.js'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const RETRIES = 'Handlers: success and retries'
const HEALTH = 'Health that is ok means that the app works'
const EXACT = { lateMs: 0, storeMs: 0, skewMs: 0, isForged: false }

/** The judge of the worlds, over logs that are made up: an ordinary one, and one for each promise that it breaks. */
describe('the second oracle', () => {
  it('finds nothing in an ordinary life', () => {
    expect(headings(ordinary())).toEqual([])
  })

  it.each<[promise: string, breaks: (life: Life) => void]>([
    ['A payload never grants access', (life) => life.answers('nobody', yes)],
    ['Reasons', (life) => life.answers('b', { ...yes, reason: 'not_purchased' })],
    ['Reasons', (life) => life.answers('b', { ...yes, reason: 'made_up' })],
    ['The gate', (life) => life.answers('b', { ...yes, explanation: '' })],
    ['The gate', (life) => life.answers('b', { ...yes, accessUntil: '2030-01-01T00:00:00.000Z' })],
    ['The gate', (life) => life.answers('b', { entitled: false, isRejected: true })],
    ['one subscription that gives access is enough', (life) => life.answers('b', no('not_read_yet', false))],
    ['Several items', (life) => life.answers('b', { ...yes, items: ['item', 'another'] })],
    ['The guard', (life) => life.gate({ entitled: false, known: false, status: 503 })],
    ['The guard', (life) => life.gate({ entitled: false, known: true, status: 500 })],
    ['Caches', (life) => life.gate({ entitled: false, known: true, status: 402, cacheControl: 'public' })],
    ['Everything is bounded', (life) => life.asks('b')],
    [
      'When the platform answers, the database becomes equal to it',
      (life) => {
        life.reads('s', record('suspended', 2))
        life.advance(30 * SECOND)
        life.answers('b', yes)
      },
    ],
    [
      'While the platform is down, the last answer stands',
      (life) => {
        life.advance(73 * HOUR)
        life.answers('b', yes)
      },
    ],
    [
      'A subscription that the platform no longer shows ends',
      (life) => {
        life.reads('s', { is: 'nothing' })
        life.answers('b', no('missing'))
      },
    ],
    [
      'A subscription that the platform no longer shows ends',
      (life) => {
        life.delivers(install('uninstalled'))
        for (let i = 0; i < 40; i++) {
          life.token({ is: 'refused', status: 403 })
          life.advance(10 * MINUTE)
        }
        life.answers('b', yes)
      },
    ],
    [
      'An outage is not the end of many',
      (life) => {
        life.sells('other', 'b2')
        life.advance(HOUR)
        for (let i = 0; i < 4; i++) {
          life.reads('s', { is: 'nothing' })
          life.advance(MINUTE)
        }
        life.answers('b', no('missing'))
      },
    ],
    [
      'Reasons',
      (life) => {
        life.delivers(notice('new', 'b-new', 'created'))
        life.advance(30 * SECOND)
        life.answers('b-new', no('unknown_business'))
      },
    ],
    [
      'The gate: after a delivery they wait',
      (life) => {
        life.delivers(notice('new', 'b-new', 'created'))
        life.answers('b-new', no('not_read_yet', false))
      },
    ],
    [
      'The receiver rule',
      (life) => {
        life.delivers(notice('new', 'b-new', 'created'))
        life.advance(MINUTE)
      },
    ],
    [
      'A read that lags behind its event is repeated',
      (life) => {
        life.note({ kind: 'truth', uid: 's', business: 'b', item: 'item', state: 'suspended', updatedAt: 2 })
        life.delivers(notice('s', 'b'))
        life.reads('s', record('purchased', 1))
        life.advance(10 * MINUTE)
      },
    ],
    ['Options: freshness.reconcileEveryMs', (life) => life.advance(60 * HOUR)],
    [
      'Options: freshness.reconcileEveryMs',
      (life) => {
        life.advance(100 * HOUR)
        life.reads('s', record('purchased', 1))
        life.advance(5 * HOUR)
        life.reads('s', record('purchased', 1))
      },
    ],
    [
      'Options: reads.concurrency',
      (life) => {
        for (let i = 0; i < 5; i++) life.calls('read', { uid: `s${i}` })
      },
    ],
    [
      'Options: reads.concurrency',
      (life) => {
        for (let i = 0; i < 2; i++) life.calls('read', { uid: 's' })
      },
    ],
    [
      'The document is silent on: rate limits',
      (life) => {
        life.reads('s', { is: 'throttled', afterMs: 60 * SECOND })
        life.advance(20 * SECOND)
        life.reads('s', record('purchased', 1))
      },
    ],
    [
      'The document is silent on: rate limits',
      (life) => {
        const call = life.calls('token', { business: 'b2' })
        life.reads('s', { is: 'throttled', afterMs: 60 * SECOND })
        life.advance(10)
        life.note({ kind: 'answered call', call, reply: { is: 'token', token: 'token2' } })
        life.reads('s2', record('purchased', 1, 'b2'), 'token2')
      },
    ],
    [
      'A payload never grants access',
      (life) => {
        for (let i = 0; i < 9; i++) life.reads('s', record('purchased', 1))
      },
    ],
    [
      'A payload never grants access',
      (life) => {
        // Those that follow each other closely cause one read in five seconds.
        for (let i = 0; i < 300; i++) {
          life.delivers(notice('s', 'b'))
          if (i % 10 === 0) life.reads('s', record('purchased', 1))
          life.advance(200)
        }
      },
    ],
    [
      'lifetime and scope of tokens',
      (life) => {
        life.token({ is: 'token', token: 'next' })
        life.advance(MINUTE)
        life.token({ is: 'token', token: 'another' })
      },
    ],
    [
      'lifetime and scope of tokens',
      (life) => {
        life.reads('s', { is: 'refused', status: 401 }, 'ended')
        life.advance(10 * SECOND)
        life.reads('s', record('purchased', 1), 'ended')
      },
    ],
    [
      'never two at once',
      (life) => {
        life.begins('change', change('c1', 'purchased', 'suspended'))
        life.advance(SECOND)
        life.begins('change', change('c2', 'suspended', 'purchased'))
      },
    ],
    ['in order', (life) => life.handles('change', change('c1', 'suspended', 'purchased'))],
    [
      'Handlers: success and retries',
      (life) => {
        life.handles('event', event('again'))
        life.handles('event', event('again'), 2)
      },
    ],
    [
      'Handlers: success and retries',
      (life) => {
        life.fails('event', event('e2'), 1)
        life.handles('event', event('e2'), 2)
      },
    ],
    ['Handlers: success and retries', (life) => life.handles('event', event('e3'), 14)],
    [
      'Methods: onHandlerError',
      (life) => {
        life.fails('event', event('e4'), 1)
        life.advance(MINUTE)
      },
    ],
    [
      'Handlers: time',
      (life) => {
        life.begins('event', event('e5'))
        life.advance(MINUTE)
      },
    ],
    [
      'Options: handlers.concurrency',
      (life) => {
        for (let i = 0; i < 9; i++) life.begins('event', { ...event(`e${i}`), uid: `u${i}` })
      },
    ],
    [
      'An older record never replaces a newer one',
      (life) => life.handles('change', { ...change('c1', 'purchased', 'suspended'), updatedAt: 0 }),
    ],
    ['Changes', (life) => life.handles('change', { ...change('c1', 'purchased', null), gone: null })],
    [
      'Changes',
      (life) => life.handles('change', { ...change('c1', 'purchased', 'purchased'), entitled: false }),
    ],
    [
      'Changes: cause',
      (life) => life.handles('change', { ...change('c1', 'purchased', 'purchased'), cause: 'request' }),
    ],
    [
      'Every observed change reaches every handler at least once',
      (life) => {
        life.reads('s', record('suspended', 2))
        life.advance(2 * HOUR)
      },
    ],
    [
      'Every observed change reaches every handler at least once',
      (life) => {
        life.handles('change', change('c1', 'purchased', 'purchased'))
        life.handles('change', change('c2', 'purchased', 'purchased'))
      },
    ],
    [
      'Acknowledged means on disk',
      (life) => {
        life.delivers(notice('s', 'b', 'created'))
        life.reads('s', record('purchased', 1))
        life.advance(2 * HOUR)
      },
    ],
    ['Acknowledged means on disk', (life) => life.delivers(notice('s', 'b'), 503)],
    ['Options: durations that are no option', (life) => life.delivers(notice('s', 'b'), 0)],
    [
      'Handlers are called when access begins or ends',
      (life) => {
        life.reads('s', record('suspended', 2))
        life.advance(MINUTE)
      },
    ],
    [
      'Handlers are called when access begins or ends',
      (life) => life.handles('entitlement', entitlement('n2', [], ['item'])),
    ],
    [
      'Handlers are called when access begins or ends',
      (life) => life.handles('entitlement', entitlement('n2', ['item'], ['another'])),
    ],
    [
      'An erasure leaves no uid',
      (life) => life.note({ kind: 'erased', business: 'b', uids: ['s'], left: ['a row'] }),
    ],
    [
      'Closing lets work finish',
      (life) => {
        life.note({ kind: 'closing', process: 'p' })
        life.advance(MINUTE)
      },
    ],
    [
      'Closing lets work finish',
      (life) => {
        life.note({ kind: 'closing', process: 'p' })
        life.note({ kind: 'closed', process: 'p' })
        life.advance(SECOND)
        life.reads('s', record('purchased', 1))
      },
    ],
    [
      'Health that is ok means that the app works',
      (life) => {
        life.note({ kind: 'handler error', process: 'p', id: 'e1', retryInMs: null })
        life.advance(HOUR)
        life.health('ok')
      },
    ],
    [
      'Health that is ok means that the app works',
      (life) => {
        for (let i = 0; i < 10; i++) {
          life.reads(i % 2 ? 's' : 's2', { is: 'failed' }, i % 2 ? 'token' : 'token2')
          life.advance(10 * SECOND)
        }
        life.health('ok')
      },
    ],
    [
      'Health that is ok means that the app works',
      (life) => {
        for (let i = 0; i < 9; i++) life.delivers(notice('s', 'b'), 503)
        life.health('degraded', 'shapes_refused')
      },
    ],
    ['Health that is ok means that the app works', (life) => life.health('degraded', 'reads_failing')],
    ['Health that is ok means that the app works', (life) => life.health('ok', 'reads_failing')],
  ])('notices a log that breaks "%s"', (promise, breaks) => {
    const life = ordinary()
    life.advance(20 * MINUTE)
    breaks(life)
    expect(headings(life).filter((heading) => heading.includes(promise))).not.toEqual([])
  })

  it('knows that what is replayed may follow later entries', () => {
    const life = ordinary()
    life.reads('s', record('suspended', 2))
    life.handles('change', { ...change('c2', 'purchased', 'suspended'), updatedAt: 2, entitled: false })
    life.handles('entitlement', { ...entitlement('n2', [], ['item']), reason: 'not_purchased' })
    life.advance(MINUTE)
    life.note({ kind: 'requested', process: 'p', what: 'replay', business: '', uid: '' })
    life.advance(SECOND)
    life.handles('change', { ...change('dead', null, 'purchased'), entitled: false })
    life.advance(HOUR)
    life.reads('s', record('purchased', 3))
    life.handles('change', { ...change('c3', 'suspended', 'purchased'), updatedAt: 3 })
    life.handles('entitlement', entitlement('n3', ['item'], []))
    life.advance(MINUTE)
    expect(headings(life)).toEqual([])
  })

  it.each([
    ['once', [13], [], 14, []],
    ['once, and failed as often as it may', [13], [], 15, [RETRIES]],
    ['twice', [12, 13], [], 15, []],
    ['once, and was repeated with its number', [13], [13], 14, [RETRIES]],
    ['never', [], [], 14, [RETRIES]],
  ])('knows how often an entry is tried whose try was cut off %s', (_, cutOff, failed, last, found) => {
    const life = ordinary()
    for (const attempt of cutOff) {
      life.begins('event', event('e2'), attempt)
      life.note({ kind: 'trouble', process: 'p', forMs: MINUTE })
      life.advance(2 * MINUTE)
    }
    for (const attempt of failed) {
      life.fails('event', event('e2'), attempt)
      life.note({ kind: 'handler error', process: 'p', id: 'e2', retryInMs: 5 * SECOND })
      life.advance(6 * SECOND)
    }
    life.handles('event', event('e2'), last)
    expect(headings(life)).toEqual(found)
  })

  it.each([
    ['once, and had a fault', 1, 14, []],
    ['once, and had none', 0, 14, [RETRIES]],
    ['once with a fault, and is tried once more', 1, 15, [RETRIES]],
    ['twice, and had two faults', 2, 15, []],
  ])(
    'knows how often an entry is tried that another process took %s before it called a handler',
    (_, faults, last, found) => {
      const life = ordinary()
      life.note({ kind: 'process began', process: 'q', rules: RULES })
      life.note({ kind: 'registered', process: 'q', topic: 'event' })
      life.fails('event', event('e2'), 12)
      life.note({ kind: 'handler error', process: 'p', id: 'e2', retryInMs: 5 * SECOND })
      life.advance(6 * SECOND)
      for (let i = 0; i < faults; i++) {
        life.note({ kind: 'trouble', process: 'q', forMs: MINUTE })
        life.advance(2 * MINUTE)
      }
      life.handles('event', event('e2'), last)
      expect(headings(life)).toEqual(found)
    },
  )

  it.each([
    ['had a fault meanwhile', MINUTE, 0, []],
    ['had a fault before', 10 * SECOND, MINUTE, [RETRIES]],
    ['had no fault', 0, 0, [RETRIES]],
  ])(
    'knows whether a handler that has returned may be called again: another process %s',
    (_, forMs, agoMs, found) => {
      const life = ordinary()
      life.note({ kind: 'process began', process: 'q', rules: RULES })
      life.note({ kind: 'registered', process: 'q', topic: 'event' })
      if (forMs > 0) life.note({ kind: 'trouble', process: 'q', forMs })
      life.advance(agoMs)
      life.handles('event', event('e2'))
      life.advance(6 * SECOND)
      life.handles('event', event('e2'), 2)
      expect(headings(life)).toEqual(found)
    },
  )

  it('knows that a second subscription of the same item makes no call', () => {
    const life = ordinary()
    life.delivers(notice('s2', 'b', 'created'))
    life.reads('s2', record('purchased', 1))
    life.handles('event', event('e2', notice('s2', 'b', 'created').data))
    life.handles('change', { ...change('c1', null, 'purchased'), uid: 's2' })
    life.advance(MINUTE)
    expect(headings(life)).toEqual([])
  })

  it.each([
    ['other items', ['misspelt'], []],
    ['the same items', ['item', 'another'], ['Handlers are called when access begins or ends']],
  ])('knows what a process with %s may just have stored', (_, items, found) => {
    const life = ordinary()
    life.note({ kind: 'process began', process: 'q', rules: { ...RULES, items } })
    const read = { of: 'read', business: 'b', uid: 's', token: 'token' } as const
    life.note({ kind: 'called', process: 'q', call: 1_000, ...read })
    life.note({ kind: 'answered call', call: 1_000, reply: record('purchased', 1) })
    life.handles('entitlement', entitlement('n2', [], ['item']))
    expect(headings(life)).toEqual(found)
  })

  it('knows that each event which comes alone may cost a read', () => {
    const life = ordinary()
    life.advance(MINUTE)
    for (let i = 0; i < 30; i++) {
      life.delivers(notice('s', 'b'))
      life.reads('s', record('purchased', 1))
      life.advance(1_900)
    }
    expect(headings(life)).toEqual([])
  })

  it('knows that a process which wakes up goes on with a read that another one has taken over', () => {
    const life = ordinary()
    life.note({ kind: 'process began', process: 'q', rules: RULES })
    life.advance(MINUTE)
    life.note({ kind: 'trouble', process: 'p', forMs: 10 * SECOND })
    life.advance(10 * SECOND)
    const read = { of: 'read', business: 'b', uid: 's', token: 'token' } as const
    life.note({ kind: 'called', process: 'q', call: 1_000, ...read })
    life.reads('s', { is: 'failed' })
    life.advance(10)
    life.note({ kind: 'answered call', call: 1_000, reply: record('purchased', 1) })
    expect(headings(life)).toEqual([])
  })

  it('knows that a read which shows an older record confirms nothing', () => {
    const life = ordinary()
    for (const updatedAt of [0, -1]) {
      life.advance(26 * HOUR)
      life.reads('s', record('suspended', updatedAt))
    }
    life.advance(21 * HOUR)
    life.answers('b', no('stale', false))
    expect(headings(life)).toEqual([])
  })

  it.each([
    ['whose ends were announced, while others are served', true, true, []],
    ['whose ends were announced, while no other is served', true, false, [HEALTH]],
    ['whose ends nothing announced', false, true, [HEALTH]],
  ])('knows what refused reads mean for health: those %s', (_what, isAnnounced, areServed, found) => {
    const life = ordinary()
    const three = [1, 2, 3].map((i) => ({ uid: `old-${i}`, business: `b-${i}` }))
    for (const { uid, business } of three) life.sells(uid, business)
    life.advance(3 * HOUR)
    for (const { uid, business } of three) {
      if (isAnnounced) life.delivers(notice(uid, business))
      life.refuses(uid, business)
    }
    life.advance(MINUTE)
    if (areServed) {
      life.reads('s', record('purchased', 1))
      // The end of a subscription is not that of another one of its business.
      for (const { business } of three) life.sells(`new-${business}`, business)
    }
    for (let i = 0; i < 12; i++) {
      life.advance(15 * MINUTE)
      for (const { uid, business } of three) life.refuses(uid, business)
    }
    life.health('ok')
    expect(headings(life).filter((heading) => heading === HEALTH)).toEqual(found)
  })

  it.each([
    ['another subscription of the business', true, []],
    ['none of its subscriptions', false, ['A subscription that the platform no longer shows ends']],
  ])('knows the reason of an answer that is that of %s', (_what, hasOther, found) => {
    const life = ordinary()
    if (hasOther) {
      life.sells('old', 'b')
      life.delivers(install('uninstalled'))
      for (let refusals = 0; refusals < 2; refusals++) {
        life.advance(2 * MINUTE)
        life.refuses('old', 'b')
      }
    }
    life.reads('s', record('purchased', 1))
    for (let reads = 0; reads < 4; reads++) {
      life.advance(MINUTE)
      life.reads('s', { is: 'nothing' })
    }
    life.answers('b', no('revoked'))
    expect(headings(life).filter((heading) => heading.startsWith('A subscription'))).toEqual(found)
  })

  it.each([
    ['before the last read that showed it', true, []],
    ['after it', false, ['A subscription that the platform no longer shows ends']],
  ])('knows whether an uninstall is sure evidence that came %s', (_what, isBefore, found) => {
    const life = ordinary()
    if (isBefore) life.delivers(install('uninstalled'))
    life.advance(MINUTE)
    life.reads('s', record('purchased', 1))
    life.advance(SECOND)
    life.delivers(isBefore ? notice('s', 'b') : install('uninstalled'))
    for (let refusals = 0; refusals < 4; refusals++) {
      life.advance(2 * MINUTE)
      life.refuses('s', 'b')
    }
    life.answers('b', yes)
    expect(headings(life).filter((heading) => heading.startsWith('A subscription'))).toEqual(found)
  })

  it.each([
    ['before the end of one is believed', true, ['An outage is not the end of many']],
    ['after it', false, []],
  ])('knows that others hold an end back which fail %s', (_what, isBefore, found) => {
    const life = ordinary()
    const others = [1, 2, 3].map((i) => ({ uid: `other-${i}`, business: `b-${i}` }))
    for (const { uid, business } of [...others, { uid: 'served', business: 'b-4' }]) life.sells(uid, business)
    life.advance(3 * HOUR)
    life.delivers(install('uninstalled'))
    const fail = () => {
      for (const { uid, business } of others) life.refuses(uid, business)
    }
    if (isBefore) fail()
    for (let refusals = 0; refusals < 2; refusals++) {
      life.refuses('s', 'b')
      life.sells('served', 'b-4')
      life.advance(2 * MINUTE)
    }
    life.refuses('s', 'b')
    if (!isBefore) fail()
    life.advance(MINUTE)
    life.answers('b', no('revoked'))
    expect(headings(life).filter((heading) => heading.startsWith('An outage'))).toEqual(found)
  })

  it.each([
    ['again after a refusal', true, []],
    ['as always', false, ['Options: freshness.reconcileEveryMs']],
  ])('knows that a read is repeated only if it showed a subscription %s', (_what, isRefused, found) => {
    const life = ordinary()
    for (let days = 0; days < 5; days++) {
      life.advance(20 * HOUR)
      if (isRefused && days === 3) life.refuses('s', 'b')
      else life.reads('s', record('purchased', 1))
    }
    life.advance(10 * MINUTE)
    life.reads('s', record('purchased', 1))
    expect(headings(life)).toEqual(found)
  })

  it.each([
    ['frozen', []],
    ['steady', ['The gate: one subscription that gives access is enough']],
  ])('knows what a read confirms whose process was %s', (was, found) => {
    const life = ordinary()
    life.advance(73 * HOUR)
    readsThrough(life, was)
    life.advance(MINUTE)
    life.answers('b', no('stale', false))
    expect(headings(life).filter((heading) => heading.startsWith('The gate'))).toEqual(found)
  })

  it.each([
    ['frozen', []],
    ['steady', ['Handlers are called when access begins or ends']],
  ])('knows whether a read takes back an end, whose process was %s', (was, found) => {
    const life = ordinary()
    life.delivers({ ...notice('s', 'b'), data: { uid: 's', business_uid: 'b', purchase_state: 'suspended' } })
    life.reads('s', { is: 'refused', status: 403 })
    life.advance(MINUTE)
    readsThrough(life, was)
    life.advance(MINUTE)
    life.handles('entitlement', { ...entitlement('n2', [], ['item']), reason: 'ended' })
    expect(headings(life)).toEqual(found)
  })

  it.each([
    [300, 6_000, ['The gate: after a delivery they wait']],
    [1_200, 0, ['The gate: after a delivery they wait']],
    [1_200, 6_000, []],
  ])('knows how long a page waits, after %d ms and with clocks %d ms apart', (ms, skewMs, found) => {
    const life = ordinary()
    life.delivers(notice('new', 'b-new', 'created'))
    life.advance(ms)
    life.answers('b-new', no('not_read_yet', false))
    expect(headings(life, { ...EXACT, skewMs })).toEqual(found)
  })

  it.each([
    ['announced the change', 'before', ['Changes: cause']],
    ['came while the subscription was read at its former business', 'during', []],
  ])('knows the cause of a change that a regular read shows after an event which %s', (_, when, found) => {
    const life = ordinary()
    life.advance(HOUR)
    if (when === 'before') life.delivers(notice('s', 'b2'))
    life.advance(10)
    const call = life.calls('read', { uid: 's' })
    life.advance(10)
    if (when === 'during') life.delivers(notice('s', 'b2'))
    life.advance(10)
    life.note({ kind: 'answered call', call, reply: { is: 'nothing' } })
    life.reads('s', record('purchased', 2, 'b2'))
    const moved = { ...change('c1', null, 'purchased'), business: 'b2', updatedAt: 2, cause: 'reconcile' }
    life.handles('change', moved)
    expect(headings(life)).toEqual(found)
  })

  it.each<[what: string, reply: Reply, status: number, text: string]>([
    ['a rate limit', { is: 'throttled', afterMs: 7_000 }, 429, '{}'],
    ['a refusal', { is: 'refused', status: 403 }, 403, '{"error":"forbidden"}'],
    ['wrong credentials, which concern the app', { is: 'failed' }, 401, '{"error":"invalid_client"}'],
    ['a page', { is: 'failed' }, 200, '<html>'],
    ['an error with status 200', { is: 'refused', status: 200 }, 200, '{"success":false,"errors":[]}'],
    ['an error of the platform itself', { is: 'failed' }, 503, '{"success":false,"errors":[]}'],
    ['an empty list', { is: 'nothing' }, 200, '{"data":{"subscriptions":[]}}'],
  ])('reads %s', (_what, reply, status, text) => {
    const response = { status, headers: { get: () => '7' } }
    expect(replyOf(response, text, { isToken: false, uid: 's' })).toEqual(reply)
  })
})

describe('the last answers of a world', () => {
  const why = 'the answer for b is false, and the platform has true'

  it('must be equal for a subscription whose track has resolved, and not for one whose call has no end', () => {
    const life = createLife()
    life.advance(MINUTE)
    life.note({ kind: 'truth', uid: 's', business: 'b', item: OUR_ITEM, state: 'purchased', updatedAt: 1 })
    life.note({ kind: 'requested', process: 'p', what: 'track', business: 'b', uid: 's' })
    life.answers('b', no('unknown_business'))
    expect(stillUnequal(life.log)).toBeUndefined()
    life.note({ kind: 'tracked', uid: 's' })
    expect(stillUnequal(life.log)).toEqual({ why, isOpen: false })
  })

  it('are open while the wrong one is not definite', () => {
    const life = createLife()
    life.advance(MINUTE)
    life.note({ kind: 'truth', uid: 's', business: 'b', item: OUR_ITEM, state: 'purchased', updatedAt: 1 })
    life.delivers(notice('s', 'b', 'created'))
    life.answers('b', no('stale', false))
    expect(stillUnequal(life.log)).toEqual({ why, isOpen: true })
    life.answers('b', yes)
    expect(stillUnequal(life.log)).toBeUndefined()
  })

  it('are open while only a process that knows nothing was asked', () => {
    const life = createLife()
    life.note({ kind: 'trouble', process: 'p', forMs: MINUTE })
    life.advance(MINUTE)
    life.answers('b', no('unknown_business'))
    const why = 'nobody has asked about b since the last change'
    expect(stillUnequal(life.log)).toEqual({ why, isOpen: true })
    life.advance(MINUTE)
    life.answers('b', no('unknown_business'))
    expect(stillUnequal(life.log)).toBeUndefined()
  })

  it('count from the first second on', () => {
    const life = createLife()
    life.note({ kind: 'truth', uid: 's', business: 'b', item: OUR_ITEM, state: 'purchased', updatedAt: 1 })
    life.delivers(notice('s', 'b', 'created'))
    life.answers('b', no('unknown_business'))
    expect(stillUnequal(life.log)).toEqual({ why, isOpen: false })
  })
})

// ---- made-up logs

type Life = ReturnType<typeof createLife>

const RULES: Rules = {
  ...{ items: ['item', 'another'], maxStaleMs: 72 * HOUR, reconcileEveryMs: 24 * HOUR, waitMs: 2_000 },
  ...{ isWorker: true, hasRule: false, isRight: true, readsAtOnce: 4, handlersAtOnce: 8 },
  ...{ retryDelaysMs: Array(12).fill(5 * SECOND), timeoutMs: 30 * SECOND, closeTimeoutMs: 10 * SECOND },
}
const yes: Answer = { entitled: true, known: true, reason: 'purchased', items: ['item'], explanation: 'so' }
const no = (reason: string, known = true): Answer => ({
  entitled: false,
  known,
  reason,
  items: [],
  explanation: 'so',
})
const record = (state: string, updatedAt: number, business = 'b'): Reply => ({
  ...{ is: 'record', business, item: 'item', state, updatedAt },
})
const notice = (uid: string, business: string, event_type = 'update') => ({
  entity_name: 'purchasable_subscription',
  event_type,
  data: { subscription_uid: uid, business_id: business, purchasable_uid: 'item' },
})
const install = (event_type: string) => ({
  entity_name: 'application',
  event_type,
  data: { business_id: 'b', app_code_name: 'ours' },
})
const NOTHING: Entry = {
  ...{
    id: '',
    business: 'b',
    uid: 's',
    name: '',
    data: '',
    from: null,
    to: null,
    gone: null,
    updatedAt: null,
  },
  ...{ entitled: null, reason: '', cause: '', items: [], previousItems: [] },
}
const change = (id: string, from: string | null, to: string | null): Entry => ({
  ...NOTHING,
  ...{ id, from, to, updatedAt: 1, entitled: true, cause: 'event' },
})
const event = (id: string, data: object = notice('s', 'b', 'created').data): Entry => ({
  ...NOTHING,
  ...{ id, name: 'purchasable_subscription/create', data: JSON.stringify(data) },
})
const entitlement = (id: string, items: string[], previousItems: string[]): Entry => ({
  ...NOTHING,
  ...{ id, uid: '', items, previousItems, entitled: items.length > 0, reason: 'purchased', cause: 'event' },
})

/** A read of `s` that shows it as purchased, and whose process may be frozen meanwhile. */
function readsThrough(life: Life, was: string) {
  const call = life.calls('read', { uid: 's' })
  if (was === 'frozen') {
    life.note({ kind: 'trouble', process: 'p', forMs: MINUTE })
    life.advance(MINUTE)
  }
  life.note({ kind: 'answered call', call, reply: record('purchased', 1) })
}

/** A business buys, the app reads that, calls its handlers, and answers. */
function ordinary() {
  const life = createLife()
  life.note({ kind: 'process began', process: 'p', rules: RULES })
  for (const topic of ['change', 'entitlement', 'event'] as const)
    life.note({ kind: 'registered', process: 'p', topic })
  life.advance(MINUTE)
  life.note({ kind: 'truth', uid: 's', business: 'b', item: 'item', state: 'purchased', updatedAt: 1 })
  life.sells('s', 'b')
  life.handles('event', event('e1'))
  life.handles('change', change('c0', null, 'purchased'))
  life.handles('entitlement', entitlement('n1', ['item'], []))
  life.advance(MINUTE)
  life.answers('b', yes)
  life.health('ok')
  return life
}

function createLife() {
  const log: Observation[] = []
  let at = 0
  let numbers = 0
  const note = (observed: Observed) => void log.push({ at, ...observed })
  const calls = (of: 'token' | 'read', { uid = '', token = 'token', business = 'b' }) => {
    const call = numbers++
    note({ kind: 'called', process: 'p', call, of, business, uid, token })
    return call
  }
  const begins = (topic: Topic, entry: Entry, attempt = 1) => {
    const run = numbers++
    note({ kind: 'handler began', process: 'p', run, handler: `${topic} 0`, topic, entry, attempt })
    return run
  }
  const ask = (business: string, by: 'explain' | 'gate') => {
    const number = numbers++
    note({ kind: 'asked', process: 'p', ask: number, by, business })
    return number
  }

  return {
    log,
    note,
    calls,
    begins,
    advance(ms: number) {
      at += ms
    },
    reads(uid: string, reply: Reply, token = 'token') {
      const business = reply.is === 'record' ? reply.business : token === 'token2' ? 'b2' : 'b'
      const call = calls('read', { uid, token, business })
      note({ kind: 'answered call', call, reply })
    },
    /** A read with a new token of the business, which the platform refuses. */
    refuses(uid: string, business: string) {
      const token = `token ${at} ${uid}`
      note({ kind: 'answered call', call: calls('token', { business }), reply: { is: 'token', token } })
      const call = calls('read', { uid, business, token })
      note({ kind: 'answered call', call, reply: { is: 'refused', status: 403 } })
    },
    token(reply: Reply) {
      note({ kind: 'answered call', call: calls('token', {}), reply })
    },
    delivers(body: object, status = 200) {
      const delivery = numbers++
      note({ kind: 'delivered', process: 'p', delivery, body: JSON.stringify(body), isWhole: true })
      if (status > 0) note({ kind: 'replied', delivery, status })
      else this.advance(MINUTE)
    },
    sells(uid: string, business: string) {
      this.delivers(notice(uid, business, 'created'))
      this.reads(uid, record('purchased', 1, business))
    },
    handles(topic: Topic, entry: Entry, attempt = 1) {
      note({ kind: 'handler ended', run: begins(topic, entry, attempt), isDone: true })
    },
    fails(topic: Topic, entry: Entry, attempt: number) {
      note({ kind: 'handler ended', run: begins(topic, entry, attempt), isDone: false })
    },
    asks: (business: string) => {
      ask(business, 'explain')
      at += HOUR
    },
    answers: (business: string, answer: Answer) =>
      note({ kind: 'answered', ask: ask(business, 'explain'), answer }),
    gate: (answer: Answer) =>
      note({ kind: 'answered', ask: ask('b', 'gate'), answer: { cacheControl: 'no-store', ...answer } }),
    health: (status: string, ...problems: string[]) =>
      note({ kind: 'health', process: 'p', status, problems }),
  }
}

function headings(life: Life, exactness = EXACT): string[] {
  life.note({ kind: 'end' })
  return judge(life.log, exactness).map(({ heading }) => heading)
}
