import { describe, expect, it } from '@jest/globals'
import { createGroupCommit } from '../lib/store/group-commit.js'
import { gate } from './support/until.js'

const MIB = 1024 * 1024

describe('C26 a group commit', () => {
  it('holds no more bytes than its bound, except one item that is larger alone', async () => {
    const { submit, batches } = committer()
    await Promise.all([300, 300, 300, 2_000, 10].map((kib) => submit({ kib })))
    expect(batches).toEqual([[300, 300, 300], [2_000], [10]])
  })

  it('holds no more rows than its bound', async () => {
    const { submit, batches } = committer()
    await Promise.all(Array.from({ length: 700 }, () => submit({ kib: 0 })))
    expect(batches.map(({ length }) => length)).toEqual([300, 300, 100])
  })

  it('refuses at once what would wait beyond 64 MiB, and accepts more when there is room again', async () => {
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

  it('splits a batch that fails because of one item, and keeps the others', async () => {
    const { submit, batches } = committer({
      before: async (batch) => {
        if (batch.includes(7)) throw new Error('too large')
      },
    })
    const ended = await Promise.allSettled([1, 2, 3, 7, 5, 6].map((kib) => submit({ kib })))
    expect(ended.map(({ status }) => status === 'fulfilled')).toEqual([true, true, true, false, true, true])
    expect(batches.flat().sort()).toEqual([1, 2, 3, 5, 6])
  })
})

function committer({ before }: { before?(batch: number[]): Promise<void> } = {}) {
  const batches: number[][] = []
  const { submit } = createGroupCommit<{ kib: number }>({
    async commit(items) {
      const batch = items.map(({ kib }) => kib)
      await before?.(batch)
      batches.push(batch)
    },
    isDataError: () => true,
    sizeOf: ({ kib }) => ({ rows: 1, bytes: (kib / 1_024) * MIB }),
  })
  return { submit, batches }
}
