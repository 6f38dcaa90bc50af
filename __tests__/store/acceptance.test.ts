import { describe, expect, it } from '@jest/globals'
import { createAcceptance, type Size } from '../../lib/store/acceptance.js'
import type { NewEvent } from '../../lib/store/port/store.js'
import { gate } from '../support/until.js'

const MIB = 1024 * 1024

describe('C26 the shared commit of deliveries', () => {
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
})

function committer({
  before,
  isDataError = true,
  ...bounds
}: {
  before?(batch: number[]): Promise<void>
  isDataError?: boolean
  maxBatch?: Size
  maxWaiting?: Size
} = {}) {
  const batches: number[][] = []
  const { accept } = createAcceptance({
    engine: {
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
    journal: { insert: (events) => [{ query: { text: '', values: [] }, rows: events }] },
    health: { watch: (write) => write() },
    announce() {},
    ...bounds,
  })
  const submit = ({ kib }: { kib: number }) =>
    accept({ events: [{ payload: 'x'.repeat(kib * 1_024) } as NewEvent], requests: [] })
  return { submit, batches }
}
