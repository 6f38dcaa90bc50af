import { afterEach, describe, expect, it, jest } from '@jest/globals'
import { createTurns } from '../lib/sqlite/turns.js'

afterEach(() => {
  jest.restoreAllMocks()
})

describe('the turns of a connection', () => {
  it.each([true, false])(
    'are taken one at a time, in the order of the calls (yields: %p)',
    async (yields) => {
      const turns = createTurns(yields)
      const seen: string[] = []
      const use = async (name: string) => {
        const pass = await turns.take()
        seen.push(`${name} begins`)
        await nextTurn()
        seen.push(`${name} ends`)
        pass()
      }
      await Promise.all(['a', 'b', 'c'].map(use))
      expect(seen).toEqual(['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]))
    },
  )

  it.each([
    [6, 0],
    [7, 1],
    [12, 1],
    [14, 2],
  ])(
    'let the event loop run after more than 5 ms of work in a row: %d turns of 1 ms',
    async (turns, times) => {
      expect(await work(createTurns(true), turns)).toBe(times)
    },
  )

  it('never let it run if no other work waits for it', async () => {
    expect(await work(createTurns(false), 20)).toBe(0)
  })
})

/** Takes turns of a millisecond each, one after the other, and counts how often the event loop ran in between. */
async function work(turns: ReturnType<typeof createTurns>, count: number) {
  let now = 100
  jest.spyOn(performance, 'now').mockImplementation(() => now)
  let looped = 0
  let isOver = false
  const loop = () => {
    looped++
    if (!isOver) setImmediate(loop)
  }
  setImmediate(loop)
  for (let i = 0; i < count; i++) {
    const pass = await turns.take()
    now++
    pass()
  }
  isOver = true
  return looped
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
