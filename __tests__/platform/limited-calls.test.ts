import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../../lib/base/clock.js'
import { createPlatformClient } from '../../lib/platform/client.js'
import { PLATFORM_DEFAULTS } from '../support/defaults.js'
import { createVirtualClock } from '../support/machine/virtual-clock.js'

const limited = (seconds: number) => ({ kind: 'throttled', retryAfterMs: seconds * SECOND })

describe('after a 429 no call begins before the time that the platform asks for:', () => {
  it('E6 none that waited for its turn', async () => {
    const { read, calls, answer } = client({ concurrency: 1 })
    const reads = [read('b1'), read('b2')]
    await answer('token b1', 429)
    expect(calls).toEqual(['token b1'])
    expect(await resultsOf(reads)).toEqual([limited(7), limited(7)])
  })

  it('E6 none that follows another call of the same read', async () => {
    const { read, calls, answer, clock } = client()
    const reads = [read('b1')]
    await answer('token b1', 200)
    reads.push(read('b2'))
    await answer('token b2', 429)
    await clock.advance(3 * SECOND)
    await answer('read b1', 401)
    expect(calls).toEqual(['token b1', 'read b1', 'token b2'])
    expect(await resultsOf(reads)).toEqual([limited(4), limited(7)])
  })

  it('E6 none of a later read, although the one that met the limit was given up', async () => {
    const { read, calls, answer, clock } = client()
    read('b1').abort()
    await answer('token b1', 429)
    await clock.advance(7 * SECOND - 1)
    read('b2')
    await clock.rest()
    expect(calls).toEqual(['token b1'])
    await clock.advance(1)
    read('b2')
    await clock.rest()
    expect(calls).toEqual(['token b1', 'token b2'])
  })

  it('E6 none after a shorter time for which it asks later', async () => {
    const { read, calls, answer, clock } = client()
    read('b1')
    read('b2')
    await answer('token b1', 429)
    await answer('token b2', 429, 1)
    await clock.advance(2 * SECOND)
    read('b3')
    await clock.rest()
    expect(calls).toEqual(['token b1', 'token b2'])
  })
})

const resultsOf = (reads: { result: Promise<unknown> }[]) => Promise.all(reads.map(({ result }) => result))

/** A client whose calls wait for their answers. */
function client({ concurrency = 4 } = {}) {
  const clock = createVirtualClock()
  const calls: string[] = []
  const waiting = new Map<string, (response: Response) => void>()

  function fetch(input: string | URL | Request, { headers }: RequestInit = {}): Promise<Response> {
    const business = new URL(String(input)).searchParams.get('business_uid')
    const call = business
      ? `token ${business}`
      : `read ${new Headers(headers).get('authorization')?.slice(7)}`
    calls.push(call)
    return new Promise((resolve) => waiting.set(call, resolve))
  }

  const { readSubscription } = createPlatformClient({
    ...PLATFORM_DEFAULTS,
    baseUrl: 'https://api.platform.example',
    authUrl: 'https://auth.platform.example',
    clientId: 'app',
    clientSecret: 'secret',
    concurrency,
    clock: clock.forProcess(),
    timeoutMs: 30 * SECOND,
    fetch,
  })
  return {
    clock,
    calls,
    read(businessUid: string) {
      const controller = new AbortController()
      const request = { subscriptionUid: 's', businessUid, signal: controller.signal }
      return { result: readSubscription(request), abort: () => controller.abort() }
    },
    /** Answers a call. The token of a business is its own uid. */
    async answer(call: string, status: number, seconds = 7) {
      await clock.rest()
      const headers = { 'retry-after': String(seconds) }
      waiting.get(call)?.(Response.json({ access_token: call.slice(6) }, { status, headers }))
      await clock.rest()
    },
  }
}
