import assert from 'node:assert/strict'
import type { ReadClaim, ReadFinish } from '../../../../lib/store/port/store.js'
import {
  business,
  type Checks,
  changeOf,
  eventOf,
  fails,
  has,
  ifKnown,
  isNumber,
  type Lab,
  SHORT,
  same,
  shows,
} from '../lab.js'

const changes = [changeOf('late')]

/** A caller whose lease has expired, ended or was forged. */
export const FENCING: Checks = {
  async 'D6 finishRead: returns false and writes nothing when another holder has the lease, or had it; repeated, it writes nothing'(
    lab,
  ) {
    await lab.request('s1', 'b1')
    const late = await lab.claim({ leaseMs: SHORT })
    const holder = await lab.next()
    await unchanged(lab, async () => {
      assert.equal(await lab.succeed(late, 'purchased', { changes }), false)
    })
    same(await lab.claimAll(), [], 'the late finish ended the lease of the holder')
    assert.equal(await lab.succeed(holder, 'suspended'), true)
    await unchanged(lab, async () => {
      assert.equal(await lab.succeed(late, 'purchased', { changes }), false)
      assert.equal(await lab.finishRead(holder, { ...fails('platform_timeout', null), changes }), true)
    })
    has(await lab.only('b1'), { state: 'suspended', pending: false })
  },

  async 'finishRead: returns false for the lease of another subscription and for a forged one'(lab) {
    for (const i of [1, 2]) await lab.request(`s${i}`, `b${i}`)
    const [first, second] = [await lab.claim(), await lab.claim()]
    for (const leaseToken of [second.leaseToken, 'made up', ''])
      assert.equal(await lab.succeed({ ...first, leaseToken }, 'purchased', { changes }), false)
    for (const uid of ['b1', 'b2']) has(await lab.only(uid), { state: null, pending: true })
    same(await lab.ids({ kind: 'change' }), [])
  },

  async 'finishRead: preserves an uninstall, a candidate or a business that was named during the read'(lab) {
    await lab.accept([eventOf('s1', { businessUid: 'b1' })])
    const claim = await lab.claim()
    await lab.accept([eventOf('s1', { businessUid: 'b2' })])
    await lab.requestRefresh(business('b1', false))
    const finish = { ...shows(claim, 'purchased'), clearUninstalled: true, candidate: null }
    assert.equal(await lab.finishRead(claim, finish), true)
    const after = await lab.read('purchased', { nextInMs: 0, clearUninstalled: true })
    assert.equal(after.candidateBusinessUid, 'b2')
    isNumber(after.uninstalledAt, 'uninstalledAt')
    has(await lab.next(), { uninstalledAt: null })
  },

  async 'finishRead: does not revoke after an install during the read'(lab) {
    await lab.known('s1', 'purchased', 'b1')
    await lab.requestRefresh(business('b1', false))
    await lab.finishRead(await lab.next(), { ...fails('token_refused', 0), progress: 'one refusal' })
    const claim = await lab.next()
    await lab.requestRefresh(business('b1', true))
    const found = { record: claim.subscription.record, state: null, gone: 'revoked' } as const
    const finish = { ...fails('token_refused'), settled: true, found, changes, progress: 'two refusals' }
    assert.equal(await lab.finishRead(claim, finish), false)
    has(await lab.only('b1'), { state: 'purchased', gone: null, pending: true })
    same(await lab.ids({ kind: 'change' }), [])
    has(await lab.next(), { progress: 'one refusal' })
  },

  async 'finishRead: revokes after the second read in a row during which something else was requested'(lab) {
    await lab.known('s1', 'purchased', 'b1')
    await lab.requestRefresh(business('b1', false))
    for (const isWritten of [false, true]) {
      const claim = await lab.next()
      await lab.requestRefresh(business('b1', false))
      assert.equal(await lab.finishRead(claim, endOf(claim)), isWritten)
    }
    has(await lab.only('b1'), { state: null, gone: 'revoked', pending: true })
    same(await lab.ids({ kind: 'change' }), ['late'])
  },

  async 'finishRead: does not end what an install, or a record with access, has taken back during the read'(
    lab,
  ) {
    const cases = [
      [business('b1', false), business('b1', true)],
      [record('s2', 'b2', 'end'), record('s2', 'b2', 'access')],
    ] as const
    for (const [i, [says, takesBack]] of cases.entries()) {
      const businessUid = `b${i + 1}`
      await lab.known(`s${i + 1}`, 'purchased', businessUid)
      await lab.requestRefresh(says)
      for (const during of [says, takesBack]) {
        const claim = await lab.next()
        await lab.requestRefresh(during)
        assert.equal(await lab.finishRead(claim, endOf(claim)), false, `${i}`)
      }
      has(await lab.only(businessUid), { state: 'purchased', gone: null, pending: true })
      await lab.succeed(await lab.next(), 'purchased')
    }
    same(await lab.ids({ kind: 'change' }), [])
  },
}

/** The finish of a read that ends a subscription. */
function endOf({ subscription: { record } }: ReadClaim): ReadFinish {
  const found = { record, state: null, gone: 'revoked' } as const
  return { ...fails('token_refused'), settled: true, found, changes }
}

function record(subscriptionUid: string, businessUid: string, announces: 'end' | 'access') {
  return { ...ifKnown(subscriptionUid, businessUid), announces } as const
}

async function unchanged(lab: Lab, work: () => Promise<void>) {
  const seen = async () => [await lab.only('b1'), await lab.ids()]
  const before = await seen()
  await work()
  same(await seen(), before)
}
