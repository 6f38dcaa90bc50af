import { describe, expect, it } from '@jest/globals'
import type { ImportOptions } from '../../../lib/index.js'
import type { Simulator } from '../../../lib/testing/index.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { createScene, openMarketplace, startPlatform } from '../../support/scene.js'
import { changesOf, sell } from '../../support/scenes/sold.js'
import { until } from '../../support/until.js'

describe.each(ENGINE_NAMES)('subscriptions.import on %s', (engineName) => {
  const engine = useEngine(engineName)

  it('reads many and returns the result of each line once, with its number', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform, { store: await engine.freshAddress() })
    const changes = changesOf(marketplace)
    const sold = sell(platform, 40)
    platform.refuseTokens('business-7')
    const lines: unknown[] = [...sold]
    lines[10] = { subscriptionUid: 'not-there', businessUid: 'business-10' }
    lines[20] = { subscriptionUid: 'subscription-20' }
    lines[30] = null
    const { seen, onProgress } = collector()
    const summary = await marketplace.subscriptions.import(lines as never, { onProgress })
    expect(summary).toMatchObject({ done: 40, total: 40, read: 36, missing: 1, refused: 1, invalid: 2 })
    expect(summary).toMatchObject({
      pending: 0,
      ended: 'complete',
      explanation: 'All 40 lines have a result.',
    })
    expect(seen.map(({ line }) => line).sort((a, b) => a - b)).toEqual(sold.map((_, i) => i + 1))
    expect(seen.filter(({ result }) => result !== 'read').sort((a, b) => a.line - b.line)).toEqual([
      line(8, 'subscription-7', 'business-7', 'refused', 'token_refused: '),
      line(11, 'not-there', 'business-10', 'missing', 'platform_record_missing: '),
      line(21, 'subscription-20', null, 'invalid', 'Cannot use businessUid: '),
      line(31, null, null, 'invalid', 'Cannot use subscriptionUid: '),
    ])
    expect(new Set(summary.notRead.map((each) => each.line))).toEqual(new Set([8, 11, 21, 31]))
    expect(await marketplace.isEntitled('business-39')).toBe(true)
    await until('all changes are handled', () => changes.length === 36)
  })

  it('says why the first line was not read, and what to do, if no line was', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform, { store: await engine.freshAddress() })
    platform.addBusiness('b1')
    const explanationOf = async (...lines: unknown[]) =>
      (await marketplace.subscriptions.import(lines as never)).explanation
    expect(await explanationOf({ subscription_uid: 's1', business_uid: 'b1' }, null)).toBe(
      'None of the 2 lines was read. Why the first was not: Cannot use subscriptionUid: expected an identifier, got none. Each line must be { subscriptionUid, businessUid }.',
    )
    expect(await explanationOf({ subscriptionUid: 'not-there', businessUid: 'b1' })).toMatch(
      /^None of the 1 lines was read\. Why the first was not: platform_record_missing: .*\. Compare the uids/,
    )
    expect(await explanationOf()).toBe('All 0 lines have a result.')
  })

  it('takes the lines that were not read again, as they are', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform, { store: await engine.freshAddress() })
    const sold = sell(platform, 3)
    const outage = platform.faults.add({ on: 'read', kind: 'status', status: 403 })
    const first = await marketplace.subscriptions.import([
      ...sold,
      { subscriptionUid: 'subscription-0', businessUid: null as never },
    ])
    expect(first).toMatchObject({ read: 0, refused: 3, invalid: 1 })
    outage.remove()
    const second = await marketplace.subscriptions.import(first.notRead)
    expect(second).toMatchObject({ done: 4, read: 3, invalid: 1 })
    expect(second.notRead).toMatchObject([{ subscriptionUid: 'subscription-0', businessUid: null }])
  })

  it('requests no read again in a second run, even after an abort', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform, { store: await engine.freshAddress() })
    const sold = sell(platform, 40)
    const aborting = new AbortController()
    const first = await marketplace.subscriptions.import(sold, {
      signal: aborting.signal,
      onProgress: ({ read }) => (read === 10 ? aborting.abort() : undefined),
    })
    expect(first).toMatchObject({ ended: 'aborted', total: 40 })
    expect(first.read).toBeGreaterThanOrEqual(10)
    expect(first.read + first.pending).toBe(first.done)
    expect(await marketplace.subscriptions.import(sold)).toMatchObject({ read: 40, done: 40, pending: 0 })
    expect(await marketplace.subscriptions.import(sold)).toMatchObject({ read: 40, done: 40, pending: 0 })
    const read = readsOf(platform)
    expect([read.length, new Set(read).size]).toEqual([40, 40])
  })

  it('ends with closed when the marketplace is closed, whatever it waits for', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform, { store: await engine.freshAddress() })
    platform.faults.add({ on: 'platform', kind: 'down' })
    const importing = marketplace.subscriptions.import(sell(platform, 2)).catch(({ code }) => code)
    await until('both are requested', async () => (await marketplace.health()).counts?.requested === 2)
    await marketplace.close()
    expect(await importing).toBe('closed')
  })

  it('makes no changes without announcements, even after a restart; a later change is announced', async () => {
    const platform = await startPlatform()
    const store = await engine.freshAddress()
    const sold = sell(platform, 5)
    const outage = platform.faults.add({ on: 'platform', kind: 'down' })
    const before = openMarketplace(platform, { store })
    const aborting = new AbortController()
    const importing = before.subscriptions.import(sold, { announce: false, signal: aborting.signal })
    await until('all reads are requested', async () => (await before.health()).counts?.requested === 5)
    aborting.abort()
    expect(await importing).toMatchObject({ ended: 'aborted', pending: 5, done: 5 })
    await before.close()
    outage.remove()
    const marketplace = openMarketplace(platform, { store })
    const changes = changesOf(marketplace)
    await until('all subscriptions are read', async () => (await marketplace.health()).counts?.active === 5)
    platform.paymentIssue('subscription-3')
    await marketplace.businesses.refresh('business-3')
    await until('the change is handled', () => changes.length > 0)
    expect(changes).toEqual([
      expect.objectContaining({ subscription_uid: 'subscription-3', from: 'purchased' }),
    ])
    expect(await marketplace.journal.list({ kind: 'change' })).toHaveLength(1)
  })

  it('announces the change of an event that arrives before the quiet read', async () => {
    const scene = await createScene({ store: await engine.freshAddress() })
    const { platform, marketplace } = scene
    const changes = changesOf(marketplace)
    const outage = platform.faults.add({ on: 'read', kind: 'status', status: 503 })
    platform.faults.add({ on: 'delivery', kind: 'drop', times: 2 })
    const sold = sell(platform, 2)
    await platform.settled()
    const importing = marketplace.subscriptions.import(sold, { announce: false })
    await until('both reads are requested', async () => (await marketplace.health()).counts?.requested === 2)
    platform.cancel('subscription-1')
    await platform.settled()
    outage.remove()
    expect(await importing).toMatchObject({ read: 2 })
    await until('the change is handled', () => changes.length > 0)
    expect(changes).toEqual([
      expect.objectContaining({ subscription_uid: 'subscription-1', from: null, to: 'canceled' }),
    ])
  })

  it('leaves the reads to a running app if its own worker is off, and finds their results', async () => {
    const platform = await startPlatform()
    const store = await engine.freshAddress()
    const sold = sell(platform, 30)
    const app = openMarketplace(platform, { store })
    await app.start()
    // libsql does not share a SQLite file, so there the script is the app itself.
    const script = engine.name === 'SQLite' ? app : openMarketplace(platform, { store, worker: false })
    expect(await script.subscriptions.import(sold)).toMatchObject({ ended: 'complete', read: 30 })
  })

  it('ends with pending lines and an explanation if no worker runs', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform, { store: await engine.freshAddress(), worker: false })
    const { seen, onProgress } = collector()
    const summary = await marketplace.subscriptions.import(sell(platform, 3), {
      onProgress,
      answerTimeoutMs: 50,
    })
    expect(summary).toMatchObject({ ended: 'unanswered', done: 3, pending: 3 })
    expect(summary.explanation).toMatch(
      /^No read was answered for 0.05 s, .* 3 lines pending. Check with health\(\) that a worker runs/,
    )
    expect(seen.map(({ result }) => result)).toEqual(['pending', 'pending', 'pending'])
    expect((await marketplace.health()).counts).toMatchObject({ requested: 3 })
  })

  it('returns the results for several lines of one subscription one after the other, for any business', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform, { store: await engine.freshAddress() })
    const [sold] = sell(platform, 1)
    platform.addBusiness('wrong')
    const { seen, onProgress } = collector()
    const lines = [{ ...sold, businessUid: 'wrong' }, sold, sold, { ...sold, businessUid: 'wrong' }]
    await marketplace.subscriptions.import(lines as never, { onProgress })
    expect(seen.map(({ line: number, result }) => [number, result])).toEqual([
      [1, expect.stringMatching(/missing|refused/)],
      [2, 'read'],
      [3, 'read'],
      [4, 'refused'],
    ])
    expect(await marketplace.isEntitled(sold?.businessUid as string)).toBe(true)
    expect(await marketplace.isEntitled('wrong')).toBe(false)
  })
})

type Progress = Parameters<NonNullable<ImportOptions['onProgress']>>[0]
type Line = Parameters<NonNullable<ImportOptions['onProgress']>>[1]

function collector() {
  const seen: Line[] = []
  return {
    seen,
    onProgress(progress: Progress, each: Line) {
      seen.push(each)
      expect(progress.done).toBe(seen.length)
    },
  }
}

function line(
  number: number,
  subscriptionUid: string | null,
  businessUid: string | null,
  result: string,
  why: string,
) {
  return { line: number, subscriptionUid, businessUid, result, why: expect.stringContaining(why) }
}

/** The subscriptions that were read, each as often as it was read. */
function readsOf(platform: Simulator): string[] {
  return platform.requests
    .filter(({ endpoint }) => endpoint === 'read')
    .map(({ subscription_uid }) => subscription_uid as string)
}
