import { describe, expect, it } from '@jest/globals'
import { type Clock, systemClock } from '../../lib/base/clock.js'
import { createAcceptance } from '../../lib/store/accepting/acceptance.js'
import type { Allowance } from '../../lib/store/accepting/allowance.js'
import type { Size } from '../../lib/store/accepting/sizes.js'
import type { NewEvent } from '../../lib/store/port/store.js'
import { sql } from '../../lib/store/sql/sql.js'
import { createVirtualClock } from '../support/machine/virtual-clock.js'
import { gate } from '../support/until.js'

const MIB = 1024 * 1024
const SMALL_ALLOWANCE: Allowance = {
  event: { rows: 10, bytes: MIB },
  known: { rows: 10, bytes: MIB },
  unrecognised: { rows: 10, bytes: MIB },
  subscriptions: 10,
}

describe('C26 the shared commit of deliveries', () => {
  it('contains no more bytes than its bound, except for a single item that is larger', async () => {
    const { submit, batches } = committer()
    await Promise.all([300, 300, 300, 2_000, 10].map((kib) => submit({ kib })))
    expect(batches).toEqual([[10, 300, 300, 300], [2_000]])
  })

  it('contains no more rows than its bound', async () => {
    const { submit, batches } = committer()
    await Promise.all(Array.from({ length: 700 }, () => submit({ kib: 0 })))
    expect(batches.map(({ length }) => length)).toEqual([150, 150, 150, 150, 100])
  })

  it('refuses items at once when more than 64 MiB wait, and accepts them when there is room again', async () => {
    const hold = gate()
    const { submit, batches } = committer({ before: () => hold.opened })
    const first = submit({ kib: 1 })
    await new Promise((resolve) => setImmediate(resolve))
    const waiting = Array.from({ length: 64 }, () => submit({ kib: 1_024 }))
    await expect(submit({ kib: 17 })).rejects.toMatchObject({ code: 'delivery_turned_away' })
    hold.open()
    await Promise.all([first, ...waiting])
    await submit({ kib: 1 })
    expect(batches).toHaveLength(66)
  })

  it('splits a batch that fails because of one item, and commits the others', async () => {
    const { submit, batches } = committer({
      before: async (batch) => {
        if (batch.includes(7)) throw new Error('too large')
      },
    })
    const ended = await Promise.allSettled([1, 2, 3, 7, 5, 6].map((kib) => submit({ kib })))
    expect(ended.map(({ status }) => status === 'fulfilled')).toEqual([true, true, true, false, true, true])
    expect(batches.flat().sort()).toEqual([1, 2, 3, 5, 6])
  })

  it('does not split a batch that fails for another reason: each caller gets that error', async () => {
    let tries = 0
    const { submit } = committer({
      isDataError: false,
      async before() {
        tries++
        throw new Error('no disk')
      },
    })
    const ended = await Promise.allSettled([1, 2, 3].map((kib) => submit({ kib })))
    expect(ended).toEqual([1, 2, 3].map(() => ({ status: 'rejected', reason: new Error('no disk') })))
    expect(tries).toBe(1)
  })

  it('refuses items beyond its bound of rows, and has room again after each batch', async () => {
    const { submit, batches } = committer({
      maxBatch: { rows: 1, bytes: MIB },
      maxWaiting: { rows: 3, bytes: MIB },
    })
    for (let round = 0; round < 3; round++) {
      const taken = [submit({ kib: 1 }), submit({ kib: 1 }), submit({ kib: 1 })]
      await expect(submit({ kib: 1 })).rejects.toMatchObject({ code: 'delivery_turned_away' })
      await Promise.all(taken)
    }
    expect(batches).toHaveLength(9)
  })

  it('has room for small calls beyond that of arrays, and writes first what was read before', async () => {
    const hold = gate()
    const known: string[] = []
    const { submit, accept, batches } = committer({
      before: () => hold.opened,
      known,
      maxBatch: { rows: 2, bytes: MIB },
      maxWaiting: { rows: 4, bytes: MIB },
    })
    const first = submit({ kib: 1 })
    await new Promise((resolve) => setImmediate(resolve))
    const made = [3, 4, 5, 6].map((kib) => submit({ kib }).catch(() => 'refused'))
    const array = accept({ events: [eventOf(7), eventOf(8)], requests: [] })
    await expect(array).rejects.toMatchObject({ code: 'delivery_turned_away' })
    known.push('9')
    const customer = submit({ kib: 9 })
    hold.open()
    await Promise.all([first, customer])
    expect([await Promise.all(made), batches]).toEqual([
      [[], [], [], 'refused'],
      [[1], [9, 3], [4, 5]],
    ])
    // What was refused waits no longer, so all of the room is free.
    await accept({ events: [1, 2, 3, 4].map(eventOf), requests: [] })
    await Promise.all([submit({ kib: 1 }), accept({ events: [2, 3, 4].map(eventOf), requests: [] })])
  })

  it('writes small calls before larger ones, also while the store cannot tell who is known', async () => {
    for (const known of [[], null]) {
      const hold = gate()
      const { submit, accept, batches } = committer({
        before: () => hold.opened,
        known,
        maxBatch: { rows: 2, bytes: MIB },
      })
      const first = submit({ kib: 1 })
      await new Promise((resolve) => setImmediate(resolve))
      const rest = [accept({ events: [eventOf(2), eventOf(3)], requests: [] }), submit({ kib: 4 })]
      hold.open()
      await Promise.all([first, ...rest])
      expect(batches).toEqual([[1], [4], [2, 3]])
    }
  })

  it('calls the store unavailable while one commit after another fails, although each takes less than a second', async () => {
    const holds = [gate(), gate()]
    let commits = 0
    const { submit, time } = committer({
      isDataError: false,
      async before() {
        await holds[commits++]?.opened
        throw new Error('no connection')
      },
      maxWaiting: { rows: 1, bytes: MIB },
    })
    const failed = [submit({ kib: 1 })]
    await new Promise((resolve) => setImmediate(resolve))
    failed.push(submit({ kib: 1 }))
    await time.advance(900)
    holds[0]?.open()
    await expect(failed[0]).rejects.toThrow('no connection')
    await new Promise((resolve) => setImmediate(resolve))
    failed.push(submit({ kib: 1 }), submit({ kib: 1 }))
    await time.advance(100)
    await expect(submit({ kib: 3 })).rejects.toMatchObject({ code: 'store_unavailable' })
    holds[1]?.open()
    for (const each of failed) await expect(each).rejects.toThrow('no connection')
  })

  it('C395 calls the store unavailable only if a commit takes long while twice as much waits as may', async () => {
    const hold = gate()
    const { submit, time } = committer({ before: () => hold.opened, maxWaiting: { rows: 1, bytes: MIB } })
    const first = submit({ kib: 1 })
    await new Promise((resolve) => setImmediate(resolve))
    const waiting = [submit({ kib: 1 }), submit({ kib: 1 })]
    await time.advance(999)
    await expect(submit({ kib: 3 })).rejects.toMatchObject({ code: 'delivery_turned_away' })
    await time.advance(1)
    await expect(submit({ kib: 3 })).rejects.toMatchObject({ code: 'store_unavailable' })
    await expect(submit({ kib: 100 })).rejects.toMatchObject({ code: 'delivery_turned_away' })
    hold.open()
    await Promise.all([first, ...waiting])
  })

  it('C395 does not blame the store after all that waited for it was refused', async () => {
    const hold = gate()
    const { submit, accept, time } = committer({
      before: () => hold.opened,
      maxBatch: { rows: 1, bytes: MIB },
      maxWaiting: { rows: 2, bytes: MIB },
    })
    const first = submit({ kib: 1 })
    await time.rest()
    const large = accept({ events: [eventOf(2), eventOf(3)], requests: [] })
    await expect(time.until(large)).rejects.toMatchObject({ code: 'delivery_turned_away' })
    hold.open()
    await first
    await time.advance(2_000)
    const later = Array.from({ length: 4 }, () => submit({ kib: 1 }).catch(() => 'refused'))
    await expect(submit({ kib: 1 })).rejects.toMatchObject({ code: 'delivery_turned_away' })
    await Promise.all(later)
  })

  it('C395 writes calls first that name only what was read before, and of these and the others the small ones', async () => {
    const hold = gate()
    const { submit, accept, batches } = committer({
      before: () => hold.opened,
      known: ['1', '2'],
      maxBatch: { rows: 3, bytes: MIB },
    })
    const first = submit({ kib: 1 })
    await new Promise((resolve) => setImmediate(resolve))
    const arrays = [
      [7, 7],
      // One known name does not make the others known.
      [1, 7, 7],
      [2, 2, 2],
    ].map((kibs) => accept({ events: kibs.map(eventOf), requests: [] }))
    const small = [9, 1, 9].map((kib) => submit({ kib }))
    hold.open()
    await Promise.all([first, ...arrays, ...small])
    expect(batches).toEqual([[1], [1], [2, 2, 2], [9, 9], [7, 7], [1, 7, 7]])
  })

  it('C395 looks up all names of a long array', async () => {
    const hold = gate()
    const { submit, accept, batches } = committer({
      before: () => hold.opened,
      known: ['1'],
      maxBatch: { rows: 3_000, bytes: 8 * MIB },
    })
    const first = submit({ kib: 1 })
    await new Promise((resolve) => setImmediate(resolve))
    const ones = Array.from({ length: 2_500 }, () => eventOf(1))
    const made = accept({ events: [...ones.slice(1), eventOf(0)], requests: [] })
    const known = accept({ events: ones, requests: [] })
    hold.open()
    await Promise.all([first, made, known])
    expect(batches.map((batch) => batch.includes(0))).toEqual([false, false, true])
  })

  it('C395 turns away what waits until its sender gives up while others are committed, and stores only the small of it', async () => {
    const { submit, accept, batches, time, turnedAway } = committer({
      before: () => time.sleep(800),
      known: ['1'],
      maxBatch: { rows: 1, bytes: MIB },
    })
    const first = submit({ kib: 1 })
    await time.rest()
    const late = [
      accept({ events: [eventOf(7), eventOf(7)], requests: [] }),
      submit({ kib: 8 }),
      submit({ kib: 9 }),
    ].map((call) => call.catch(({ code }) => code))
    const small = [submit({ kib: 1 }), submit({ kib: 1 })]
    expect(await time.until(Promise.all([...late, first, ...small]))).toEqual([
      ...['delivery_turned_away', 'delivery_turned_away', 'delivery_turned_away'],
      ...[[], [], []],
    ])
    expect(time.passed()).toBe(2_500)
    await time.advance(10_000)
    expect([batches, turnedAway()?.refused]).toEqual([[[1], [1], [1], [8], [9]], 3])
  })

  it('C395 turns away no small call while a commit takes long: then the store is to blame', async () => {
    const { submit, accept, batches, time } = committer({
      before: () => time.sleep(10_000),
      maxBatch: { rows: 2, bytes: MIB },
    })
    const first = submit({ kib: 1 })
    await time.rest()
    const small = submit({ kib: 9 })
    const large = accept({ events: [eventOf(2), eventOf(2)], requests: [] }).catch(({ code }) => code)
    expect(await time.until(large)).toBe('delivery_turned_away')
    await time.until(Promise.all([first, small]))
    expect(batches).toEqual([[1], [9]])
  })

  it('C395 turns nothing away that waits for the store alone, while no more waits than a batch holds', async () => {
    const { submit, accept, batches, time, turnedAway } = committer({ before: () => time.sleep(10_000) })
    const first = submit({ kib: 1 })
    await time.rest()
    const large = accept({ events: [eventOf(2), eventOf(2)], requests: [] })
    await time.until(Promise.all([first, large]))
    expect([batches, turnedAway()]).toEqual([[[1], [2, 2]], null])
  })

  it('C395 turns away no small call while the store does not answer which are known', async () => {
    const hold = gate()
    const { submit, time } = committer({
      lookUp: () => hold.opened,
      maxBatch: { rows: 1, bytes: MIB },
    })
    const small = [submit({ kib: 1 }), submit({ kib: 1 })]
    await time.advance(10_000)
    hold.open()
    expect(await Promise.all(small)).toEqual([[], []])
  })

  it('C395 lets the own requests of the app wait', async () => {
    const { submit, accept, time } = committer({
      before: () => time.sleep(900),
      known: ['1'],
      maxBatch: { rows: 1, bytes: MIB },
    })
    const small = Array.from({ length: 5 }, () => submit({ kib: 1 }).catch(() => 'refused'))
    const request = accept({ events: [], requests: [] })
    expect(await time.until(Promise.all([...small, request]))).toEqual([
      ...[[], [], 'refused', 'refused', 'refused'],
      [],
    ])
  })

  it('C395 counts the time for which a delivery has waited before', async () => {
    const { submit, accept, time } = committer({
      before: () => time.sleep(800),
      maxBatch: { rows: 1, bytes: MIB },
    })
    const first = submit({ kib: 1 })
    await time.rest()
    const large = { events: [eventOf(1), eventOf(1)], requests: [] }
    const late = accept(large, 2_000).catch(({ code }) => code)
    expect([await time.until(late), time.passed()]).toEqual(['delivery_turned_away', 500])
    await time.until(first)
  })

  it('C395 stores no large call that was turned away while it waited for room', async () => {
    const { submit, accept, batches, time } = committer({
      measure: () => time.sleep(1_000).then(() => 0),
      most: { ...SMALL_ALLOWANCE, known: { rows: 10, bytes: MIB } },
      known: ['0'],
    })
    await Promise.all(Array.from({ length: 8 }, () => submit({ kib: 0 })))
    const large = accept({ events: Array.from({ length: 5 }, () => eventOf(0)), requests: [] })
    const small = submit({ kib: 0 })
    const ended = Promise.allSettled([large, small].map((call) => call.catch(({ code }) => code)))
    expect((await time.until(ended)).map((each) => 'value' in each && each.value)).toEqual([
      'delivery_turned_away',
      [],
    ])
    await time.advance(60_000)
    expect(batches.flat()).toHaveLength(9)
  })

  it('C395 bounds what waits for the store to open, each time that it opens', async () => {
    let hold = gate()
    const { submit, batches } = committer({ opening: () => hold.opened, maxWaiting: { rows: 3, bytes: MIB } })
    for (let openings = 0; openings < 2; openings++) {
      const waiting = Array.from({ length: 6 }, () => submit({ kib: 1 }))
      await expect(submit({ kib: 1 })).rejects.toMatchObject({ code: 'delivery_turned_away' })
      hold.open()
      await Promise.all(waiting)
      await submit({ kib: 1 })
      hold = gate()
    }
    expect(batches.flat()).toHaveLength(14)
  })

  it('A60 lets made-up calls that wait for a measurement take no place from what was read before', async () => {
    const hold = gate()
    const { submit, batches } = committer({
      measure: () => hold.opened.then(() => 0),
      most: { ...SMALL_ALLOWANCE, known: { rows: 100, bytes: MIB } },
      maxWaiting: { rows: 2, bytes: MIB },
      known: ['1'],
    })
    for (let row = 0; row < 10; row++) await submit({ kib: 2 })
    const waiting = [3, 4, 5, 6].map((kib) => submit({ kib }))
    // They are looked up.
    await new Promise((resolve) => setImmediate(resolve))
    await expect(submit({ kib: 7 })).rejects.toMatchObject({ code: 'delivery_turned_away' })
    const customer = Array.from({ length: 3 }, () => submit({ kib: 1 }))
    expect(await Promise.all(customer)).toEqual([[], [], []])
    expect(batches.flat().slice(10)).toEqual([1, 1, 1])
    hold.open()
    await Promise.allSettled(waiting)
  })

  it('A60 refuses what finds no room only after a second, and at once what finds no room to wait for that', async () => {
    let isFull = false
    const { submit } = committer({
      clock: systemClock,
      measure: async () => (isFull ? 10 : 0),
      most: SMALL_ALLOWANCE,
      maxWaiting: { rows: 2, bytes: MIB },
    })
    for (let row = 0; row < 9; row++) await submit({ kib: 1 })
    isFull = true
    // It has the store measured.
    await submit({ kib: 1 }).catch(() => {})
    const refused = async () => {
      const begunAt = performance.now()
      const code = await submit({ kib: 1 }).catch((error) => error.code)
      return [code, performance.now() - begunAt >= 990]
    }
    // Twice as many small ones may wait.
    const waiting = [1, 2, 3, 4].map(refused)
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(await refused()).toEqual(['delivery_turned_away', false])
    expect(await Promise.all(waiting)).toEqual(Array(4).fill(['delivery_turned_away', true]))
    expect(await refused()).toEqual(['delivery_turned_away', true])
  })

  it('accepts a single item that is larger than the bound of everything that waits', async () => {
    const { submit, batches } = committer({ maxWaiting: { rows: 3, bytes: 1 } })
    await submit({ kib: 2_000 })
    expect(batches).toEqual([[2_000]])
  })
})

