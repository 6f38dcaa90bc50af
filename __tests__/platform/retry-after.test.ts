import { describe, expect, it } from '@jest/globals'
import { HOUR, SECOND } from '../../lib/base/clock.js'
import { retryAfterMs } from '../../lib/platform/http.js'

describe('retryAfterMs', () => {
  const now = Date.UTC(2030, 0, 1)

  it('reads seconds and dates, and limits them to between a second and an hour', () => {
    const read = (header: string) => retryAfterMs(header, now)
    expect(read('30')).toBe(30 * SECOND)
    expect(read(' 30 ')).toBe(30 * SECOND)
    expect(read('0')).toBe(SECOND)
    expect(read('864000')).toBe(HOUR)
    expect(read(new Date(now + 90 * SECOND).toUTCString())).toBe(90 * SECOND)
    expect(read('2030-01-01T00:01:30Z')).toBe(90 * SECOND)
    expect(read('Tue, 01 Jan 2030 00:01:30 GMT+0000')).toBe(90 * SECOND)
    expect(read(new Date(now - 90 * SECOND).toUTCString())).toBe(SECOND)
  })

  it.each([undefined, null, '', 'soon', '-x', '1.5s', '5 apples'])('returns undefined for %p', (header) => {
    expect(retryAfterMs(header, now)).toBeUndefined()
  })
})
