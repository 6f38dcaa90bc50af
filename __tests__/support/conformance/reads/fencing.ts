import assert from 'node:assert/strict'
import {
  business,
  type Checks,
  changeOf,
  eventOf,
  fails,
  has,
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
}

async function unchanged(lab: Lab, work: () => Promise<void>) {
  const seen = async () => [await lab.only('b1'), await lab.ids()]
  const before = await seen()
  await work()
  same(await seen(), before)
}
