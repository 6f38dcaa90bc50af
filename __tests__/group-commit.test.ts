import { describe, expect, it } from '@jest/globals'
import { type Clock, systemClock } from '../lib/clock.js'
import { createAcceptance } from '../lib/store/acceptance.js'
import { createGroupCommit, type Size } from '../lib/store/group-commit.js'
import { gate } from './support/until.js'

const MIB = 1024 * 1024

describe('C26 a group commit', () => {
  it('contains no more bytes than its bound, except for a single item that is larger', async () => {
    const { submit, batches } = committer()
    await Promise.all([300, 300, 300, 2_000, 10].map((kib) => submit({ kib })))
    expect(batches).toEqual([[300, 300, 300], [2_000], [10]])
  })

  it('contains no more rows than its bound', async () => {
    const { submit, batches } = committer()
    await Promise.all(Array.from({ length: 700 }, () => submit({ kib: 0 })))
    expect(batches.map(({ length }) => length)).toEqual([300, 300, 100])
  })

  it.each([
    ['collects on while each turn of the event loop brings more, for 5 ms', 1, 2, [22, 18]],
    ['commits a lone item without a wait', 1, 1, Array(20).fill(1)],
    ['does not collect on where several are committed at once', 2, 2, Array(20).fill(2)],
    ['does not collect on after a slow commit', 1, 2, Array(20).fill(2), true],
  ])('%s', async (_what, atOnce, perTurn, sizes, isSlow = false) => {
    let now = 0
    const { submit, batches } = committer({
      atOnce,
      isSlow: () => isSlow,
      clock: { monotonic: () => now },
    })
    const submitted: Promise<void>[] = []
    for (let i = 0; i < 20; i++) {
      for (let more = perTurn; more > 0; more--) submitted.push(submit({ kib: 1 }))
      now += 0.5
      await new Promise((resolve) => setImmediate(resolve))
    }
    await Promise.all(submitted)
    expect(batches.map(({ length }) => length)).toEqual(sizes)
  })

  it('refuses items at once when more than 64 MiB wait, and accepts them when there is room again', async () => {
    const hold = gate()
    const { submit, batches } = committer({ before: () => hold.opened })
    const first = submit({ kib: 1 })
    await new Promise((resolve) => setImmediate(resolve))
    const waiting = Array.from({ length: 64 }, () => submit({ kib: 1_024 }))
    await expect(submit({ kib: 1 })).rejects.toMatchObject({ code: 'store_unavailable' })
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
    expect(ended).toEqual(ended.map(() => ({ status: 'rejected', reason: new Error('no disk') })))
    expect(tries).toBe(1)
  })

  it('refuses items beyond its bound of rows, and has room again after each batch', async () => {
    const { submit, batches } = committer({
      maxBatch: { rows: 1, bytes: MIB },
      maxWaiting: { rows: 3, bytes: MIB },
    })
    for (let round = 0; round < 3; round++) {
      const taken = [submit({ kib: 1 }), submit({ kib: 1 }), submit({ kib: 1 })]
      await expect(submit({ kib: 1 })).rejects.toMatchObject({ code: 'store_unavailable' })
      await Promise.all(taken)
    }
    expect(batches).toHaveLength(9)
  })

  it('accepts a single item that is larger than the bound of everything that waits', async () => {
    const { submit, batches } = committer({ maxWaiting: { rows: 3, bytes: 1 } })
    await submit({ kib: 2_000 })
    expect(batches).toEqual([[2_000]])
  })

  it('commits as many batches at once as it may, and collects the next one meanwhile', async () => {
    const holds = [gate(), gate(), gate()]
    let begun = 0
    const { submit, settled, batches } = committer({
      atOnce: 2,
      before: () => holds[begun++]?.opened ?? Promise.resolve(),
    })
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    for (const kib of [1, 2, 3, 4]) {
      submit({ kib })
      await turn()
    }
    expect(begun).toBe(2)
    holds[1]?.open()
    await turn()
    expect(begun).toBe(3)
    expect(batches).toEqual([[2]])
    const all = settled()
    holds[0]?.open()
    holds[2]?.open()
    await all
    expect(batches).toEqual([[2], [1], [3, 4]])
    // None of the runs has stopped for ever.
    await Promise.all([submit({ kib: 5 }), submit({ kib: 6 })])
    expect(batches.flat().sort()).toEqual([1, 2, 3, 4, 5, 6])
  })

  it('is settled when no item waits and no commit runs', async () => {
    const hold = gate()
    const { submit, settled, batches } = committer({
      before: () => hold.opened,
      maxBatch: { rows: 1, bytes: MIB },
    })
    await settled()
    const ends = [submit({ kib: 1 }), submit({ kib: 2 })]
    let isSettled = false
    const settling = settled().then(() => {
      isSettled = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(isSettled).toBe(false)
    hold.open()
    await settling
    expect(batches).toEqual([[1], [2]])
    await Promise.all(ends)
  })
})

describe('deliveries that arrive one turn of the event loop after the other', () => {
  it.each([
    [4, 'share a commit', 2],
    [6, 'do not wait for more', 20],
  ])('after a transaction of %d ms %s', async (transactionMs, _what, commits) => {
    const { acceptOne, count, turn } = acceptance(transactionMs)
    await acceptOne()
    const before = count()
    const accepted: Promise<void>[] = []
    for (let i = 0; i < 20; i++) {
      accepted.push(acceptOne(), acceptOne())
      await turn()
    }
    await Promise.all(accepted)
    expect(count() - before).toBe(commits)
  })
})

/** With an engine whose transactions take this long. A turn of the event loop takes 0.5 ms. */
function acceptance(transactionMs: number) {
  let now = 0
  let transactions = 0
  const nothing = async () => {}
  const { accept } = createAcceptance({
    engine: {
      clock: { ...systemClock, monotonic: () => now },
      async transact() {
        transactions++
        now += transactionMs
        return undefined as never
      },
      transactsAtOnce: 1,
      mark: () => 0,
      durable: nothing,
      isDataError: () => false,
    },
    ownership: { check: function* () {} },
    request: function* () {},
    journal: { insert: function* () {} },
    health: { watch: (work) => work() },
    announce() {},
  })
  return {
    acceptOne: () => accept({ events: [], requests: [] }),
    count: () => transactions,
    async turn() {
      now += 0.5
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

function committer({
  before,
  isDataError = true,
  atOnce = 1,
  clock = systemClock,
  ...bounds
}: {
  before?(batch: number[]): Promise<void>
  isDataError?: boolean
  atOnce?: number
  clock?: Pick<Clock, 'monotonic'>
  isSlow?(): boolean
  maxBatch?: Size
  maxWaiting?: Size
} = {}) {
  const batches: number[][] = []
  const groupCommit = createGroupCommit<{ kib: number }>({
    async commit(items) {
      const batch = items.map(({ kib }) => kib)
      await before?.(batch)
      batches.push(batch)
    },
    atOnce,
    clock,
    isDataError: () => isDataError,
    sizeOf: ({ kib }) => ({ rows: 1, bytes: (kib / 1_024) * MIB }),
    ...bounds,
  })
  return { ...groupCommit, batches }
}
