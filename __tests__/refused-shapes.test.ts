import { describe, expect, it } from '@jest/globals'
import { z } from 'zod'
import { sampleDelivery } from '../lib/testing/index.js'
import { noticeOf } from './support/events.js'
import { createScene } from './support/scene.js'

const RENAMED = {
  entity_name: 'purchasable_subscription',
  event_type: 'update',
  data: { business: 'b1', subscription: 's1' },
}
const OWN = { entity_name: 'course', event_type: 'finished', data: { at: '2026-01-31' } }

describe('deliveries of a known event in another shape', () => {
  it.each([
    ['of the platform', RENAMED, '"purchasable_subscription update"'],
    ["of the app's own", OWN, '"course finished"'],
  ])('J36 degrade the health after ten in a row: an event %s', async (_whose, body, name) => {
    const { deliver, problems } = await opened()
    await deliver(body, 9)
    expect(await problems()).toEqual([])
    await deliver(body, 1)
    expect(await problems()).toEqual([expect.stringContaining(`last 10 deliveries of ${name}`)])
    // Another event that is recognised says nothing about this one.
    await deliver(sampleDelivery('application/installed'), 1)
    expect(await problems()).toHaveLength(1)
  })

  it('J36 are no problem any more once one is recognised', async () => {
    const { deliver, problems } = await opened()
    await deliver(RENAMED, 10)
    await deliver(OWN, 10)
    expect(await problems()).toEqual([
      expect.stringMatching(/"purchasable_subscription update".*"course finished"/),
    ])
    await deliver(noticeOf('s1'), 1)
    expect(await problems()).toEqual([expect.stringContaining('"course finished"')])
  })

  it('J36 are no problem beside deliveries of unknown events, however many', async () => {
    const { deliver, problems } = await opened()
    await deliver({ entity_name: 'weather', event_type: 'rain', data: {} }, 50)
    await deliver('text', 50)
    expect(await problems()).toEqual([])
  })
})

async function opened() {
  const scene = await createScene({
    worker: false,
    events: {
      'course/finished': {
        entity_name: 'course',
        event_type: 'finished',
        tokens: ['app'],
        data: z.object({ at: z.number() }),
      },
    },
  })
  await scene.marketplace.start()
  return {
    async deliver(body: unknown, times: number) {
      await scene.deliver(Array.from({ length: times }, () => body))
    },
    problems: async () => (await scene.marketplace.health()).problems.map(({ message }) => message),
  }
}
