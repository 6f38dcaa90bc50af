import { describe, expect, it } from '@jest/globals'
import { SECOND } from '../../../lib/base/clock.js'
import { loopOver, POLL_MS, started } from '../../support/scenes/lease-loop.js'
import { gate } from '../../support/until.js'

describe('a look for work', () => {
  it('follows the start, and then comes within a fifth of the poll interval', async () => {
    const { loop, clock, looks, lookedAt } = loopOver()
    loop.wake()
    await clock.advance(10 * POLL_MS)
    expect(looks).toEqual([])
    loop.start()
    loop.start()
    await clock.rest()
    expect(looks).toHaveLength(1)
    await clock.advance(60 * POLL_MS)
    const pauses = looks.slice(1).map(({ at }, i) => at - (looks[i]?.at ?? 0))
    expect(pauses.length).toBeGreaterThan(48)
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(POLL_MS * 0.8)
    expect(Math.max(...pauses)).toBeLessThanOrEqual(POLL_MS * 1.2 + 1)
    expect(lookedAt()).toBe(looks.at(-1)?.at)
  })

  it('follows a wake-up at once, and comes at most every 10 ms during a flood of them', async () => {
    const { loop, clock, looks } = await started()
    await clock.advance(100)
    loop.wake()
    await clock.advance(0)
    expect(looks).toHaveLength(2)
    for (let ms = 0; ms < 100; ms++) {
      loop.wake()
      await clock.advance(1)
    }
    expect(looks.length).toBeGreaterThanOrEqual(11)
    expect(looks.length).toBeLessThanOrEqual(13)
  })

  it.each([
    [4, 40],
    [50, 100],
  ])('that took %d ms and found nothing is followed by a rest of %d ms', async (tookMs, restMs) => {
    const { loop, clock, looks, hold } = await started()
    await clock.advance(100)
    // Planned before the rest is known.
    for (let ms = 10; ms < restMs; ms += 10) loop.wake(tookMs + ms)
    hold()
    loop.wake()
    await clock.advance(tookMs)
    hold.release()
    await clock.rest()
    expect(looks).toHaveLength(2)
    for (let ms = 0; ms < restMs - 1; ms++) {
      loop.wake()
      await clock.advance(1)
    }
    expect(looks).toHaveLength(2)
    // A wake-up waits for the next step of 10 ms.
    await clock.advance(11)
    expect(looks).toHaveLength(3)
  })

  it('comes at the time of each later wake-up, unless a poll comes well before', async () => {
    const { loop, clock, looks, begunAt } = await started({ pollMs: 60 * SECOND })
    loop.wake(20 * SECOND)
    loop.wake(10 * SECOND)
    await clock.advance(40 * SECOND)
    expect(looks.map(({ at }) => at - begunAt)).toEqual([0, 10 * SECOND, 20 * SECOND])
    expect(clock.timers()).toBe(1)
  })

  it('is not planned for a wake-up more than two poll intervals ahead, because a poll will find that work', async () => {
    const { loop, clock, looks } = await started()
    for (let ms = 0; ms < 1_000; ms += 10) loop.wake(2 * POLL_MS + 10 + ms)
    await clock.advance(5 * POLL_MS)
    expect(looks.length).toBeLessThan(8)
    loop.wake(2 * POLL_MS)
    const now = clock.now()
    await clock.advance(2 * POLL_MS + 10)
    expect(looks.filter(({ at }) => at >= now + 2 * POLL_MS)).toHaveLength(1)
  })

  it('that fails is reported, and another look follows', async () => {
    const { loop, clock, looks, errors, due } = loopOver({
      claims: () => {
        if (looks.length === 1) throw new Error('no database')
      },
    })
    due('a')
    loop.start()
    await clock.rest()
    expect([errors.length, loop.items()]).toEqual([1, []])
    await clock.advance(2 * POLL_MS)
    expect(loop.items()).toEqual(['a'])
  })

  it('is never followed by a second one before it has ended', async () => {
    const hold = gate()
    const { loop, clock, looks } = loopOver({ claims: () => hold.opened })
    loop.start()
    for (let i = 0; i < 5; i++) {
      loop.wake()
      await clock.advance(POLL_MS)
    }
    expect(looks).toHaveLength(1)
    hold.open()
    await clock.advance(100)
    expect(looks).toHaveLength(2)
  })
})