function committer({
  before,
  isDataError = true,
  known = [],
  lookUp,
  measure,
  opening,
  clock = {},
  ...bounds
}: {
  /** Each of the queries that count what is stored. They find so many rows, by default none. */
  measure?(): Promise<number | undefined>
  /** Resolves when the store is open. By default it is. */
  opening?(): Promise<void>
  most?: Allowance
  clock?: Partial<Clock>
  /** The subscriptions that were read before; null: the store cannot tell. */
  known?: readonly string[] | null
  lookUp?(): Promise<void>
  before?(batch: number[]): Promise<void>
  isDataError?: boolean
  maxBatch?: Size
  maxWaiting?: Size
} = {}) {
  const batches: number[][] = []
  const time = createVirtualClock()
  const { accept, turnedAway } = createAcceptance({
    engine: {
      read: async (work) =>
        work({
          placeholder: () => '?',
          async query() {
            const rows = (await measure?.()) ?? 0
            return [{ rows, unread: rows, bytes: 0, unread_bytes: 0, last: null }]
          },
        }),
      // Nothing makes room here.
      write: async () => [] as never,
      skipLocked: sql``,
      byIndex: () => sql``,
      async writeAll(writes) {
        const events = writes.flatMap(({ rows }) => rows as NewEvent[])
        const batch = events.map(({ payload }) => payload.length / 1_024)
        await before?.(batch)
        batches.push(batch)
      },
      mark: () => 0,
      async durable() {},
      isDataError: () => isDataError,
    },
    ownership: { async check() {} },
    request: () => [],
    searches: { installed: async () => [] },
    subscriptions: {
      async readAmong() {
        await lookUp?.()
        if (known === null) throw new Error('the store is busy')
        return ({ subscriptionUid }) => known.includes(subscriptionUid as string)
      },
    },
    journal: { insert: (events) => [{ query: { text: '', values: [] }, rows: events }] },
    clock: { ...time.forProcess(), ...clock },
    health: { watch: (write) => write() },
    announce() {},
    whileOpen: (work) => (opening === undefined ? work() : opening().then(work)),
    isClosed: () => false,
    ...bounds,
  })
  const submit = ({ kib }: { kib: number }) => accept({ events: [eventOf(kib)], requests: [] })
  return { submit, accept, batches, time, turnedAway }
}

const eventOf = (kib: number) =>
  ({ kind: 'event', payload: 'x'.repeat(kib * 1_024), subscriptionUid: String(kib) }) as NewEvent
