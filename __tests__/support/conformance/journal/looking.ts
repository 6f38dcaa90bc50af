import assert from 'node:assert/strict'
import { type Checks, DEAD, DONE, eventOf, has, LATER, retry, same } from '../lab.js'

export const LOOKING: Checks = {
  async 'timelineOf: entries and their outcomes, newest first; the pages contain each once'(lab) {
    const of = (id: string) => eventOf('s1', { id, key: id, businessUid: 'b1', refresh: null })
    await lab.accept(['e1', 'e2', 'e3', 'e4'].map(of))
    await lab.accept([eventOf('s2', { id: 'other', key: 'other', refresh: null })])
    const held = await lab.lease({ limit: 3 })
    for (const [i, result] of [DONE, DEAD, retry(LATER)].entries()) {
      await lab.pass(2)
      await lab.end(held.slice(i, i + 1), result)
    }
    await lab.pass(2)
    await lab.recordAction({ id: 'a1', name: 'look', businessUid: 'b1', payload: '{"actor":"me"}' })
    const all = await lab.timelineOf('b1', { limit: 100 })
    same(
      all.map(({ entryId, of: part }) => `${entryId} ${part}`),
      [
        ...['a1 entry', 'e3 outcome', 'e2 outcome', 'e1 outcome'],
        ...['e4 entry', 'e3 entry', 'e2 entry', 'e1 entry'],
      ],
    )
    same(
      all.filter(({ isWaiting }) => isWaiting).map(({ entryId }) => entryId),
      ['e4'],
    )
    for (const limit of [1, 2, 3]) {
      const seen = await lab.timelineOf('b1', { limit })
      for (let last = seen.at(-1); last && seen.length <= 20; ) {
        const page = await lab.timelineOf('b1', { limit, before: last.place })
        seen.push(...page)
        last = page.at(-1)
      }
      same(seen, all)
    }
    const [action, retried, dead, , entry] = all
    has(action, { kind: 'action', name: 'look', payload: '{"actor":"me"}', dueAt: null })
    has(retried, { status: 'pending', attempts: 1, error: 'not yet' })
    assert((retried?.dueAt ?? 0) > (retried?.at ?? 0))
    has(dead, { status: 'dead', error: 'gave up', subscriptionUid: 's1', payload: null })
    const countBefore = async (before = 0) => (await lab.timelineOf('b1', { limit: 9, before })).length
    same([await countBefore(entry?.at), await countBefore(Number(action?.at) + 1)], [0, 8])
  },

  async 'recordAction: an action is done from the start, stored once, never claimed or replayed, and deleted after a retention of its own'(
    lab,
  ) {
    const action = { id: 'a1', name: 'replay', businessUid: 'b1', payload: '{"actor":"me"}' }
    await lab.recordAction(action)
    await lab.recordAction(action)
    same(await lab.ids({ kind: 'action' }), ['a1'])
    same(await lab.ids({ name: 'replay', businessUid: 'b1' }), ['a1'])
    has(await lab.getEntry('a1'), { kind: 'action', status: 'done', payload: { actor: 'me' }, dueAt: null })
    same(await lab.lease(), [])
    assert.equal(await lab.replayEntry('a1'), false)
    same(await lab.lease(), [])
    await lab.pass(5)
    const others = { eventsMs: 0, changesMs: 0, deadMs: 0 }
    assert.equal((await lab.prune({ ...others, actionsMs: LATER })).rows, 0)
    assert.equal((await lab.prune({ ...others, actionsMs: 0 })).rows, 1)
    assert.equal(await lab.getEntry('a1'), undefined)
  },

  async 'listSubscriptions: in the order of the bytes of the uid, in pages, for one uid or one business'(
    lab,
  ) {
    for (const uid of ['b', 'a', 'é', 'Z', 'c']) await lab.known(uid, 'purchased', `of ${uid.length}`)
    await lab.request('d', 'x')
    same(await lab.uids(), ['Z', 'a', 'b', 'c', 'd', 'é'])
    same(await lab.uids({ after: 'b', limit: 2 }), ['c', 'd'])
    same(await lab.uids({ businessUid: 'of 1', after: 'a' }), ['b', 'c', 'é'])
    same(await lab.uids({ subscriptionUid: 'd' }), ['d'])
    same(await lab.uids({ subscriptionUid: 'd', businessUid: 'of 1' }), [])
    const [row] = await lab.listSubscriptions({ subscriptionUid: 'a', limit: 1 })
    has(row, { state: 'purchased', candidateBusinessUid: null, installAt: null, uninstalledAt: null })
    assert(Number.isSafeInteger(row?.createdAt))
  },

  async 'listBusinesses: each once, in pages'(lab) {
    for (const [uid, businessUid] of ['b', 'd', 'a', 'c', 'b', 'a'].entries())
      await lab.request(`s${uid}`, businessUid)
    same(await lab.listBusinesses({ limit: 10 }), ['a', 'b', 'c', 'd'])
    same(await lab.listBusinesses({ after: 'a', limit: 1 }), ['b'])
    same(await lab.listBusinesses({ after: 'd', limit: 10 }), [])
  },
}
