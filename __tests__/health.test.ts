import { describe, expect, it } from '@jest/globals'
import { mergeProblems } from '../lib/health.js'

describe('the problems of several parts', () => {
  it('are listed together, in order', () => {
    expect(
      mergeProblems([
        { failing: ['a'], degraded: ['b'] },
        { failing: [], degraded: [] },
        { failing: ['c'], degraded: ['d'] },
      ]),
    ).toEqual({ failing: ['a', 'c'], degraded: ['b', 'd'] })
  })
})
