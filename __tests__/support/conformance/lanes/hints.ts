import assert from 'node:assert/strict'
import type { Hint } from '../../../../lib/store/port/store.js'
import { type Checks, changeOf, eventOf, type Lab, named, SHORT, same, shows } from '../lab.js'

export const HINTS: Checks = {
  async 'subscribe: a hint follows when accepted, requested, decided and replayed rows can be read'(lab) {
    const hints = heardBy(lab)
    const expectHint = (kind: Hint['kind'], businessUid?: string) => {
      // Null stands for every business.
      const matches = (hint: Hint) =>
        hint.kind === kind && (!('businessUid' in hint) || [businessUid, null].includes(hint.businessUid))
      assert(hints.splice(0).some(matches), `no hint "${kind}" of ${businessUid}`)
    }
    await lab.accept([eventOf('s1', { id: 'e1', businessUid: 'b1' })])
    expectHint('requested', 'b1')
    await lab.accept([eventOf('s9', { businessUid: 'b9', refresh: null })])
    expectHint('journal')
    await lab.request('s1', 'b1')
    expectHint('requested', 'b1')
    const seen: ReturnType<Lab['subscriptionsOf']>[] = []
    const stop = lab.subscribe((hint) => {
      // One of every business also comes when a listener connects.
      if (hint.kind === 'decided' && hint.businessUid === 'b1') seen.push(lab.subscriptionsOf('b1'))
    })
    await lab.read('purchased')
    expectHint('decided', 'b1')
    // A late hint would have it read from a store that is closed.
    stop()
    const [rows] = await Promise.all(seen)
    assert.equal(rows?.[0]?.state, 'purchased', 'the hint came before the row could be read')
    await lab.accept([eventOf('s2', { id: 'e2', businessUid: 'b2' })])
    const claim = await lab.claim()
    hints.splice(0)
    await lab.succeed(claim, 'purchased', { changes: [changeOf('c1')] })
    expectHint('journal')
    await lab.replayEntry('c1')
    expectHint('journal')
  },

  async 'subscribe: a batch of deliveries is one hint for the journal and one for each business'(lab) {
    const hints = heardBy(lab)
    const expected = [requested('b0'), requested('b1'), { kind: 'journal' }]
    // A listener that connects meanwhile announces that anything may have changed.
    await lab.until('a batch is announced once', async () => {
      hints.splice(0)
      const events = Array.from({ length: 100 }, (_, n) => eventOf(`s${n}`, { businessUid: `b${n % 2}` }))
      await Promise.all(events.map((event) => lab.accept([event])))
      return JSON.stringify(hints) === JSON.stringify(expected)
    })
    assert.equal((await lab.counts()).subscriptions, 100)
  },

  async 'subscribe: every listener gets hints until it stops, and only for commits'(lab) {
    const second = heardBy(lab)
    const first: Hint[] = []
    const stop = lab.subscribe((hint) => void first.push(hint))
    await lab.request('s1', 'b1')
    assert(first.length > 0 && second.length > 0)
    stop()
    stop()
    first.splice(0)
    const late = await lab.claim({ leaseMs: SHORT })
    const holder = await lab.next()
    assert.equal(await lab.succeed(late, 'purchased'), false)
    same(decided(second), [])
    await lab.succeed(holder, 'purchased')
    same(decided(second), ['b1 true'])
    same(first, [])
  },

  async 'subscribe: a read that finds a subscription at another business sends a hint and a change for each'(
    lab,
  ) {
    await lab.known('s1', 'purchased', 'b1')
    await lab.known('s2', 'canceled', 'b2')
    const hints = heardBy(lab)
    await lab.request('s1', 'b2')
    const claim = await lab.next()
    assert.equal(claim.candidateBusinessUid, 'b2')
    const { found } = shows(
      { ...claim, subscription: { ...claim.subscription, businessUid: 'b2' } },
      'purchased',
    )
    assert(found)
    const key = 'subscription:s1'
    const changes = ['b1', 'b2'].map((businessUid) => changeOf(`of ${businessUid}`, { key, businessUid }))
    hints.splice(0)
    await lab.succeed(claim, 'purchased', { found, changes, candidate: null })
    same(decided(hints).sort(), ['b1 true', 'b2 true'])
    const listed = await lab.listEntries({ kind: 'change' })
    same(
      listed.map(({ id, businessUid, subscriptionUid }) => [id, businessUid, subscriptionUid]),
      [
        ['of b2', 'b2', 's1'],
        ['of b1', 'b1', 's1'],
      ],
    )
    same(await lab.subscriptionsOf('b1'), [])
  },

  async 'subscribe: the hint of a read contains whether it superseded the earlier answer'(lab) {
    const hints = heardBy(lab)
    await lab.known('s1', 'purchased', 'b1')
    for (const state of ['purchased', null, 'suspended']) {
      await lab.requestRefresh(named('s1', 'b1'))
      const claim = await lab.next()
      await (state ? lab.succeed(claim, state) : lab.fail(claim, 'platform_timeout'))
    }
    same(decided(hints), ['b1 true', 'b1 false', 'b1 false', 'b1 true'])
  },
}

const requested = (businessUid: string): Hint => ({ kind: 'requested', businessUid })

function heardBy(lab: Lab): Hint[] {
  const hints: Hint[] = []
  lab.subscribe((hint) => void hints.push(hint))
  return hints
}

/** The businesses with a decision, and whether it superseded their earlier answer. */
function decided(hints: readonly Hint[]): string[] {
  return hints.flatMap((hint) =>
    hint.kind === 'decided' && hint.businessUid !== null ? [`${hint.businessUid} ${hint.superseded}`] : [],
  )
}
