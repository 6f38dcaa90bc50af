import { describe, expect, it } from '@jest/globals'
import { createBatches } from '../../lib/base/batches.js'
import { nextTurn } from '../../lib/base/waiting.js'
import { gate } from '../support/until.js'

describe('batches', () => {
  it('have the items that arrive in one turn of the event loop, in their order, and each gets its own result', async () => {
    const { batches, written } = scene()
    const results = ['a', 'b', 'c'].map(batches.add)
    await nextTurn()
    const later = batches.add('d')
    expect(await Promise.all([...results, later])).toEqual(['a!', 'b!', 'c!', 'd!'])
    expect(written).toEqual([['a', 'b', 'c'], ['d']])
  })

  it('collect while one is written', async () => {
    const holds = [gate(), gate()]
    const { batches, written } = scene({ write: (_items, nth) => holds[nth]?.opened })
    const results: Promise<string>[] = []
    for (const item of ['a', 'b', 'c', 'd']) {
      results.push(batches.add(item))
      await nextTurn()
      await nextTurn()
    }
    expect(written).toEqual([['a']])
    holds[0]?.open()
    await results[0]
    await nextTurn()
    await nextTurn()
    expect(written[1]).toEqual(['b', 'c', 'd'])
    holds[1]?.open()
    expect(await Promise.all(results)).toEqual(['a!', 'b!', 'c!', 'd!'])
  })

  it('leave what does not fit to the next one', async () => {
    const { batches, written } = scene({ most: 2 })
    await Promise.all(['a', 'b', 'c', 'd', 'e'].map(batches.add))
    expect(written).toEqual([['a', 'b'], ['c', 'd'], ['e']])
  })

  it('that fail because of one item are split until it is alone', async () => {
    const { batches, written } = scene({ write: (items) => items.includes('c') && fail('data') })
    const results = await Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map(batches.add))
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ])
    expect(written).toEqual([['a', 'b', 'c', 'd', 'e'], ['a', 'b', 'c'], ['a', 'b'], ['c'], ['d', 'e']])
  })

  it.each([
    ['for the batch', 'take'],
    ['for one of its items', 'b'],
  ])('whose take() throws %s fail as a whole, and the next one is written', async (_, at) => {
    let isBroken = true
    const { batches, written } = scene({ take: (step) => isBroken && step === at && fail('take') })
    const results = await Promise.allSettled(['a', 'b', 'c'].map(batches.add))
    expect(results).toMatchObject([
      { reason: new Error('take') },
      { reason: new Error('take') },
      { reason: new Error('take') },
    ])
    isBroken = false
    expect(await batches.add('d')).toBe('d!')
    expect(written).toEqual([['d']])
  })

  it('that fail for another reason fail as a whole, and the next one is written', async () => {
    let isDown = true
    const { batches, written } = scene({ write: () => isDown && fail('down') })
    const results = await Promise.allSettled(['a', 'b'].map(batches.add))
    expect(results).toMatchObject([{ reason: new Error('down') }, { reason: new Error('down') }])
    isDown = false
    expect(await batches.add('c')).toBe('c!')
    expect(written).toEqual([['a', 'b'], ['c']])
  })
})

function fail(message: string): never {
  throw new Error(message)
}

function scene({
  most = 10,
  take = () => undefined,
  write = () => undefined,
}: {
  most?: number
  /** Called when a batch begins, with `take`, and for each item that it asks for. */
  take?(step: string): unknown
  write?(items: readonly string[], nth: number): unknown
} = {}) {
  const written: string[][] = []
  const batches = createBatches<string, string>({
    take() {
      take('take')
      let taken = 0
      return (item) => {
        take(item)
        return ++taken <= most
      }
    },
    async write(items) {
      written.push([...items])
      await write(items, written.length - 1)
      return items.map((item) => `${item}!`)
    },
    split: (error) => (error as Error).message === 'data',
  })
  return { batches, written }
}
