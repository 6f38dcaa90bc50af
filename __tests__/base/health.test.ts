import { describe, expect, it } from '@jest/globals'
import { PROBLEMS, problemOf, statusOf, worstFirst } from '../../lib/base/health.js'

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
})
