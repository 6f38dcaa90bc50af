import { getEventListeners } from 'node:events'
import { describe, expect, it } from '@jest/globals'
import { createLimit } from '../../lib/platform/limit.js'

describe('createLimit', () => {
  it('runs at most its number of calls at once, and the others in order', async () => {
    const limited = createLimit(2)
    const calls = Array.from({ length: 5 }, () => later())
    const begun: number[] = []
    const ends = calls.map((call, i) =>
      limited(() => {
        begun.push(i)
        return call.promise
      }),
    )
    await turn()
    expect(begun).toEqual([0, 1])
    calls[1]?.resolve('one')
    await turn()
    expect(begun).toEqual([0, 1, 2])
    for (const call of calls) call.resolve('any')
    await Promise.all(ends)
    expect(begun).toEqual([0, 1, 2, 3, 4])
  })

  it('frees the place of a failed call', async () => {
    const limited = createLimit(1)
    await expect(limited(() => Promise.reject(new Error('refused')))).rejects.toThrow('refused')
    await expect(limited(() => Promise.resolve('next'))).resolves.toBe('next')
  })

  it('frees the place of a call that was aborted while it waited', async () => {
    const limited = createLimit(1)
    const first = later()
    const running = limited(() => first.promise)
    const controller = new AbortController()
    const givenUp = limited(() => Promise.resolve('never'), controller.signal)
    const last = limited(() => Promise.resolve('last'))
    controller.abort()
    await expect(givenUp).rejects.toMatchObject({ name: 'AbortError', message: 'the caller no longer waits' })
    first.resolve('first')
    await running
    await expect(last).resolves.toBe('last')
    // One place is free again, not two.
    const again = later()
    const begun: string[] = []
    const one = limited(() => {
      begun.push('one')
      return again.promise
    })
    const two = limited(async () => void begun.push('two'))
    await turn()
    expect(begun).toEqual(['one'])
    again.resolve('')
    await Promise.all([one, two])
  })

  it('does not begin a call whose signal was already aborted', async () => {
    const limited = createLimit(1)
    const first = later()
    const running = limited(() => first.promise)
    const late = limited(() => Promise.resolve('never'), AbortSignal.abort())
    await expect(late).rejects.toThrow('the caller no longer waits')
    first.resolve('')
    await running
  })

  it('leaves no listener on the signal of a call that has run', async () => {
    const limited = createLimit(1)
    const controller = new AbortController()
    const first = later()
    const running = limited(() => first.promise)
    const second = limited(() => Promise.resolve('second'), controller.signal)
    first.resolve('')
    await Promise.all([running, second])
    expect(getEventListeners(controller.signal, 'abort')).toEqual([])
  })
})

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** A call that ends when the test releases it. */
function later() {
  let resolve: (value: string) => void = () => {}
  const promise = new Promise<string>((end) => {
    resolve = end
  })
  return { promise, resolve }
}
