import crypto, { createHash } from 'node:crypto'
import { describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import {
  couldBeSecret,
  createSecretSearch,
  secretFaults,
  targetUrl,
} from '../../lib/express/delivery-secret.js'

const OLD = 'Zk3vQ9xT_bL7wMn2RfYc8H'
const NEW = 'p5GdXa-1KuEo6NsBjV4tWq'

describe('A2 the check of a delivery secret', () => {
  it('accepts each of the configured secrets and nothing else', () => {
    const indexOf = createSecretSearch([OLD, NEW])
    expect([OLD, NEW].map(indexOf)).toEqual([0, 1])
    const others = ['', OLD.slice(0, -1), `${OLD}x`, OLD.toLowerCase(), `${OLD}${NEW}`, `${OLD},${NEW}`]
    expect(others.map(indexOf).filter((index) => index !== -1)).toEqual([])
  })

  it('compares whole secrets of any length', () => {
    const long = `${OLD}${'x'.repeat(180)}`
    const indexOf = createSecretSearch([OLD, `${long}1`])
    expect([OLD, `${long}1`].map(indexOf)).toEqual([0, 1])
    const others = [`${OLD}\0`, `${OLD}${'\0'.repeat(200)}`, long, `${long}2`, `${long}1\0`, `${long}12`]
    expect(others.map(indexOf).filter((index) => index !== -1)).toEqual([])
  })

  it('accepts nothing when no secret is configured', () => {
    expect(createSecretSearch([])('')).toBe(-1)
  })

  it('compares with every secret even after the first one matched', () => {
    const compare = jest.spyOn(crypto, 'timingSafeEqual')
    createSecretSearch([OLD, NEW, 'third'])(OLD)
    expect(compare).toHaveBeenCalledTimes(3)
    compare.mockRestore()
  })

  it('never throws, whatever it is given', () => {
    const indexOf = createSecretSearch([OLD])
    fc.assert(
      fc.property(
        fc.anything(),
        (presented) => indexOf(presented as string) === (presented === OLD ? 0 : -1),
      ),
    )
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (presented) => indexOf(presented) === -1))
    expect(indexOf('x'.repeat(1_000_000))).toBe(-1)
    expect(indexOf('\ud800')).toBe(-1)
  })
})

describe('A5 a weak delivery secret', () => {
  it('has less than 16 characters', () => {
    expect([15, 16, 17].map((length) => couldBeSecret('x'.repeat(length)))).toEqual([false, true, true])
  })

  it.each([
    '',
    'short',
    'Zk3vQ9xT_bL7wMn',
    'aaaaaaaaaaaaaaaaaaaaaaaa',
    'abababababababababab',
    'a1B2c3a1B2c3a1B2c3a1B2c3',
    'Zk3vQ9xTZk3vQ9xT',
    'abcdefghijklmnop',
    '1234567890123456',
    '0123456789abcdef',
    'ponmlkjihgfedcba',
    'qwertyuiopasdfgh',
    'changeme',
    'changemechangeme',
    'changeme-changeme-1',
    'CHANGE_ME_CHANGE_ME',
    'your-secret-goes-here',
    'your_delivery_secret',
    'my-webhook-secret-2024',
    'password12345678',
    'super-secret-passphrase',
    'replace-this-secret',
    'test-secret-test-secret',
  ])('is refused: %s', (secret) => {
    expect(secretFaults(secret).length).toBeGreaterThan(0)
  })

  it.each([
    'has a space in itself 83hf',
    'Zk3vQ9xT/bL7wMn2RfYc8H',
    'Zk3vQ9xT%bL7wMn2RfYc8H',
    'Zk3vQ9xTäbL7wMn2RfYc8H',
  ])('is refused if it is not safe in a URL: %s', (secret) => {
    expect(secretFaults(secret).join()).toMatch(/part of a URL/)
  })

  it('is refused if it is not a text', () => {
    for (const value of [undefined, null, 1234567890123456, {}, []]) {
      expect(secretFaults(value)).toHaveLength(1)
    }
  })

  it('never appears in its own error message', () => {
    for (const secret of ['changeme', 'hunter2 hunter2', 'aaaaaaaa', 'qwertyuiopasdfgh', 'Zk3v/Q9']) {
      expect(secretFaults(secret).join()).not.toContain(secret)
    }
  })
})

