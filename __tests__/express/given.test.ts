import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from '@jest/globals'
import { givenWith } from '../../lib/express/given.js'

const CLAIMS = Buffer.from('{"sub":"n"}').toString('base64url')

describe('what code of the app is given with a request', () => {
  it.each([
    ['the body', {}, 'the body'],
    ['the address', {}, '/hooks?shop=Nora%20L'],
    ['a value of the query', {}, 'Nora L'],
    ['the address of its sender', {}, '192.0.2.7'],
    ['a header', { 'x-shop': 'Nora' }, 'Nora'],
    ['each of several headers of one name', { 'set-cookie': ['a=1', 'b=22'] }, '22'],
    ['a cookie', { cookie: 'shop=Nora; seat=7' }, 'Nora'],
    ['a value with percent signs', { 'x-shop': 'Nora%C3%A9' }, 'Noraé'],
    ['a value with faults in its percent signs', { cookie: 'shop=100%&seat=%41' }, 'A'],
    ['a query with + for a space', { referer: '/?shop=Nora+L' }, 'Nora L'],
    ['the name of Basic', { authorization: `Basic ${btoa('nora:pass-1')}` }, 'nora'],
    ['the password of Basic', { authorization: `Basic ${btoa('nora:pass-1')}` }, 'pass-1'],
    ['the claims of a JSON Web Token', { authorization: `Bearer e30.${CLAIMS}.x` }, '{"sub":"n"}'],
  ])('includes %s', (_what, headers, value) => {
    expect(givenWith(request(headers), ['/hooks?shop=Nora%20L'], 'the body')).toContain(value)
  })

  it('is unknown without a body, or if members of the request were replaced', () => {
    expect(givenWith(request({}), [], undefined)).toBeUndefined()
    expect(givenWith({ ...request({}), socket: undefined } as never, [], 'body')).toBeUndefined()
  })
})

function request(headers: Record<string, string | string[]>): IncomingMessage {
  return { headers, socket: { remoteAddress: '192.0.2.7' } } as unknown as IncomingMessage
}
