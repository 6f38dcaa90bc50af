import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../lib/base/clock.js'
import { MarketplaceError } from '../../lib/base/errors.js'
import { createFindSubscriptions, type FindSubscriptions } from '../../lib/platform/find-subscriptions.js'
import { ReadFailure, type ReadResult } from '../../lib/platform/read-result.js'

describe('a search for the subscriptions of a business', () => {
  it('asks the option once, with a token of the app, a fetch and a signal, and takes numbers as uids', async () => {
    const asked: unknown[] = []
    const { search, dropped } = searching((businessUid, { token, fetch, signal }) => {
      asked.push(businessUid, token.value, typeof fetch, signal.aborted)
      return ['s1', 72]
    })
    expect(await search()).toEqual({ kind: 'found', subscriptionUids: ['s1', '72'] })
    expect(asked).toEqual(['b1', 'token-1', 'function', false])
    expect(dropped).toEqual([])
  })

  it.each<[ReadResult, object]>([
    [{ kind: 'token_refused' }, { kind: 'refused', code: 'token_refused' }],
    [
      { kind: 'throttled', retryAfterMs: 7 },
      { kind: 'throttled', code: 'platform_throttled', retryAfterMs: 7 },
    ],
    [{ kind: 'credentials_refused' }, { kind: 'credentials_refused', code: 'app_credentials_refused' }],
    [
      { kind: 'outage', code: 'platform_timeout' },
      { kind: 'failed', code: 'platform_timeout' },
    ],
    [
      { kind: 'refused', code: 'platform_refused' },
      { kind: 'failed', code: 'platform_refused' },
    ],
    [{ kind: 'missing' }, { kind: 'failed', code: 'platform_unreachable' }],
  ])('that gets no token, because of %j, is %j', async (failure, result) => {
    const { search } = searching(
      () => {
        throw new Error('it must not be asked')
      },
      async () => {
        throw new ReadFailure(failure)
      },
    )
    expect(await search()).toEqual(result)
  })

  it('that gets no token for a reason of this package has its code', async () => {
    const { search } = searching(
      () => [],
      async () => {
        throw new MarketplaceError('closed', 'Cannot read: closed')
      },
    )
    expect(await search()).toEqual({ kind: 'failed', code: 'closed' })
  })

  it('has failed if the option throws or does not answer, and its token is dropped: the platform may refuse it', async () => {
    const error = new Error('the list is away')
    const thrown = searching(() => Promise.reject(error))
    const code = 'find_subscriptions_failed'
    expect(await thrown.search()).toEqual({ kind: 'failed', code, why: 'threw', cause: error })
    let signal: AbortSignal | undefined
    const hanging = searching((_uid, given) => {
      signal = given.signal
      return new Promise(() => {})
    })
    expect(await hanging.search()).toEqual({ kind: 'failed', code, why: 'did not answer within 50 ms' })
    expect(signal?.aborted).toBe(true)
    for (const { dropped } of [thrown, hanging]) expect(dropped).toEqual([['b1', 'token-1']])
  })

  it.each([null, 'many', {}, [{}], [null], ['']])('has failed if the option returns %j', async (returned) => {
    const { search } = searching(() => returned as never)
    expect(await search()).toMatchObject({ kind: 'failed', code: 'find_subscriptions_failed' })
  })

  it('is throttled if a reply to the option was, whatever the option made of it', async () => {
    const { search } = searching(
      async (_uid, { fetch }) => {
        await fetch('https://platform.example/list')
        throw new Error('no list')
      },
      undefined,
      async () => new Response('', { status: 429, headers: { 'retry-after': '7' } }),
    )
    expect(await search()).toEqual({ kind: 'throttled', code: 'platform_throttled', retryAfterMs: 7_000 })
  })
})

function searching(
  findSubscriptions: FindSubscriptions,
  tokenFor: () => Promise<string> = async () => 'token-1',
  fetch?: typeof globalThis.fetch,
) {
  const dropped: [string, string][] = []
  const find = createFindSubscriptions({
    findSubscriptions,
    tokenFor,
    dropAppToken: (...given) => void dropped.push(given),
    fetch,
    timeoutMs: 50,
    clock: systemClock,
  })
  return { dropped, search: () => find('b1', new AbortController().signal) }
}