describe('A5 the description of a weak delivery secret', () => {
  const HOW = 'make one with `npx marketplace-webhooks secret`'
  const SHORT = `a delivery secret must have at least 16 characters: ${HOW}`
  const UNSAFE = 'a delivery secret may hold only letters, digits and . _ ~ - because it is part of a URL'
  const REPEATS = 'a delivery secret must not repeat the same few characters'
  const COMMON = `a delivery secret must be random, not a placeholder, common words or a sequence: ${HOW}`

  it.each([
    [undefined, ['a delivery secret must be a string']],
    ['', [`a delivery secret must not be empty: ${HOW}`]],
    ['Zk3vQ9xTbL7wMn2', [SHORT]],
    ['Zk3vQ9xTbL7wMn2/', [UNSAFE]],
    ['ab/', [SHORT, UNSAFE, REPEATS]],
    ['kqz7vqkv7zqkzv7qk', [REPEATS]],
    ['Zk3vQ9xTbL7wMn2Zk3vQ9xTbL7wMn2', [REPEATS]],
    ['kkkqqzz11vv88mmm', [COMMON]],
    ['passw0rd.password1z', [COMMON]],
    ['asdfdsasdjhgfdsa', [COMMON]],
    ['zxcvbvcxzxcmnbvc', [COMMON]],
  ])('lists every fault of %j in a sentence', (secret, faults) => {
    expect(secretFaults(secret)).toEqual(faults)
  })

  it.each([
    ['has exactly 16 characters and ends as it begins', 'Zk3vQ9xTbL7wMn2Z'],
    ['has exactly 6 different characters', 'kqz7vxqkv7zxkzqv7'],
    ['has exactly 8 characters that do not follow from the previous one', 'kkqqzz11vv88mmxx'],
    ['repeats a part that would be strong enough alone', 'Zk3vQ9xTbL7wMn2RZk3vQ9xTbL7wMn2R'],
  ])('is empty if the secret %s', (_what, secret) => {
    expect(secretFaults(secret)).toEqual([])
  })
})

describe('A5 a random delivery secret', () => {
  it('has no faults in any common form', () => {
    for (let seed = 0; seed < 500; seed++) {
      const digest = createHash('sha256').update(String(seed)).digest()
      const hex = digest.toString('hex')
      const base64url = digest.toString('base64url')
      const uuid = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, '$1-$2-$3-$4-$5')
      for (const secret of [hex, hex.slice(0, 32), base64url, base64url.slice(0, 22), uuid]) {
        expect({ secret, faults: secretFaults(secret) }).toEqual({ secret, faults: [] })
      }
    }
  })
})

describe('the target URL', () => {
  it.each([
    ['https://app.example', `https://app.example/${OLD}`],
    ['https://app.example/', `https://app.example/${OLD}`],
    ['https://app.example/hooks', `https://app.example/hooks/${OLD}`],
    ['https://app.example/hooks///', `https://app.example/hooks/${OLD}`],
    ['http://localhost:3000/a/b?x=1#y', `http://localhost:3000/a/b/${OLD}`],
  ])('of %s is %s', (mountUrl, expected) => {
    expect(targetUrl(mountUrl, OLD)).toBe(expected)
    expect(targetUrl(new URL(mountUrl), OLD)).toBe(expected)
  })

  it('cannot be made of an address that has the secret already', () => {
    for (const end of ['', '/', '?x=1'])
      expect(() => targetUrl(`https://app.example/hooks/${OLD}${end}`, OLD)).toThrow(
        expect.objectContaining({
          code: 'argument_invalid',
          message: expect.stringMatching(
            /already ends in the delivery secret, so give the address before it$/,
          ),
        }),
      )
  })

  it.each(['', '/hooks', 'app.example/hooks', 'ftp://app.example', 'javascript:alert(1)', 'https://'])(
    'cannot be made of %j',
    (mountUrl) => {
      expect(() => targetUrl(mountUrl, OLD)).toThrow(
        expect.objectContaining({
          code: 'argument_invalid',
          message:
            'Cannot build the target URL: the mount URL must be absolute and start with https:// or http://',
        }),
      )
    },
  )
})
