import { describe, expect, it } from '@jest/globals'
import { createSlices } from '../../lib/base/waiting.js'

describe('slices of work', () => {
  it.each([
    [6, 0],
    [7, 1],
    [12, 1],
    [14, 2],
  ])(
    'let the event loop run after more than 5 ms of work in a row: %d steps of 1 ms',
    async (steps, times) => {
      const scene = slicesOfWork()
      expect(await scene.loopsDuring(() => scene.work(steps))).toBe(times)
    },
  )

  it('begin anew with the first step in a turn of the event loop', async () => {
    const { slices, pass } = slicesOfWork()
    expect(slices.yieldIfOver()).toBeUndefined()
    pass(5)
    expect(slices.yieldIfOver()).toBeUndefined()
    pass(1)
    const nextTurn = slices.yieldIfOver()
    expect(slices.yieldIfOver()).toBe(nextTurn)
    await nextTurn
    pass(100)
    expect(slices.yieldIfOver()).toBeUndefined()
  })
})

/** Slices by a clock that only `pass` moves. */
function slicesOfWork() {
  let now = 100
  const slices = createSlices({ monotonic: () => now })
  const pass = (ms: number) => {
    now += ms
  }
  return {
    slices,
    pass,
    /** Steps of a millisecond each, one after the other. */
    async work(steps: number) {
      for (let i = 0; i < steps; i++) {
        await slices.yieldIfOver()
        pass(1)
      }
    },
    /** How often the event loop runs until the work is done. */
    async loopsDuring(work: () => Promise<unknown>) {
      let looped = 0
      let isDone = false
      const loop = () => {
        if (isDone) return
        looped++
        setImmediate(loop)
      }
      setImmediate(loop)
      await work()
      isDone = true
      return looped
    },
  }
}
