import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../lib/base/clock.js'
import type { NewEvent } from '../../lib/store/port/store.js'
import { storeFor } from '../../lib/store-option.js'
import { onCleanUp } from '../support/clean-up.js'
import { withStoreFaults } from '../support/engines/store-faults.js'

describe('a store with faults', () => {
  it('does nothing in an unavailable call, and all of the work in an unacknowledged one', async () => {
    const store = await openFaulty()
    const first = store.faults.add({ on: 'accept', kind: 'unavailable', times: 2 })
    for (const id of ['a', 'b'])
      await expect(store.accept([event(id)])).rejects.toMatchObject({ code: 'store_unavailable' })
    store.faults.add({ on: ['accept', 'counts'], kind: 'unacknowledged', times: 1 })
    await expect(store.accept([event('c')])).rejects.toMatchObject({ code: 'store_unavailable' })
    await store.accept([event('d')])
    expect((await store.listEntries({})).map(({ id }) => id)).toEqual(['d', 'c'])
    expect(first.strikes).toBe(2)
  })

  it('holds a call that hangs until it is released, and then runs it', async () => {
    const store = await openFaulty()
    const hang = store.faults.add({ on: 'accept', kind: 'hang', times: 1 })
    const accepted = store.accept([event('a')])
    await store.accept([event('b')])
    expect([store.faults.held, (await store.listEntries({})).length]).toEqual([1, 1])
    hang.remove()
    await accepted
    expect([store.faults.held, (await store.listEntries({})).length]).toEqual([0, 2])
  })

  it('releases hanging calls when it is closed, and when its faults are cleared', async () => {
    const store = await openFaulty()
    store.faults.add({ on: 'counts', kind: 'hang' })
    const first = store.counts()
    store.faults.clear()
    expect((await first).pending).toBe(0)
    expect((await store.counts()).pending).toBe(0)
    store.faults.add({ kind: 'hang' })
    const second = store.counts()
    await store.close()
    await expect(second).rejects.toMatchObject({ code: 'store_unavailable' })
  })

  it('fails in the same way for the same seed, whatever other calls come in between', async () => {
    const strikesOf = async (seed: number, isBusy: boolean) => {
      const store = await openFaulty(seed)
      store.faults.add({ kind: 'unavailable', probability: 0.5 })
      const struck: boolean[] = []
      for (let i = 0; i < 40; i++) {
        struck.push(await store.counts().then(...BOTH))
        if (isBusy) await store.subscriptionsOf('b').then(...BOTH)
      }
      return struck
    }
    const first = await strikesOf(7, false)
    expect(await strikesOf(7, true)).toEqual(first)
    expect(await strikesOf(8, false)).not.toEqual(first)
    expect(new Set(first).size).toBe(2)
  })

  it.each([
    [{ kind: 'slow' }, 'kind'],
    [{ kind: 'hang', on: 'close' }, 'close'],
    [{ kind: 'hang', times: 0 }, 'times'],
    [{ kind: 'hang', probability: 1.5 }, 'probability'],
  ])('refuses the fault %j', (fault, word) => {
    const store = withStoreFaults(storeFor('sqlite::memory:', systemClock))
    expect(() => store.faults.add(fault as never)).toThrow(
      expect.objectContaining({ code: 'argument_invalid', message: expect.stringContaining(word) }),
    )
  })
})

const BOTH = [() => false, () => true] as const

async function openFaulty(seed = 1) {
  const store = withStoreFaults(storeFor('sqlite::memory:', systemClock), { seed })
  onCleanUp(() => store.close())
  await store.open()
  return store
}

function event(id: string): NewEvent {
  return {
    id,
    kind: 'event',
    name: 'purchasable_subscription/update',
    key: id,
    businessUid: null,
    subscriptionUid: null,
    payload: '{}',
    issues: null,
    refresh: null,
  }
}
