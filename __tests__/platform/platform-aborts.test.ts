import { describe, expect, it } from '@jest/globals'
import { createPlatformClient } from '../../lib/platform/client.js'
import { PLATFORM_DEFAULTS } from '../support/defaults.js'
import { until } from '../support/until.js'

const ABORTED = { kind: 'outage', code: 'platform_unreachable' }

describe('a read whose lease is lost', () => {
  it('cancels its call, and its slot goes to the next read', async () => {
    const { read, calls, hold } = client()
    hold('reads')
    const first = read('b1')
    const second = read('b2')
    await until('the first read is under way', () => calls.reads.length === 1)
    first.abort()
    expect(await first.result).toEqual(ABORTED)
    await until('the second read is under way', () => calls.reads.length === 2)
    expect(calls.reads.map(({ signal }) => signal?.aborted)).toEqual([true, false])
    second.abort()
    await second.result
  })

  it('leaves the queue for a slot at once, and is never sent', async () => {
    const { read, calls, hold } = client()
    hold('reads')
    const first = read('b1')
    await until('the first read is under way', () => calls.reads.length === 1)
    const waiting = read('b2')
    await until('both reads have tokens', () => calls.tokens.length === 2)
    // With its token it waits for the slot.
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve))
    waiting.abort()
    expect(await waiting.result).toEqual(ABORTED)
    first.abort()
    await first.result
    expect(calls.reads).toHaveLength(1)
  })

  it('is not delayed by a token endpoint that does not answer when the token is refreshed', async () => {
    const { read, calls, hold } = client({ readStatus: 401 })
    const reading = read('b1', () => hold('tokens'))
    await until('a second token is requested', () => calls.tokens.length === 2)
    reading.abort()
    expect(await reading.result).toEqual(ABORTED)
  })
})

describe('a refused token', () => {
  it('makes the next read fetch a new one, even after the refusal of a second token', async () => {
    const { read, calls } = client({ readStatus: 401 })
    expect(await read('b1').result).toMatchObject({ kind: 'refused', status: 401 })
    expect([calls.tokens.length, calls.reads.length]).toEqual([2, 2])
    await read('b1').result
    expect(new Set(calls.reads.map(({ token }) => token)).size).toBe(4)
  })
})

describe('a token for a caller of the app', () => {
  it('fails with its cause when no reply comes', async () => {
    const { fetchAppToken, refuse } = client()
    refuse()
    await expect(fetchAppToken('b1')).rejects.toMatchObject({
      name: 'MarketplaceError',
      code: 'platform_unreachable',
    })
  })
})

/** A client with one slot, on a platform that never gives the same token twice. */
function client({ readStatus = 200 } = {}) {
  const calls = {
    tokens: [] as unknown[],
    reads: [] as { token: string | null; signal: AbortSignal | null | undefined }[],
  }
  const held = new Set<'tokens' | 'reads'>()
  let isDown = false
  let afterRead = () => {}

  function fetch(_url: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    if (isDown) return Promise.reject(new TypeError('fetch failed'))
    const kind = init.method === 'POST' ? 'tokens' : 'reads'
    if (kind === 'tokens') calls.tokens.push({})
    else calls.reads.push({ token: new Headers(init.headers).get('authorization'), signal: init.signal })
    if (held.has(kind))
      return new Promise((_resolve, reject) => {
        init.signal?.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')))
      })
    if (kind === 'reads') afterRead()
    return Promise.resolve(
      kind === 'tokens'
        ? Response.json({ access_token: `token-${calls.tokens.length}` })
        : Response.json({}, { status: readStatus }),
    )
  }

  const { readSubscription, fetchAppToken } = createPlatformClient({
    ...PLATFORM_DEFAULTS,
    baseUrl: 'https://api.platform.example',
    authUrl: 'https://auth.platform.example/token',
    clientId: 'app',
    clientSecret: 'secret',
    concurrency: 1,
    fetch,
  })
  return {
    calls,
    fetchAppToken,
    hold: (kind: 'tokens' | 'reads') => void held.add(kind),
    refuse() {
      isDown = true
    },
    read(businessUid: string, onRead = () => {}) {
      afterRead = onRead
      const controller = new AbortController()
      const request = { subscriptionUid: 's', businessUid, signal: controller.signal }
      return { result: readSubscription(request), abort: () => controller.abort() }
    },
  }
}
