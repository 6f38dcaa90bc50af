import { describe, expect, it } from '@jest/globals'
import type { NewEntitlement } from '../../../lib/store/port/store.js'
import { itemChanges } from '../../../lib/store/subscriptions/found-by-reads.js'

type Flip = readonly [before: string | null, after: string | null, businessUid?: string]

describe('the items that begin and end for a business', () => {
  it.each<[string, { given?: string[]; flips: Flip[]; changes: Flip[] }]>([
    ['a purchase', { flips: [[null, 'a']], changes: [[null, 'a']] }],
    ['an end', { flips: [['a', null]], changes: [['a', null]] }],
    ['a purchase of what it has', { given: ['a'], flips: [[null, 'a']], changes: [] }],
    ['the end of one of two', { given: ['a'], flips: [['a', null]], changes: [] }],
    ['another item', { flips: [['a', 'b']], changes: [['a', 'b']] }],
    ['another item that it has', { given: ['b'], flips: [['a', 'b']], changes: [['a', null]] }],
    ['another item beside one of before', { given: ['a'], flips: [['a', 'b']], changes: [[null, 'b']] }],
    [
      'two purchases at once',
      {
        flips: [
          [null, 'a'],
          [null, 'a'],
        ],
        changes: [
          [null, 'a'],
          [null, 'a'],
        ],
      },
    ],
    [
      'two ends at once',
      {
        flips: [
          ['a', null],
          ['a', null],
        ],
        changes: [
          ['a', null],
          ['a', null],
        ],
      },
    ],
    [
      'an end and a purchase at once',
      {
        flips: [
          ['a', null],
          [null, 'a'],
        ],
        changes: [],
      },
    ],
    [
      'two items that change places',
      {
        flips: [
          ['a', 'b'],
          ['b', 'a'],
        ],
        changes: [],
      },
    ],
    [
      'a move to another business',
      {
        flips: [
          ['a', null, 'b1'],
          [null, 'a', 'b2'],
        ],
        changes: [
          ['a', null, 'b1'],
          [null, 'a', 'b2'],
        ],
      },
    ],
  ])('after %s', (_, { given = [], flips, changes }) => {
    const all = flips.map(flipOf)
    const made = itemChanges(all, all, new Map([['b1', new Set(given)]]))
    const expected = changes.map(([before, after, businessUid = 'b1']) => ({ before, after, businessUid }))
    expect(made).toEqual(expected.map(expect.objectContaining))
  })
})

function flipOf([before, after, businessUid = 'b1']: Flip): NewEntitlement {
  return { id: 'e', businessUid, cause: 'event', before, after }
}
