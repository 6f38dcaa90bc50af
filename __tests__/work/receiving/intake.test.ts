import { describe, expect, it } from '@jest/globals'
import { HOUR } from '../../../lib/base/clock.js'
import { createClassifier } from '../../../lib/events/classify.js'
import { createRegistry } from '../../../lib/events/registry.js'
import type { NewEvent } from '../../../lib/store/port/store.js'
import { createIntake } from '../../../lib/work/receiving/intake.js'
import type { NamedItem } from '../../../lib/work/receiving/requested-reads.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'

describe('A226 long arrays of somebody who has the delivery secret', () => {
  it('are classified a few elements at a time, so that a short delivery is stored before them', async () => {
    const { accept, classified, stored } = setUp()
    const long = [accept(1_000), accept(1_000)]
    await new Promise((resolve) => setImmediate(resolve))
    await accept(1)
    expect(stored).toEqual([1])
    expect(classified()).toBeLessThan(100)
    await Promise.all(long)
    expect([classified(), stored]).toEqual([2_001, [1, 1, 1]])
  })

  it('wait in a bounded number, and are refused and counted beyond it, and when their senders have given up', async () => {
    const { accept, stored, time, intake } = setUp()
    const refused = { code: 'delivery_turned_away' }
    const many = Array.from({ length: 501 }, () => accept(17))
    await expect(many[500]).rejects.toMatchObject(refused)
    await Promise.all(many.slice(0, 500))
    const late = Array.from({ length: 64 }, () => accept(1_000).catch((error) => error))
    await time.advance(2_500)
    expect(await Promise.all(late)).toEqual(late.map(() => expect.objectContaining(refused)))
    await accept(1_000)
    expect([stored.length, intake.turnedAway()]).toEqual([501, 65])
    await time.advance(HOUR + 1)
    expect(intake.turnedAway()).toBe(0)
  })

  it('take turns, so that shorter ones are stored first, and the longest are refused for them', async () => {
    const { accept } = setUp()
    const ended: string[] = []
    const lengths = [...Array.from({ length: 63 }, () => 1_000), 999, 20, 17]
    await Promise.all(
      lengths.map((length) =>
        accept(length).then(
          () => ended.push(`${length} stored`),
          () => ended.push(`${length} refused`),
        ),
      ),
    )
    expect(ended.slice(0, 3)).toEqual(['1000 refused', '20 stored', '17 stored'])
    expect(ended.slice(3).sort()).toEqual([...lengths.slice(0, 62).map(() => '1000 stored'), '999 stored'])
  })

  it.each([17, 350])(
    'of %i elements that follow each other without end delay a slightly longer one by their number',
    async (madeUp) => {
      const { accept } = setUp()
      let isOver = false
      let before = 0
      const senders = Array.from({ length: 80 }, async () => {
        while (!isOver) {
          await accept(madeUp)
          if (!isOver) before++
        }
      })
      await accept(20)
      isOver = true
      await Promise.all(senders)
      expect(before).toBeLessThanOrEqual(2 * senders.length)
    },
  )

  it('are refused with the error of an element that cannot be classified, and others go on', async () => {
    const { accept, breakNext } = setUp()
    breakNext(new Error('from the test'))
    const [first, second] = [accept(17), accept(17)]
    await expect(first).rejects.toThrow('from the test')
    await second
    await accept(17)
  })
})

describe('accepting', () => {
  it('empties the list of envelopes, so that none of their values is kept by who waits', async () => {
    const { intake } = setUp()
    for (const length of [1, 17]) {
      const envelopes = Array.from({ length }, () => ({ value: 1, text: '1' }))
      const accepted = intake.accept(envelopes)
      expect(envelopes).toEqual([])
      expect(await accepted).toHaveLength(length)
    }
  })

  it('tells which item a notice names, once it is on disk', async () => {
    const noted: (NamedItem | undefined)[] = []
    let failure: Error | undefined
    const intake = createIntake({
      classify: createClassifier(createRegistry()),
      store: {
        async accept() {
          if (failure) throw failure
          return []
        },
      },
      ...{ purchasableUids: ['mine'], codeNames: [], isAccess: () => undefined },
      clock: createVirtualClock().forProcess(),
      onAccepted: (_event, item) => noted.push(item),
    })
    const accept = (event_type: string, data: object) => {
      const value = { entity_name: 'purchasable_subscription', event_type, data }
      return intake.accept([{ value, text: JSON.stringify(value) }])
    }
    const notice = (item: string | null) =>
      accept('created', { subscription_uid: 's1', business_id: 'b1', purchasable_uid: item })
    failure = new Error('disk full')
    await expect(notice('mine')).rejects.toThrow('disk full')
    expect(noted).toEqual([])
    failure = undefined
    for (const item of ['theirs', null, 'mine']) await notice(item)
    await accept('updated', { uid: 's1', business_uid: 'b1', purchasable_uid: 'mine' })
    expect(noted).toEqual(['other', 'none', 'own', undefined])
  })
})

function setUp() {
  const time = createVirtualClock()
  const stored: number[] = []
  let count = 0
  let broken: Error | undefined
  const intake = createIntake({
    classify() {
      count++
      const error = broken
      broken = undefined
      if (error) throw error
      return { recognised: false, isKnownEvent: false, issues: [] }
    },
    store: {
      async accept(events: readonly NewEvent[]) {
        stored.push(events.length)
        return []
      },
    },
    ...{ purchasableUids: [], codeNames: [], isAccess: () => undefined, clock: time.forProcess() },
  })
  const accept = (length: number) => intake.accept(Array.from({ length }, () => ({ value: 1, text: '1' })))
  const breakNext = (error: Error) => {
    broken = error
  }
  return { accept, intake, stored, time, breakNext, classified: () => count }
}