describe('the slots of a loop', () => {
  it('are never more than the concurrency, and are filled as soon as one is free', async () => {
    const { clock, looks, end, loop, run } = await started({ concurrency: 2 })
    await run('a', 'b', 'c', 'd')
    expect(loop.items()).toEqual(['a', 'b'])
    expect(looks.at(-1)?.limit).toBe(2)
    await clock.advance(SECOND)
    end('a')
    await clock.rest()
    expect(loop.items()).toEqual(['b', 'c'])
    expect(looks.at(-1)?.limit).toBe(1)
  })

  it('become free when an item fails, and the failure is reported', async () => {
    const { clock, end, loop, errors, run } = await started({ concurrency: 1 })
    await run('a', 'b')
    end('a', new Error('odd'))
    await clock.rest()
    expect(loop.items()).toEqual(['b'])
    expect(errors).toEqual([new Error('odd')])
  })

  it('are not taken by items that wait', async () => {
    const { loop, run } = await started({
      concurrency: 2,
      isWaiting: (item: string) => item.startsWith('waiting'),
    })
    await run('waiting 1', 'waiting 2', 'waiting 3', 'a', 'b', 'c')
    expect(loop.items()).toEqual(['waiting 1', 'waiting 2', 'waiting 3', 'a', 'b'])
  })

  it('are not taken by items that are being written', async () => {
    const { clock, loop, leaveSlot, run } = await started()
    await run('a', 'b', 'c')
    expect(loop.items()).toEqual(['a'])
    await clock.advance(SECOND)
    leaveSlot('a')
    await clock.rest()
    expect(loop.items()).toEqual(['a', 'b'])
  })

  it('are filled from items that are leased ahead; a look follows when half of those are used', async () => {
    const { clock, loop, end, looks, returned, run } = await started({ concurrency: 2 })
    await run('quick')
    await clock.advance(15)
    end('quick')
    await clock.advance(10)
    // It held its slot for 15 ms, so four more are leased.
    await run('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i')
    expect(loop.items()).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
    const before = looks.length
    for (const item of ['a', 'b']) end(item)
    await clock.rest()
    expect([looks.length - before, loop.items()]).toEqual([0, ['c', 'd', 'e', 'f']])
    end('c')
    await clock.rest()
    expect(looks.length - before).toBe(1)
    expect(loop.items()).toHaveLength(6)
    // Those that have no slot by the end go back.
    const closed = loop.close(0)
    await clock.advance(2 * SECOND)
    await closed
    expect(returned).toEqual(['f', 'g', 'h', 'i'])
  })

  it('that become free cause no look at once if the last claim has leased all due items', async () => {
    for (const knowsAll of [true, false]) {
      const { clock, end, looks, run } = await started({ concurrency: 4, knowsAll })
      await run('a', 'b')
      const before = looks.length
      end('a')
      await clock.rest()
      expect(looks.length - before).toBe(knowsAll ? 0 : 1)
      await clock.advance(10)
      expect(looks.length - before).toBe(1)
      end('b')
      await clock.advance(10)
    }
  })

  it('that become free after a claim that reached its limit are filled at once', async () => {
    const { clock, loop, end, looks, run } = await started({ concurrency: 2, knowsAll: true })
    await run('a', 'b', 'c')
    const before = looks.length
    end('a')
    await clock.rest()
    expect([looks.length - before, loop.items()]).toEqual([1, ['b', 'c']])
  })

  it('that become free during a look are filled by the next look, without a rest', async () => {
    const { clock, due, loop, end, looks, hold, run } = await started({ concurrency: 2 })
    await run('a')
    hold()
    loop.wake()
    await clock.advance(10)
    end('a')
    await clock.rest()
    due('b', 'c')
    const before = looks.length
    hold.release()
    await clock.rest()
    expect(looks.length).toBeGreaterThan(before)
    expect(loop.items()).toEqual(['b', 'c'])
  })
})
