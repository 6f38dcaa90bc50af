import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../../../lib/base/clock.js'
import { POLL_MS, started } from '../../support/scenes/lease-loop.js'

describe('the end of a loop', () => {
  it('comes at once when no item runs, and no look follows', async () => {
    const { loop, clock, looks } = await started()
    await loop.close(10 * SECOND)
    loop.wake()
    loop.start()
    await clock.advance(10 * POLL_MS)
    expect(looks).toHaveLength(1)
    expect(clock.timers()).toBe(0)
  })

  it('waits for running items, and does not abort those that end in time', async () => {
    const { loop, clock, end, aborted, run } = await started()
    await run('a')
    const closed = note(loop.close(5 * SECOND))
    await clock.advance(4 * SECOND)
    expect(closed.is).toBe(false)
    end('a')
    await clock.rest()
    expect([closed.is, aborted]).toEqual([true, []])
    expect(clock.timers()).toBe(0)
  })

  it('aborts items that do not end in time, and leaves them behind after one more second', async () => {
    const { loop, clock, aborted, run } = await started()
    await run('a')
    const closed = note(loop.close(5 * SECOND))
    await clock.advance(5 * SECOND - 1)
    expect(aborted).toEqual([])
    await clock.advance(1)
    expect([aborted, closed.is]).toEqual([['a'], false])
    await clock.advance(SECOND - 1)
    expect(closed.is).toBe(false)
    await clock.advance(1)
    expect(closed.is).toBe(true)
  })

  it('leaves items behind after its grace at the latest', async () => {
    const { loop, clock, run } = await started()
    await run('a')
    const closed = note(loop.close(100))
    await clock.advance(199)
    expect(closed.is).toBe(false)
    await clock.advance(1)
    expect(closed.is).toBe(true)
  })

  it('waits for a claim under way, whose items go back', async () => {
    const { loop, clock, hold, looks, returned, run } = await started({ concurrency: 5 })
    hold()
    await run('a')
    const closed = note(loop.close(5 * SECOND))
    await clock.rest()
    expect(closed.is).toBe(false)
    hold.release()
    await clock.rest()
    expect([returned, closed.is]).toEqual([['a'], true])
    const before = looks.length
    await clock.advance(10 * POLL_MS)
    expect(looks).toHaveLength(before)
  })
})

describe('an item that is to run alone', () => {
  it('begins once the items of a claim under way have ended', async () => {
    const { loop, clock, hold, end, run } = await started()
    hold()
    await run('a')
    const halted = note(loop.halt())
    hold.release()
    await clock.rest()
    expect(halted.is).toBe(false)
    end('a')
    await clock.rest()
    expect(halted.is).toBe(true)
  })

  it('keeps others out until the loop goes on', async () => {
    const { loop, clock, looks, run } = await started()
    await loop.halt()
    const before = looks.length
    await run('a')
    await clock.advance(10 * POLL_MS)
    expect(looks).toHaveLength(before)
    loop.resume()
    await clock.advance(POLL_MS)
    expect(loop.items()).toEqual(['a'])
  })

  it('and was claimed during the close goes back at once', async () => {
    const { loop, clock, returned, aborted } = await started()
    await loop.halt()
    await loop.close(0)
    await Promise.all([loop.runAlone('a', clock.now() + 60 * SECOND), clock.rest()])
    expect([returned, aborted]).toEqual([['a'], ['a before it began']])
  })
})

describe('a claim that does not end', () => {
  it('delays the end of the loop no longer than its grace', async () => {
    const { loop, clock, hold } = await started()
    hold()
    loop.wake()
    await clock.advance(10)
    const closed = note(loop.close(5 * SECOND))
    await clock.advance(5 * SECOND - 1)
    expect(closed.is).toBe(false)
    await clock.advance(1)
    expect(closed.is).toBe(true)
  })
})

describe('the lease of an item that', () => {
  it('is lost to another claimer aborts the item', async () => {
    const { loop, clock, due, aborted } = await started({ isRenewed: false })
    due('a')
    loop.wake()
    await clock.advance(20 * SECOND - 1)
    expect(aborted).toEqual([])
    await clock.advance(20)
    expect(aborted).toEqual(['a'])
  })

  it('ends before the first renewal is never renewed', async () => {
    const { clock, end, renewed, run } = await started({ concurrency: 2 })
    await run('a', 'b')
    end('a')
    await clock.advance(20 * SECOND)
    expect(renewed).toEqual(['b'])
    end('b')
    await clock.advance(60 * SECOND)
    expect(renewed).toEqual(['b'])
  })

  it.each([60, 70])(
    'was claimed for a minute, %d s after the claim began, has ended, so the item goes back',
    async (tookS) => {
      const { loop, clock, hold, aborted, run } = await started({ pollMs: 1_000 * SECOND })
      hold()
      await run('a')
      await clock.advance(tookS * SECOND)
      hold.release()
      await clock.rest()
      expect([loop.items(), aborted]).toEqual([[], ['a before it began']])
    },
  )

  it('was claimed slowly is renewed before its lease ends', async () => {
    const { loop, clock, due, hold, renewed, aborted } = await started({ pollMs: 1_000 * SECOND })
    hold()
    due('a')
    loop.wake()
    await clock.advance(50 * SECOND)
    hold.release()
    await clock.advance(9 * SECOND)
    expect([renewed, aborted]).toEqual([[], []])
    await clock.advance(2 * SECOND)
    expect([loop.items(), aborted.length + renewed.length]).toEqual([['a'], 1])
  })
})

function note(ending: Promise<void>) {
  const noted = { is: false }
  ending.then(() => {
    noted.is = true
  })
  return noted
}
