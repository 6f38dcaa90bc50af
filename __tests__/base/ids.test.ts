import crypto from 'node:crypto'
import { describe, expect, it, jest } from '@jest/globals'
import { newId } from '../../lib/base/ids.js'

describe('an identifier of the package', () => {
  const UUID_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

  it('is a UUID of version 7 that begins with its millisecond', () => {
    const ids = Array.from({ length: 1_000 }, () => newId(0x0123456789))
    for (const id of ids) expect(id).toMatch(UUID_7)
    for (const id of ids) expect(id.slice(0, 14)).toBe('00012345-6789-')
  })

  it('never repeats, and is random in every other place', () => {
    const ids = Array.from({ length: 2_000 }, () => newId(1))
    expect(new Set(ids).size).toBe(ids.length)
    for (const at of [15, 16, 17, 20, 21, 22, 24, 26, 28, 30, 32, 34, 35]) {
      expect(new Set(ids.map((id) => id[at])).size).toBe(16)
    }
    expect(new Set(ids.map((id) => id[19]))).toEqual(new Set(['8', '9', 'a', 'b']))
    // Every identifier has ten different random bytes.
    expect(new Set(ids.map((id) => id.slice(24))).size).toBe(ids.length)
    expect(ids.filter((id) => id.slice(15, 18) === id.slice(24, 27)).length).toBeLessThan(20)
  })

  it('asks the system for random bytes once for many', () => {
    const asked = jest.spyOn(crypto, 'randomFillSync')
    for (let i = 0; i < 1_280; i++) newId(1)
    expect(asked).toHaveBeenCalledTimes(10)
  })
})
