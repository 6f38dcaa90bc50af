import { describe, expect, it } from '@jest/globals'
import { isMost, PROBLEMS, problemOf, statusOf, worstFirst } from '../../lib/base/health.js'

describe('problems', () => {
  it('have a code, a message, and the next step of the table', () => {
    expect(problemOf('entries_dead', '2 are dead')).toEqual({
      code: 'entries_dead',
      message: '2 are dead',
      next: PROBLEMS.entries_dead.next,
    })
  })

  it('are listed with those first that take the instance out of rotation, which decide the status', () => {
    const dead = problemOf('entries_dead', '2 are dead')
    const stuck = problemOf('worker_stuck', 'it is stuck')
    expect(worstFirst([dead, stuck])).toEqual([stuck, dead])
    expect([[], [dead], [dead, stuck]].map(statusOf)).toEqual(['ok', 'degraded', 'failing'])
  })

  it.each([
    [0, 0, false],
    [0, 5, false],
    [1, 1, true],
    [1, 2, false],
    [2, 3, false],
    [3, 5, true],
    [3, 6, false],
    [4, 6, true],
  ])('concern most if %d of %d are concerned: %s', (some, all, expected) => {
    expect(isMost(some, all)).toBe(expected)
  })
})
