import { describe, expect, it } from '@jest/globals'
import { describeConformance, ROWS } from '../support/conformance/describe-conformance.js'
import { storeConformance } from '../support/conformance/store-conformance.js'

// `npm run test:long` runs every check on every store.
describeConformance({ all: false })

describe('the conformance suite', () => {
  const every = storeConformance({ createStore: never, reopen: never, beside: never })

  it('has no two checks with the same name', () => {
    expect(new Set(every.map(({ name }) => name)).size).toBe(every.length)
  })

  it('has every check that the table of fault rows names', () => {
    expect(every.map(({ name }) => name)).toEqual(expect.arrayContaining(Object.keys(ROWS)))
  })
})

function never(): never {
  throw new Error('nothing is run')
}
