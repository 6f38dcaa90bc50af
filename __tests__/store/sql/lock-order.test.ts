import { describe, expect, it } from '@jest/globals'
import { byBytes } from '../../../lib/store/sql/lock-order.js'

/** The first and the last character of each length in UTF-8, beside those that UTF-16 orders otherwise. */
const CHARACTERS = [
  '\0',
  'a',
  'b',
  '\x7f',
  '\x80',
  '\u07ff',
  '\u0800',
  '\ud7ff',
  '\ue000',
  '\uffff',
  '\u{10000}',
  '\u{10ffff}',
]

describe('the order of identifiers', () => {
  it('is that of their bytes in UTF-8', () => {
    const texts = [
      '',
      ...CHARACTERS,
      ...CHARACTERS.flatMap((first) => CHARACTERS.map((second) => first + second)),
    ]
    for (const a of texts)
      for (const b of texts)
        expect([a, b, Math.sign(byBytes(a, b))]).toEqual([
          a,
          b,
          Buffer.compare(Buffer.from(a), Buffer.from(b)),
        ])
  })
})
