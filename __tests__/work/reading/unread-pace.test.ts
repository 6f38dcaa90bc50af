import { describe, expect, it } from '@jest/globals'
import { HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import { createUnreadPace } from '../../../lib/work/reading/unread-pace.js'
import { createReads } from '../../support/scenes/refresher.js'

const PAUSE_MS = 5 * SECOND

describe('the pace of what was never read', () => {
  it('has no limit before the platform has one, at any rate', () => {
    const { reads, pass, room } = scene()
    for (let second = 0; second < 10; second++) {
      reads(1_000, 10)
      pass(SECOND)
    }
    expect(room()).toBe(Number.POSITIVE_INFINITY)
  })

  it('is half of the rate before the limit, evenly, with a tenth of a second in advance', () => {
    const { reads, pass, pace, limited, room, taken } = scene()
    // The rate is that of the last second.
    reads(50, 50)
    pass(1)
    reads(30, 10)
    pass(SECOND - 1)
    limited()
    pass(PAUSE_MS)
    expect(room()).toBe(3)
    pace.leased(3)
    expect([room(), pace.roomInMs()]).toEqual([0, 50])
    pass(49)
    expect([room(), pace.roomInMs()]).toEqual([0, 1])
    pass(1)
    expect([room(), pace.roomInMs()]).toEqual([1, 0])
    // 20 a second.
    expect(taken(10 * SECOND)).toBe(200)
  })

  it('is halved by each further limit, but not by several answers of one, and never below one a minute', () => {
    const { reads, pass, limited, taken } = scene()
    const paces = [20, 5, 2.5, 1.25, 0.625].map((expected) => {
      reads(0, expected === 20 ? 40 : 4)
      for (let answer = 0; answer < 4; answer++) limited()
      pass(PAUSE_MS)
      taken(SECOND)
      return [expected, taken(MINUTE) / 60]
    })
    for (const [expected, pace] of paces as [number, number][]) expect(pace).toBeCloseTo(expected, 1)
    for (let limit = 0; limit < 20; limit++) {
      reads(0, 2)
      limited()
      pass(PAUSE_MS)
    }
    taken(MINUTE)
    expect(taken(4 * MINUTE)).toBe(4)
  })

  it('is judged by the reads until the limited one began, however long the answer took', () => {
    const { reads, pass, limited, taken } = scene()
    reads(0, 40)
    pass(4 * SECOND)
    reads(0, 100)
    limited(4 * SECOND)
    pass(PAUSE_MS)
    taken(SECOND)
    expect(taken(10 * SECOND)).toBe(200)
  })

  it('is not halved by an answer that comes after the pause, to a read that began before it', () => {
    const { reads, pass, limited, taken } = scene()
    reads(0, 40)
    limited()
    pass(PAUSE_MS)
    reads(0, 10)
    pass(10)
    limited(PAUSE_MS + 10)
    taken(SECOND)
    expect(taken(10 * SECOND)).toBe(200)
    // The others had begun when it came, and still count.
    limited(11 * SECOND + 10)
    pass(PAUSE_MS)
    taken(SECOND)
    expect(taken(10 * SECOND)).toBe(50)
  })

  it('is 5 a second after a limit that came at a low rate, and stays so while the first read after each pause is limited', () => {
    const { reads, pass, limited, taken } = scene()
    reads(0, 2)
    for (let limit = 0; limit < 20; limit++) {
      limited()
      pass(PAUSE_MS)
      reads(0, 1)
    }
    taken(SECOND)
    expect(taken(10 * SECOND)).toBe(50)
  })

  it('ends an hour after the pause, and begins anew with the next limit', () => {
    const { reads, pass, pace, limited, room, taken } = scene()
    reads(0, 8)
    limited()
    pass(PAUSE_MS + HOUR - 1)
    expect(room()).toBeLessThan(10)
    pace.leased(room())
    expect(room()).toBe(0)
    pass(1)
    expect(room()).toBe(Number.POSITIVE_INFINITY)
    pace.leased(1_000)
    reads(0, 80)
    limited()
    pass(PAUSE_MS)
    taken(SECOND)
    expect(taken(SECOND)).toBe(40)
  })

  it.each([
    ['less than a quarter of the reads before', 31, 10, false],
    ['a quarter of the reads before', 30, 10, true],
    ['a single read', 0, 1, false],
    ['two reads', 0, 2, true],
  ])('begins with a limit only if they may be its cause: %s', (_what, known, unread, begins) => {
    const { reads, limited, room } = scene()
    reads(known, unread)
    limited()
    expect(room() < Number.POSITIVE_INFINITY).toBe(begins)
  })

  it.each([
    [750, true],
    [1_000, false],
  ])(
    'is judged by the last thousand reads: of those that were read before, %i came last',
    (known, begins) => {
      const { reads, limited, room } = scene()
      reads(0, known === 750 ? 250 : 1_000)
      reads(known, 0)
      limited()
      expect(room() < Number.POSITIVE_INFINITY).toBe(begins)
    },
  )

  it('begins with a limit of reads that come less than once a second', () => {
    const { reads, pass, limited, room } = scene()
    reads(0, 1)
    pass(MINUTE - 1)
    reads(0, 1)
    limited()
    expect(room()).toBeLessThan(Number.POSITIVE_INFINITY)
  })

  describe.each([20, 30, 59, 70])(
    'beside endless made-up subscriptions, if the platform allows %i reads a minute',
    (perMinute) => {
      it.each([
        ['in each minute, and pauses until the next one', windowOf(perMinute)],
        ['at an even rate, after as many at once, and pauses for five seconds', bucketOf(perMinute)],
      ])('%s: causes a few pauses an hour', (_how, platform) => {
        const { pauses, reads } = anHour(platform)
        expect(pauses).toBeLessThanOrEqual(6)
        // It is not slower than the platform allows by more than half, but for the pauses.
        expect(reads).toBeGreaterThan(0.45 * 60 * perMinute)
      })
    },
  )
})

describe('the claims of reads after a limit', () => {
  it('lease what was never read at its pace, and at once all that was read before', async () => {
    const { refresher, clock, answer, begun, due } = createReads(4, { isFlooded: true })
    refresher.start()
    await clock.rest()
    let answered = 0
    /** How many reads begin in this time, each of which takes up to 10 ms. */
    async function begunIn(ms: number) {
      const before = begun.length
      for (let passed = 0; passed < ms; passed += 10) {
        for (; answered < begun.length; answered++) answer(begun[answered] as string)
        await clock.advance(10)
      }
      return begun.length - before
    }
    const allowed = await begunIn(100)
    while (answered === begun.length) await clock.advance(1)
    answer(begun.at(-1) as string, { kind: 'throttled', retryAfterMs: PAUSE_MS })
    expect(await begunIn(PAUSE_MS)).toBe(0)
    await begunIn(2 * SECOND)
    const perSecond = (await begunIn(MINUTE)) / 60
    expect(perSecond).toBeGreaterThan(0.8 * (allowed / 2))
    expect(perSecond).toBeLessThan(1.2 * (allowed / 2))
    due('known')
    refresher.requested()
    await clock.advance(20)
    expect(begun).toContain('known')
  })

  it('follow a limit that the platform answers after 1.5 s: 20 reads in five seconds', async () => {
    const { limits, readFor } = lateAnswers(20, (at, before) => {
      return before.filter((each) => each > at - 5 * SECOND).length >= 20
    })
    await readFor(MINUTE)
    // The second one halves the pace to 2.5 a second.
    expect(limits).toHaveLength(2)
  })

  it('lease half of the reads that began at once, and were answered after 1.5 s', async () => {
    const { limits, readFor } = lateAnswers(80, (_at, before) => before.length >= 30 && limits.length === 0)
    await readFor(2 * SECOND)
    expect(limits).toHaveLength(1)
    await readFor(PAUSE_MS)
    expect(await readFor(10 * SECOND)).toBeGreaterThan(100)
  })
})

/**
 * Reads without end of what was never read, each answered after 1.5 s, the limited ones with a pause. `isLimited`: whether
 * the platform limits a read that begins at this time, after those that began at the others.
 */
function lateAnswers(concurrency: number, isLimited: (at: number, before: readonly number[]) => boolean) {
  const { refresher, clock, answer, begun } = createReads(concurrency, { isFlooded: true })
  const begunAt: number[] = []
  /** The times of the answers that are limits, apart from each other by a pause at least. */
  const limits: number[] = []
  refresher.start()
  return {
    limits,
    /** Returns how many reads begin in this time. */
    async readFor(ms: number) {
      const before = begun.length
      for (const end = clock.passed() + ms; clock.passed() < end; await clock.advance(10)) {
        const now = clock.passed()
        while (begunAt.length < begun.length) begunAt.push(now)
        for (const [i, at] of begunAt.entries()) {
          if (at !== now - 1.5 * SECOND) continue
          const limited = isLimited(at, begunAt.slice(0, i))
          answer(begun[i] as string, limited ? { kind: 'throttled', retryAfterMs: PAUSE_MS } : undefined)
          if (limited && now - (limits.at(-1) ?? -PAUSE_MS) >= PAUSE_MS) limits.push(now)
        }
      }
      return begun.length - before
    },
  }
}

/** A pace and its time. */
function scene() {
  let passed = 0
  const pace = createUnreadPace({ monotonic: () => passed })
  const pass = (ms: number) => {
    passed += ms
  }
  return {
    pace,
    pass,
    /** The platform limits a read that began so long ago. */
    limited: (agoMs = 0) => pace.limited(PAUSE_MS, passed - agoMs),
    room: pace.room,
    reads(known: number, unread: number) {
      for (let i = 0; i < known + unread; i++) pace.began(i >= known)
    },
    /** How many are leased in this time, each as soon as there is room. */
    taken(forMs: number) {
      let count = 0
      for (const end = passed + forMs; passed < end; pass(1)) {
        const room = pace.room()
        pace.leased(room)
        count += room
      }
      return count
    },
  }
}

/** Returns for how long the platform pauses after a read at this time; undefined: it answers the read. */
type Platform = () => (at: number) => number | undefined

function windowOf(perMinute: number): Platform {
  return () => {
    let [minute, count] = [0, 0]
    return (at) => {
      if (Math.floor(at / MINUTE) !== minute) [minute, count] = [Math.floor(at / MINUTE), 0]
      return ++count > perMinute ? (minute + 1) * MINUTE - at : undefined
    }
  }
}

function bucketOf(perMinute: number): Platform {
  return () => {
    let [left, since] = [perMinute, 0]
    return (at) => {
      left = Math.min(perMinute, left + ((at - since) / MINUTE) * perMinute)
      since = at
      if (left < 1) return PAUSE_MS
      left--
      return undefined
    }
  }
}

/** An hour in which what was never read is always due, ten a second without a pace, and a customer's read once in 20 s. */
function anHour(platform: Platform) {
  const { pace, pass } = scene()
  const pauseAfter = platform()
  let [pauses, reads, pausedUntil] = [0, 0, 0]
  for (let at = 0; at < HOUR; at += 100, pass(100)) {
    const isCustomers = at % (20 * SECOND) === 0
    for (const isUnread of isCustomers ? [false, true] : [true]) {
      if (at < pausedUntil || (isUnread && pace.room() < 1)) continue
      if (isUnread) pace.leased(1)
      pace.began(isUnread)
      const pauseMs = pauseAfter(at)
      if (pauseMs === undefined) reads++
      else {
        pauses++
        pausedUntil = at + pauseMs
        pace.limited(pauseMs, at)
      }
    }
  }
  return { pauses, reads }
}
