import { describe, expect, it } from '@jest/globals'
import { z } from 'zod'
import { DAY, HOUR } from '../../../lib/base/clock.js'
import { checkDelivery } from '../../../lib/cli/doctor/delivery.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { noticeOf } from '../../support/events.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { createScene } from '../../support/scene.js'

const RENAMED = {
  entity_name: 'purchasable_subscription',
  event_type: 'update',
  data: { business: 'b1', subscription: 's1' },
}
const OWN = { entity_name: 'course', event_type: 'finished', data: { at: '2026-01-31' } }

const NOTICE = sampleDelivery('purchasable_subscription/create')
const OTHER = { entity_name: 'weather', event_type: 'rain', data: {} }
const { entity_name, event_type, data } = NOTICE

describe('deliveries of a known event in another shape', () => {
  it.each([
    ['of the platform', RENAMED, '"purchasable_subscription update"'],
    ["of the app's own", OWN, '"course finished"'],
  ])('J36 degrade the health after six of the last ten: an event %s', async (_whose, body, name) => {
    const { deliver, problems } = await opened()
    await deliver(body, 5)
    expect(await problems()).toEqual([])
    await deliver(body, 1)
    expect(await problems()).toEqual([expect.stringContaining(`6 of the last 6 deliveries of ${name}`)])
    // Another event that is recognised says nothing about this one.
    await deliver(sampleDelivery('application/installed'), 20)
    expect(await problems()).toHaveLength(1)
  })

  it('J36 degrade the health without a pause while a few are recognised, until three in a row are', async () => {
    const { deliver, problems } = await opened()
    await deliver(RENAMED, 7)
    for (let i = 0; i < 5; i++) {
      await deliver(noticeOf('s1'), 1)
      expect(await problems()).toEqual([expect.stringContaining('"purchasable_subscription update"')])
      await deliver(RENAMED, i < 3 ? 7 : 1)
    }
    await deliver(OWN, 10)
    expect(await problems()).toEqual([
      expect.stringMatching(/"purchasable_subscription update".*"course finished"/),
    ])
    await deliver(noticeOf('s1'), 3)
    expect(await problems()).toEqual([
      expect.stringContaining('10 of the last 10 deliveries of "course finished"'),
    ])
  })

  it('A231 degrade the health for a week after the last one, so that made-up ones of a rare event do not for ever', async () => {
    const { deliver, problems, jump } = await opened()
    await deliver(RENAMED, 6)
    jump(7 * DAY - HOUR)
    expect(await problems()).toHaveLength(1)
    await deliver(RENAMED, 1)
    jump(7 * DAY - HOUR)
    expect(await problems()).toHaveLength(1)
    jump(HOUR)
    expect(await problems()).toEqual([])
    await deliver(RENAMED, 5)
    expect(await problems()).toEqual([])
  })

  it('J36 are ordinary life while most are recognised', async () => {
    const { deliver, problems } = await opened()
    for (let i = 0; i < 20; i++) {
      await deliver(RENAMED, 1)
      await deliver(noticeOf('s1'), 2)
      expect(await problems()).toEqual([])
    }
  })
})

describe('deliveries that name no known event', () => {
  it.each([
    [
      'without an envelope',
      { entityName: entity_name, eventType: event_type, data },
      '6 of the last 6 deliveries',
    ],
    ['in another envelope', { payload: NOTICE }, '6 of the last 6 deliveries'],
    ['that are no objects', 'text', '6 of the last 6 deliveries'],
    ['of another name', { ...NOTICE, entity_name: `${entity_name}_v2` }, 'none of the last 10 deliveries'],
  ])('J37 degrade the health while no others come: %s', async (_how, body, message) => {
    const { deliver, problems } = await opened()
    await deliver(body, 5)
    expect(await problems()).toEqual([])
    await deliver(body, message.startsWith('none') ? 5 : 1)
    expect(await problems()).toEqual([expect.stringContaining(message)])
    await deliver(NOTICE, 3)
    expect(await problems()).toEqual([])
  })

  it('J37 degrade the health of an app that worked before: those without an envelope at once, those of another name after a day', async () => {
    const { deliver, problems, jump } = await opened()
    await deliver(NOTICE, 20)
    await deliver({ payload: NOTICE }, 6)
    expect(await problems()).toHaveLength(1)
    await deliver(NOTICE, 3)
    await deliver(OTHER, 50)
    expect(await problems()).toEqual([])
    jump(DAY)
    expect(await problems()).toEqual([expect.stringContaining('none of the last 50 deliveries')])
  })

  it('J37 are ordinary life beside known ones, however many, and the probe of the doctor always is', async () => {
    const { deliver, problems, jump } = await opened()
    for (let day = 0; day < 5; day++) {
      await deliver(NOTICE, 1)
      await deliver(OTHER, 50)
      expect(await problems()).toEqual([])
      jump(23 * HOUR)
    }
    const fresh = await opened()
    const probe = { publicUrl: fresh.url, targetUrl: () => fresh.target, marketplace: fresh.marketplace }
    for (let i = 0; i < 20; i++) expect((await checkDelivery(probe)).status).not.toBe('failed')
    expect(await fresh.problems()).toEqual([])
  })
})

async function opened() {
  const { clock, jump } = jumpingClock()
  const scene = await createScene({
    worker: false,
    clock,
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
    ...scene,
    jump,
    async deliver(body: unknown, times: number) {
      await scene.deliver(Array.from({ length: times }, () => body))
    },
    problems: async () => {
      const { problems } = await scene.marketplace.health()
      return problems.filter(({ code }) => code === 'shapes_refused').map(({ message }) => message)
    },
  }
}
