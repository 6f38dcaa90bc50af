import assert from 'node:assert/strict'
import type { InstanceReport } from '../../../lib/store/store.js'
import { type Check, has, idsOf, isNumber, LATER, same } from './lab.js'

/** Longer than any check. */
const SHOWN = { withinMs: LATER }
/** Shorter than the time that a check lets pass. */
const SOON_MS = 20

export const INSTANCES: readonly Check[] = [
  {
    name: 'reportInstance: stores an instance once, with its first start and its last report',
    async check(lab) {
      same(await lab.store.instances(SHOWN), [])
      await lab.store.reportInstance(of('a', { version: '1.2.3', startedAgoMs: 5_000 }))
      const [first] = await lab.store.instances(SHOWN)
      has(first, { id: 'a', version: '1.2.3', hasWorker: true })
      await lab.pass(SOON_MS)
      await lab.store.reportInstance(of('a', { version: '1.2.3', startedAgoMs: 0 }))
      await lab.store.reportInstance(of('b', { hasWorker: false }))
      const [again, other] = await lab.store.instances(SHOWN)
      has(other, { id: 'b', hasWorker: false })
      assert(first && again)
      isNumber(again.startedAt, 'startedAt')
      isNumber(again.seenAt, 'seenAt')
      assert.equal(again.startedAt, first.startedAt, 'the start changed with a later report')
      assert(again.seenAt > first.seenAt, 'a later report did not change seenAt')
      const ranMs = first.seenAt - first.startedAt
      assert(ranMs >= 4_900 && ranMs < 60_000, `the start and the report differ by ${ranMs} ms`)
    },
  },
  {
    name: 'reportInstance: deletes the instances that have not reported for the given time, and no other',
    async check(lab) {
      await lab.store.reportInstance(of('killed'))
      await lab.pass(2 * SOON_MS)
      await lab.store.reportInstance(of('alive'))
      same(idsOf(await lab.store.instances(SHOWN)).sort(), ['alive', 'killed'])
      await lab.store.reportInstance(of('alive', { forgetMs: SOON_MS }))
      same(idsOf(await lab.store.instances(SHOWN)), ['alive'])
    },
  },
  {
    name: 'instances: leaves out those that have not reported within the given time',
    async check(lab) {
      await lab.store.reportInstance(of('killed'))
      await lab.pass(2 * SOON_MS)
      same(idsOf(await lab.store.instances(SHOWN)), ['killed'])
      same(await lab.store.instances({ withinMs: SOON_MS }), [])
    },
  },
  {
    name: 'forgetInstance: deletes one instance, also one that was never stored',
    async check({ store }) {
      await store.reportInstance(of('a'))
      await store.reportInstance(of('b'))
      await store.forgetInstance('a')
      await store.forgetInstance('never')
      same(idsOf(await store.instances(SHOWN)), ['b'])
    },
  },
  {
    name: 'instances: are those of all processes',
    needs: 'beside',
    async check(lab) {
      const other = await lab.beside()
      await Promise.all([lab.store.reportInstance(of('a')), other.reportInstance(of('b'))])
      same(idsOf(await other.instances(SHOWN)).sort(), ['a', 'b'])
      same(idsOf(await lab.store.instances(SHOWN)).sort(), ['a', 'b'])
    },
  },
]

function of(id: string, more: Partial<InstanceReport> = {}): InstanceReport {
  return { id, version: '1.0.0', hasWorker: true, startedAgoMs: 0, forgetMs: LATER, ...more }
}
