import { MAX_HANDED_OUT } from '../../../../lib/store/lanes/lanes.js'
import { EVERY_EVENT } from '../../../../lib/store/port/store.js'
import {
  type Checks,
  changeOf,
  DONE,
  eventOf,
  has,
  idsOf,
  LATER,
  LONG,
  retry,
  SHORT,
  same,
  UPDATE,
} from '../lab.js'

const INSTALLED = 'event:application/installed'
const installed = (id: string, more = {}) => eventOf('s1', { id, name: 'application/installed', ...more })
const odd = () => eventOf('s1', { id: 'u1', key: 'u1', kind: 'unrecognised', refresh: null })

export const HANDLED_TOPICS: Checks = {
  async 'accept: an event without a handler is unhandled, and is never claimed'(first) {
    const lab = await first.withoutHandlers()
    await lab.handle([])
    await lab.accept([eventOf('s1', { id: 'e1' })])
    await lab.accept([odd()])
    await lab.handle([INSTALLED])
    has(await lab.counts(), { pending: 0, unrecognised: 1 })
    same(await lab.ids({ status: 'unhandled' }), ['u1', 'e1'])
    same(await lab.lease(), [])
  },

  async 'accept: an event is pending if its name, or every event, has a handler'(first) {
    for (const topic of [UPDATE, EVERY_EVENT]) {
      const lab = await first.withoutHandlers()
      await lab.handle([topic])
      await lab.accept([eventOf('s1', { id: 'e1' })])
      await lab.accept([odd()])
      same(await lab.ids({ status: 'pending' }), ['e1'])
      same(await lab.ids({ status: 'unhandled' }), ['u1'])
      has(await lab.leaseOne({ topics: [topic] }), { id: 'e1' })
    }
  },

  async 'handleTopics: changes without a handler are pending, and are claimed in order once there is one'(
    first,
  ) {
    const lab = await first.withoutHandlers()
    for (const id of ['one', 'two', 'three']) {
      await lab.request('s1', 'b1')
      await lab.read('purchased', { changes: [changeOf(id, { key: 'of s1' })] })
    }
    has(await lab.counts(), { pending: 3, oldestPendingMs: null, oldestMissedMs: null })
    await lab.handle([UPDATE])
    same(await lab.lease({ topics: [UPDATE] }), [])
    await lab.handle(['change'])
    same(idsOf(await lab.lease({ entryLimit: 10, topics: ['change'] })), ['one', 'two', 'three'])
  },

  async 'handleTopics: thousands of unhandled events become pending, each in its lane'(first) {
    const lab = await first.withoutHandlers()
    await lab.handle(['change'])
    const events = Array.from({ length: 1_000 }, (_, i) =>
      eventOf('s1', { key: `k${i % 300}`, refresh: null }),
    )
    await lab.accept(events)
    has(await lab.counts(), { pending: 0 })
    await lab.handle([EVERY_EVENT], LATER)
    has(await lab.counts(), { pending: 1_000 })
    const order: string[] = []
    await lab.until('all are handed out', async () => {
      order.push(...(await lab.end(await lab.lease({ limit: 500 }), DONE)))
      return order.length === 1_000
    })
    for (const key of ['k0', 'k299']) {
      const ofKey = idsOf(events.filter((each) => each.key === key))
      same(
        order.filter((id) => ofKey.includes(id)),
        ofKey,
      )
    }
  },

  async 'handleTopics: an event whose topic no process names any more is set aside, delays nothing in its lane, and is pending again when one does'(
    first,
  ) {
    const lab = await first.withoutHandlers()
    await lab.handle([UPDATE, INSTALLED, 'change'])
    const key = 'k'
    await lab.accept([
      eventOf('s1', { id: 'e1', key }),
      installed('e2', { key }),
      eventOf('s1', { id: 'e3', key }),
    ])
    await lab.pass(20)
    const look = () => lab.handleTopics({ topics: [INSTALLED], rescueMs: 0, retireMs: 10 })
    await look()
    same((await lab.ids({ status: 'unhandled' })).sort(), ['e1', 'e3'])
    has(await lab.leaseOne({ topics: [INSTALLED] }), { id: 'e2' })
    await lab.accept([eventOf('s2', { id: 'e4', key: 'k4' })])
    await look()
    has(await lab.getEntry('e4'), { status: 'unhandled' })
    await lab.handle([UPDATE])
    same((await lab.ids({ status: 'pending' })).sort(), ['e1', 'e2', 'e3', 'e4'])
    has(await lab.leaseOne(), { id: 'e4' })
  },

  async 'handleTopics: the first process with handlers gets every event that came before, also for a handler that it adds late'(
    first,
  ) {
    const lab = await first.withoutHandlers()
    await lab.accept([eventOf('s1', { id: 'e1', key: 'a' }), installed('other', { key: 'a' })])
    await lab.handle([])
    same((await lab.ids({ status: 'unhandled' })).sort(), ['e1', 'other'])
    await lab.pass(200)
    const begunAt = Date.now()
    const sinceItBegan = () => Date.now() - begunAt + 100
    await lab.handle(['change'], sinceItBegan())
    await lab.handle(['change', UPDATE], sinceItBegan())
    same(await lab.ids({ status: 'unhandled' }), ['other'])
    same(idsOf(await lab.lease({ entryLimit: 10 })), ['e1'])
  },

  async 'handleTopics: sets aside nothing of a lane that is leased, or of a topic that another process still names'(
    first,
  ) {
    const lab = await first.withoutHandlers()
    await lab.handle([UPDATE])
    await lab.accept([eventOf('s1', { id: 'e1', key: 'k' })])
    const held = await lab.leaseOne({ topics: [UPDATE], leaseMs: LONG })
    const look = (retireMs: number) => lab.handleTopics({ topics: [INSTALLED], rescueMs: 0, retireMs })
    await lab.pass(20)
    await look(10)
    same(await lab.renew(held, SHORT), true)
    await lab.pass(SHORT + 10)
    await look(LATER)
    same(await lab.ids({ status: 'unhandled' }), [])
    await look(10)
    same(await lab.ids({ status: 'unhandled' }), ['e1'])
    same(await lab.end([held], DONE), [])
  },

  async 'replayEntry: of the entries of a leased lane, takes it from its holder only if the entry may have been handed out'(
    lab,
  ) {
    const ids = Array.from({ length: MAX_HANDED_OUT + 2 }, (_, i) => `e${i}`)
    await lab.accept(ids.map((id) => eventOf('s1', { id, key: 'k', refresh: null })))
    await lab.end([await lab.leaseOne()], DONE)
    const held = await lab.leaseOne()
    // One behind all that are handed out at most, and one that was handled before.
    for (const id of [`e${MAX_HANDED_OUT + 1}`, 'e0']) {
      same(await lab.replayEntry(id), true)
      same(await lab.renew(held, LONG), true, id)
    }
    // The replay of the first one has moved the others back.
    same(await lab.replayEntry(`e${MAX_HANDED_OUT - 1}`), true)
    same(await lab.renew(held, LONG), false)
  },

  async 'replayEntry: a lane that is due keeps its place before those that are due later'(lab) {
    await lab.accept([eventOf('s1', { id: 'e1', key: 'k' }), eventOf('s1', { id: 'e2', key: 'k' })])
    await lab.pass(5)
    await lab.accept([eventOf('s2', { id: 'e3' })])
    await lab.pass(5)
    same(await lab.replayEntry('e2'), true)
    same(idsOf(await lab.lease({ limit: 1 })), ['e1'])
  },

  async 'replayEntry: an entry without a handler is pending, and is claimed when it has one'(first) {
    const lab = await first.withoutHandlers()
    await lab.accept([eventOf('s1', { id: 'e1' })])
    same(await lab.replayEntry('e1'), true)
    same(await lab.ids({ status: 'pending' }), ['e1'])
    await lab.handle([UPDATE])
    has(await lab.leaseOne(), { id: 'e1', attempt: 1 })
  },

  async 'replayEntry: an entry older than the others of its lane comes first'(lab) {
    await lab.accept([eventOf('s1', { id: 'e1', key: 'k' }), eventOf('s1', { id: 'e2', key: 'k' })])
    await lab.end([await lab.leaseOne()], DONE)
    await lab.end([await lab.leaseOne()], retry(LATER))
    same(await lab.replayEntry('e1'), true)
    const e1 = await lab.leaseOne()
    has(e1, { id: 'e1', attempt: 1 })
    await lab.end([e1], DONE)
    same(await lab.lease(), [])
    same(await lab.replayEntry('e2'), true)
    has(await lab.leaseOne(), { id: 'e2', attempt: 1 })
  },
}
