import { describe, expect, it } from '@jest/globals'
import { nextTurn } from '../../../lib/base/waiting.js'
import { openMarketplace, startPlatform } from '../../support/scene.js'
import { changesOf, type Line, sell } from '../../support/scenes/sold.js'
import { gate, until } from '../../support/until.js'

describe('subscriptions.import', () => {
  it('takes no more lines of a slow source than fit in memory, and releases the source at the end', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform)
    const sold = sell(platform, 600)
    const held = gate()
    let given = 0
    let isOver = false
    async function* lines() {
      try {
        for (const each of sold) {
          given++
          yield each
        }
      } finally {
        isOver = true
      }
    }
    const aborting = new AbortController()
    const importing = marketplace.subscriptions.import(lines(), {
      signal: aborting.signal,
      onProgress: () => held.opened,
    })
    await until(
      'a result waits for its listener',
      async () => ((await marketplace.health()).counts?.active ?? 0) > 0,
    )
    const seen = given
    expect(seen).toBeLessThanOrEqual(251)
    aborting.abort()
    held.open()
    const { done, read, pending, total } = await importing
    expect([done, total]).toEqual([read + pending, undefined])
    expect(given).toBeLessThanOrEqual(251)
    await until('the source is released', () => isOver)
  })

  it('takes no further lines while the listener of a result is at work', async () => {
    const marketplace = openMarketplace(await startPlatform())
    const held = gate()
    let given = 0
    let isHeld = false
    async function* lines() {
      for (let i = 0; i < 20; i++) {
        given++
        // Not a line, so its result follows at once.
        yield { line: i } as never
        await nextTurn()
      }
    }
    const importing = marketplace.subscriptions.import(lines(), {
      onProgress() {
        isHeld = true
        return held.opened
      },
    })
    await until('the listener is at work', () => isHeld)
    for (let turn = 0; turn < 50; turn++) await nextTurn()
    expect(given).toBeLessThanOrEqual(2)
    held.open()
    expect(await importing).toMatchObject({ done: 20, invalid: 20 })
  })

  it('returns the results of earlier lines while the source waits for its next', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform)
    const [first, second] = sell(platform, 2) as [Line, Line]
    const next = gate()
    async function* lines() {
      yield first
      await next.opened
      yield second
    }
    const summary = await marketplace.subscriptions.import(lines(), { onProgress: () => next.open() })
    expect(summary).toMatchObject({ read: 2 })
  })

  it('ends at once if it is aborted while the source waits', async () => {
    const marketplace = openMarketplace(await startPlatform())
    const aborting = new AbortController()
    async function* lines() {
      aborting.abort()
      await new Promise(() => {})
      yield { subscriptionUid: 's', businessUid: 'b' }
    }
    expect(await marketplace.subscriptions.import(lines(), { signal: aborting.signal })).toMatchObject({
      ended: 'aborted',
      done: 0,
    })
  })

  it('rejects with the error of the source, after requesting the earlier lines', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform)
    const [first] = sell(platform, 1) as [Line]
    function* lines() {
      yield first
      throw new Error('line 2 is no CSV')
    }
    await expect(marketplace.subscriptions.import(lines())).rejects.toThrow('line 2 is no CSV')
    await until('the first line is read', () => marketplace.isEntitled('business-0'))
  })

  it('rejects with the error of onProgress', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform)
    const onProgress = () => {
      throw new Error('the report is full')
    }
    const importing = marketplace.subscriptions.import(sell(platform, 2), { onProgress })
    await expect(importing).rejects.toThrow('the report is full')
  })

  it('rejects if the marketplace is closed during it or before it', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform, { worker: false })
    const importing = marketplace.subscriptions.import(sell(platform, 1))
    const rejected = expect(importing).rejects.toMatchObject({ code: 'closed' })
    await until('the read is requested', async () => (await marketplace.health()).counts?.requested === 1)
    await marketplace.close()
    await rejected
    await expect(marketplace.subscriptions.import([])).rejects.toMatchObject({ code: 'closed' })
  })

  it('continues with the other lines if one line keeps failing, and that one ends as pending', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform)
    platform.faults.add({ on: 'token', kind: 'status', status: 500, times: 1_000_000 })
    const { notRead, ...summary } = await marketplace.subscriptions.import(sell(platform, 1), {
      answerTimeoutMs: 300,
    })
    expect(summary.pending).toBe(1)
    expect(notRead).toHaveLength(1)
  })

  it.each([
    ['a text', 'customers.csv', {}, 'expected an iterable'],
    ['nothing', undefined, {}, 'expected an iterable'],
    [
      'an unknown option',
      [],
      { quiet: true },
      '"quiet", known are announce, onProgress, signal, answerTimeoutMs',
    ],
    ['a wrong announce', [], { announce: 'no' }, 'announce: Invalid input: expected boolean'],
    ['a wrong signal', [], { signal: 1 }, 'signal: expected an AbortSignal'],
    ['no time', [], { answerTimeoutMs: 0 }, 'answerTimeoutMs: '],
  ])('refuses %s', async (_what, lines, options, why) => {
    const marketplace = openMarketplace(await startPlatform())
    const importing = marketplace.subscriptions.import(lines as never, options as never)
    await expect(importing).rejects.toMatchObject({
      code: 'argument_invalid',
      message: expect.stringContaining(why),
    })
  })

  it('is complete at once without lines', async () => {
    const marketplace = openMarketplace(await startPlatform())
    expect(await marketplace.subscriptions.import(new Set())).toMatchObject({
      done: 0,
      total: 0,
      ended: 'complete',
    })
  })
})

describe('track', () => {
  it('makes no change for handlers if the option disables it', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform)
    const changes = changesOf(marketplace)
    const [quiet, loud] = sell(platform, 2) as [Line, Line]
    await marketplace.subscriptions.track(quiet, { announce: false })
    await until('the subscription is read', () => marketplace.isEntitled(quiet.businessUid))
    await marketplace.subscriptions.track(loud)
    await until('the change is handled', () => changes.length > 0)
    expect(changes.map(({ business_uid }) => business_uid)).toEqual([loud.businessUid])
    await expect(marketplace.subscriptions.track(loud, { announce: 1 as never })).rejects.toMatchObject({
      code: 'argument_invalid',
    })
  })
})
