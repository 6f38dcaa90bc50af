import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../lib/base/clock.js'
import { createSlices, nextTurn } from '../../lib/base/waiting.js'
import { createMutex } from '../../lib/sqlite/mutex.js'

describe('the mutex of a connection', () => {
  it.each([[createSlices(systemClock)], [undefined]])(
    'has one holder at a time, in the order of the calls',
    async (slices) => {
      const mutex = createMutex(slices)
      const seen: string[] = []
      const use = async (name: string) => {
        const unlock = await mutex.lock()
        seen.push(`${name} begins`)
        await nextTurn()
        seen.push(`${name} ends`)
        unlock()
      }
      await Promise.all(['a', 'b', 'c'].map(use))
      expect(seen).toEqual(['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]))
    },
  )

  it('waits for the end of the slice that yields, and only when it has one', async () => {
    let isOver = true
    const order: string[] = []
    const slices = {
      yieldIfOver: () => (isOver ? nextTurn().then(() => void order.push('yields')) : undefined),
    }
    const mutex = createMutex(slices)
    const unlock = await mutex.lock()
    order.push('holds')
    isOver = false
    unlock()
    await mutex.lock()
    expect(order).toEqual(['yields', 'holds'])
  })
})
