import assert from 'node:assert/strict'
import { type Checks, DONE, ending, type HeldEntry, has, idsOf, LATER, retry, SHORT, same } from '../lab.js'
import { inLine } from './handing-over.js'

export const ENDING: Checks = {
  async 'finishLanes: finishes lanes whose lease is held, no others, and returns their ids'(lab) {
    await lab.accept(inLine('a1', 'b1', 'c1'))
    const stale = await lab.lease({ leaseMs: SHORT, limit: 1 })
    const others = await lab.lease()
    const holder = await lab.nextEntry()
    same((await lab.end([...stale, ...others], DONE)).sort(), ['b1', 'c1'])
    same((await lab.end([...stale, ...others], DONE)).sort(), ['b1', 'c1'], 'repeated, their results stand')
    same(await lab.end([]), [])
    same(await lab.ids({ status: 'pending' }), idsOf(stale))
    same(await lab.end([holder], DONE), idsOf(stale))
  },

  async 'finishLanes: a result ends only an entry of its lane, and no try that a replay has begun since'(
    lab,
  ) {
    await lab.accept(inLine('a1', 'b1'))
    const [a1, b1] = (await lab.lease()) as [HeldEntry, HeldEntry]
    await lab.finishLanes([{ ...ending(b1, DONE), id: a1.key, leaseToken: a1.leaseToken, keepLease: true }])
    same(await lab.ids({ status: 'pending' }), ['b1', 'a1'])
    const done = [ending(a1, DONE, true)]
    same(await lab.finishLanes(done), ['a'])
    assert.equal(await lab.replayEntry('a1'), true)
    // Repeated, as after an answer of the database that was lost.
    same(await lab.finishLanes(done), ['a'])
    same(await lab.ids({ status: 'pending' }), ['b1', 'a1'])
  },

  async 'finishLanes: stores the outcome and the error of each entry'(lab) {
    await lab.accept(inLine('a1', 'b1', 'c1'))
    const error = 'it is broken: é €'
    await lab.end(await lab.lease(), DONE, retry(LATER), { kind: 'dead', error })
    const [c1, b1, a1] = await lab.listEntries({})
    has(a1, { id: 'a1', status: 'done', error: null, dueAt: null, attempts: 1 })
    has(b1, { id: 'b1', status: 'pending', error: 'not yet', attempts: 1 })
    has(c1, { id: 'c1', status: 'dead', error, dueAt: null, attempts: 1 })
    const inMs = Date.parse(b1?.dueAt ?? '') - Date.parse(b1?.receivedAt ?? '')
    assert(inMs >= LATER && inMs < LATER + 60_000, `due again ${inMs} ms after it was received`)
    same(await lab.lease(), [])
  },

  async 'finishLanes: finishes an entry and its siblings whatever characters the error contains'(lab) {
    await lab.accept(inLine('a1', 'b1', 'c1'))
    // A message cut in the middle of a character, and messages that quote a body.
    const errors = ['TypeError: \ud83d', 'Error: a\u0000b', 'Error: \udc00\u001b[0m']
    const results = errors.map((error) => ({ kind: 'dead', error }) as const)
    same((await lab.end(await lab.lease(), ...results)).sort(), ['a1', 'b1', 'c1'])
    assert.equal((await lab.ids({ status: 'dead' })).length, 3)
  },
}
