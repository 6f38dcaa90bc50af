import { describe, expect, it } from '@jest/globals'
import { errorText, type HttpReply, isError, isObject } from '../../lib/platform/http.js'

describe('an error reply', () => {
  it('is an object, not an array or null', () => {
    expect([{}, { a: 1 }].every(isObject)).toBe(true)
    expect([null, undefined, [], 'text', 5].some(isObject)).toBe(false)
  })

  it('is recognised by its body, or is a page', () => {
    const bad = [{ success: false }, { error: 'no' }, { error: {} }, { status: 'Error' }]
    for (const json of bad) expect(isError(reply(json))).toBe(true)
    const good = [{}, { success: true }, { error: null }, { error: '' }, { error: false }, { status: 'ok' }]
    for (const json of good) expect(isError(reply(json))).toBe(false)
    expect(isError(reply({ success: true }, true))).toBe(false)
    for (const json of [undefined, [], null]) {
      expect([isError(reply(json, true)), isError(reply(json))]).toEqual([true, false])
    }
  })

  it('has its codes and messages in one text, each once', () => {
    expect(
      errorText(reply({ code: 'a', error: 'b', error_description: 'c', message: 'd', other: 'e' })),
    ).toBe('a b c d')
    expect(errorText(reply({ error: { code: 'a', message: 'b' }, message: 'a' }))).toBe('a b')
    expect(errorText(reply({ errors: [{ code: 'a', message: 'b' }, 'c', 5, null] }))).toBe('a b c')
    expect(errorText(reply({ errors: ['1', '2', '3', '4', '5', '6'] }))).toBe('1 2 3 4 5')
    expect(errorText(reply({ errors: 'text' }))).toBe('')
    for (const json of [undefined, null, 'text', ['text']]) expect(errorText(reply(json))).toBe('')
  })
})

function reply(json: unknown, isPage = false): HttpReply {
  return { json, isPage } as HttpReply
}
