import assert from 'node:assert/strict'
import type { ReadClaim, ReadFinish } from '../../../lib/store/port/store.js'
import { type Check, claimedAll, fails, has, known, named, same, shows } from './lab.js'
import { failing } from './reads/failing-reads.js'

export const COMPARING: readonly Check[] = [
  {
    name: 'otherBusinesses: compares the failing businesses with those that were served since',
    async check(lab) {
      const { store } = lab
      for (const i of [1, 2, 3]) await known(store, `s${i}`, 'purchased', `b${i}`)
      await known(store, 's4', 'canceled', 'b4')
      const first = await failing(lab, 's1')
      const alone = { failing: 1, served: 0, recovered: 0, isSteady: false, exist: true }
      has(await store.otherBusinesses(first, 0), alone)
      const { unread, lately } = await store.otherBusinesses(first, 0)
      same({ unread, lately }, { unread: 2, lately: { failing: 1, served: 0 } })
      await lab.pass(50)
      await store.requestRefresh(named('s2', 'b2'))
      const read = await lab.until('it is due', async () => (await claimedAll(store))[0])
      await store.finishRead(read, shows(read, 'purchased'))
      has(await store.otherBusinesses(first, 40), { failing: 1, served: 1, isSteady: true, exist: true })
      has(await store.counts(), { refusedLately: 1, servedMeanwhile: 1 })
      await failing(lab, 's2')
      has(await store.otherBusinesses(first, 40), { failing: 2, served: 0, exist: true })
      await failing(lab, 's3')
      const most = await store.otherBusinesses(first, 40)
      same([most.unread, most.lately], [0, { failing: 3, served: 0 }])
      has(await store.counts(), { active: 3, refused: 3, withoutToken: 3, hidden: 0, leaving: 0 })
      has(await store.counts(), { refusedLately: 3, servedMeanwhile: 0 })
      for (const i of [2, 3])
        await store.requestRefresh({
          kind: 'business',
          businessUid: `b${i}`,
          install: { installed: false, at: null },
        })
      // Those whose end is announced are not expected to be served.
      has(await store.otherBusinesses(first, 40), { failing: 3, served: 0, exist: false })
      same((await store.otherBusinesses(first, 40)).lately, { failing: 1, served: 0 })
      has(await store.counts(), { active: 3, refused: 3, leaving: 2, refusedLately: 1 })
      await lab.pass(1_000)
      await store.requestRefresh(named('s2', 'b2'))
      const back = await lab.until('it is due again', async () =>
        (await claimedAll(store)).find(({ subscription }) => subscription.subscriptionUid === 's2'),
      )
      await store.finishRead(back, shows(back, 'purchased'))
      has(await store.otherBusinesses(first, 1_000), { failing: 2, served: 1, recovered: 1, isSteady: false })
    },
  },
  {
    name: 'otherBusinesses, counts: leave out purchases of other items, which are never served',
    async check(lab) {
      const { store } = lab
      for (const i of [1, 2]) await known(store, `s${i}`, 'purchased', `b${i}`)
      for (const i of [3, 4, 5]) {
        await known(store, `s${i}`, 'canceled', `b${i}`)
        await store.requestRefresh(named(`s${i}`, `b${i}`))
        const read = await lab.until('it is due', async () => (await claimedAll(store))[0])
        const found = { record: read.subscription.record, state: null, gone: null }
        await store.finishRead(read, { ...shows(read, 'purchased'), found })
      }
      for (const i of [3, 4, 5]) await failing(lab, `s${i}`)
      const first = await failing(lab, 's1')
      const others = await store.otherBusinesses(first, 1_000)
      assert.deepEqual([others.failing, others.lately.failing], [1, 1])
      has(await store.counts(), { active: 2, refused: 1, refusedLately: 1 })
      // Nor do they once they have ended.
      for (const i of [3, 4, 5]) {
        await store.requestRefresh(named(`s${i}`, `b${i}`))
        const read = await lab.until('it is due', async () => (await claimedAll(store))[0])
        const found = { record: read.subscription.record, state: null, gone: 'missing' } as const
        await store.finishRead(read, { ...fails('platform_record_missing', 0), settled: true, found })
      }
      assert.equal((await store.otherBusinesses(first, 1_000)).failing, 1)
    },
  },
  {
    name: 'counts: with maxStaleMs, counts businesses that no read has confirmed for so long, and the others',
    async check(lab) {
      const { store } = lab
      for (const i of [1, 2, 3, 4]) await known(store, `s${i}`, 'purchased', `b${i}`)
      await known(store, 's5', 'canceled', 'b5')
      await failing(lab, 's1')
      has(await store.counts(60_000), { stale: 0, confirmed: 0 })
      await lab.pass(1_000)
      has(await store.counts(), { stale: 0, confirmed: 0 })
      for (const i of [2, 4]) {
        await store.requestRefresh(named(`s${i}`, `b${i}`))
        const read = await lab.until('it is due', async () => (await claimedAll(store))[0])
        const { record } = read.subscription
        const ended = { ...shows(read, 'purchased'), found: { record, state: null, gone: 'ended' } } as const
        await store.finishRead(read, i === 4 ? ended : shows(read, 'purchased'))
      }
      // One that is refused, and one whose reads get no answer.
      has(await store.counts(950), { stale: 2, confirmed: 1 })
      await failing(lab, 's2')
      has(await store.counts(950), { stale: 2, confirmed: 1 })
    },
  },
  {
    name: 'otherBusinesses: counts one that has just ended, over several stores at once',
    needs: 'beside',
    async check(lab) {
      const { store } = lab
      for (const i of [1, 2, 3, 4]) await known(store, `s${i}`, 'purchased', `b${i}`)
      const beside = await lab.beside()
      const claims: ReadClaim[] = []
      // Each failing read is written before any conclusion, so both processes see all of them.
      for (const i of [1, 2, 3])
        claims.push(await failing({ ...lab, store: i === 2 ? beside : store }, `s${i}`))
      const [first, second, third] = claims as [ReadClaim, ReadClaim, ReadClaim]
      const [here, there] = await Promise.all([
        store.otherBusinesses(first, 1_000),
        beside.otherBusinesses(second, 1_000),
      ])
      assert.equal(here.failing, 3)
      assert.equal(there.failing, 3)
      await store.requestRefresh(named('s3', 'b3'))
      const claim = await lab.until('it is due', async () => (await claimedAll(store))[0])
      const { record } = claim.subscription
      const found = { record, state: null, gone: 'ended' } as const
      await store.finishRead(claim, { ...fails('token_refused'), settled: true, found })
      has(await store.counts(), { active: 3, refused: 2 })
      assert.equal((await beside.otherBusinesses(first, 1_000)).failing, 3)
      assert.equal((await beside.otherBusinesses(third, 1_000)).failing, 3)
    },
  },
  {
    name: 'readOthers: makes other served businesses due, each once for a streak, and no more than the limit',
    async check(lab) {
      const { store } = lab
      for (const i of [1, 2, 3, 4]) await known(store, `s${i}`, 'purchased', `b${i}`)
      await known(store, 's5', 'canceled', 'b5')
      await lab.pass(600)
      const claim = await failing(lab, 's1')
      await failing(lab, 's2')
      assert.equal(await store.readOthers(claim, { which: 'served', unreadForMs: 300, limit: 1 }), 1)
      assert.equal(await store.readOthers(claim, { which: 'served', unreadForMs: 300, limit: 5 }), 1)
      const others = await claimedAll(store)
      same(others.map(({ id }) => id).sort(), ['s3', 's4'])
      for (const other of others) await store.finishRead(other, shows(other, 'purchased'))
      assert.equal(await store.readOthers(claim, { which: 'served', unreadForMs: 300, limit: 5 }), 0)
    },
  },
  {
    name: 'readOthers: makes other failing businesses due, those that an event named a minute later',
    async check(lab) {
      const { store } = lab
      for (const i of [1, 2, 3, 4]) await known(store, `s${i}`, 'purchased', `b${i}`)
      const claim = await failing(lab, 's1')
      for (const i of [2, 3, 4]) await failing(lab, `s${i}`)
      await store.requestRefresh({
        kind: 'business',
        businessUid: 'b4',
        install: { installed: false, at: null },
      })
      await lab.until('the uninstalled one is read', async () => {
        const [again] = await claimedAll(store)
        return again && store.finishRead(again, fails('token_refused'))
      })
      assert.equal(await store.readOthers(claim, { which: 'failing', pauseMs: 20, limit: 2 }), 2)
      assert.equal(await store.readOthers(claim, { which: 'failing', pauseMs: 20, limit: 5 }), 1)
      assert.equal(await store.readOthers(claim, { which: 'failing', pauseMs: 20, limit: 5 }), 0)
      same((await claimedAll(store)).map(({ id }) => id).sort(), ['s2', 's3'])
    },
  },
  {
    name: 'readOthers: those that were never shown come behind the failing ones, the newest first, a minute later',
    async check(lab) {
      const { store } = lab
      for (const i of [1, 2]) await known(store, `s${i}`, 'purchased', `b${i}`)
      const claim = await failing(lab, 's1')
      await failing(lab, 's2')
      const never: [uid: string, finish: Partial<ReadFinish>][] = [
        ['older', { verifying: true }],
        ['newer', { verifying: true }],
        ['soon', { verifying: true, nextInMs: 30_000 }],
        ['decided', {}],
        ['given up', { nextInMs: null }],
      ]
      for (const [uid, finish] of never) {
        await store.requestRefresh(named(uid))
        const [read] = (await claimedAll(store)) as [ReadClaim]
        await store.finishRead(read, { ...fails('token_refused'), ...finish })
        await lab.pass(5)
      }
      const due = async () =>
        (await store.subscriptionsNamed(['s2', ...never.map(([uid]) => uid)]))
          .filter(({ refreshAt }) => refreshAt !== null && refreshAt < before + 90_000)
          .map(({ subscriptionUid }) => subscriptionUid)
          .sort()
      const [row] = await store.subscriptionsNamed(['given up'])
      const before = row?.requestedAt ?? 0
      same(await due(), ['soon'])
      assert.equal(await store.readOthers(claim, { which: 'failing', pauseMs: 20, limit: 1 }), 1)
      same(await due(), ['s2', 'soon'])
      assert.equal(await store.readOthers(claim, { which: 'failing', pauseMs: 20, limit: 1 }), 1)
      same(await due(), ['newer', 's2', 'soon'])
      assert.equal(await store.readOthers(claim, { which: 'failing', pauseMs: 20, limit: 5 }), 1)
      assert.equal(await store.readOthers(claim, { which: 'failing', pauseMs: 20, limit: 5 }), 0)
      same(await due(), ['newer', 'older', 's2', 'soon'])
      same(
        (await claimedAll(store)).map(({ id }) => id),
        ['s2'],
      )
    },
  },
]
