import { expect, it } from '@jest/globals'
import { SECOND } from '../../../lib/base/clock.js'
import type { HandleTopics, Topic } from '../../../lib/store/port/store.js'
import { createTopicKeeper } from '../../../lib/work/handling/topic-keeper.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'
import { gate } from '../../support/until.js'

it('G22 the topic keeper finds entries that came since its process was started, even if the store can be reached only much later', async () => {
  const time = createVirtualClock({ isBusy: () => false })
  const calls: HandleTopics[] = []
  let fails = true
  const keeper = createTopicKeeper({
    store: {
      async handleTopics(options) {
        if (fails) throw new Error('the database is away')
        calls.push(options)
      },
    },
    topics: () => ['change', 'event:*'],
    clock: time.forProcess(),
    onError: () => {},
  })
  keeper.start()
  expect(keeper.known()).toEqual([])
  await time.advance(60 * SECOND)
  fails = false
  await time.advance(4 * SECOND)
  expect(calls).toMatchObject([{ topics: ['change', 'event:*'] }])
  expect(keeper.known()).toEqual(['change', 'event:*'])
  expect(calls[0]?.rescueMs).toBeGreaterThan(60 * SECOND)
  await time.advance(60 * SECOND)
  expect(calls.length).toBeGreaterThan(1)
  expect(calls.slice(1).map(({ rescueMs }) => rescueMs)).toEqual(calls.slice(1).map(() => 0))
  keeper.close()
})

it('the topic keeper reports a topic that is added during a report as soon as that has ended, and it is not known before', async () => {
  const time = createVirtualClock({ isBusy: () => false })
  const topics: Topic[] = ['change']
  const reported: (readonly Topic[])[] = []
  const answers: ReturnType<typeof gate<void>>[] = []
  const keeper = createTopicKeeper({
    store: {
      async handleTopics(options) {
        reported.push(options.topics)
        const answer = gate()
        answers.push(answer)
        await answer.opened
      },
    },
    topics: () => topics,
    clock: time.forProcess(),
    onError: () => {},
  })
  keeper.start()
  topics.push('unrecognised')
  keeper.changed()
  answers[0]?.open()
  await time.rest()
  expect([reported, keeper.known()]).toEqual([[['change'], ['change', 'unrecognised']], ['change']])
  answers[1]?.open()
  await time.rest()
  expect(keeper.isUpToDate()).toBe(true)
  keeper.close()
})
