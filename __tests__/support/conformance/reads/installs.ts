import assert from 'node:assert/strict'
import { business, type Checks, eventOf, has, ifKnown, isNumber, type Lab, named, same } from '../lab.js'

export const INSTALLS: Checks = {
  async 'requestRefresh of a business: stores an uninstall, which only an install clears'(lab) {
    const uninstalledAt = async () => {
      const claim = await lab.next()
      await lab.fail(claim, 'platform_timeout')
      return claim.uninstalledAt
    }
    await lab.request('s1', 'b1')
    assert.equal(await uninstalledAt(), null)
    await lab.requestRefresh(business('b1', false))
    const at = await uninstalledAt()
    isNumber(at, 'uninstalledAt')
    await lab.requestRefresh(business('b2', true))
    for (const other of [business('b1'), named('s1', 'b1'), ifKnown('s1', 'b1')]) {
      await lab.requestRefresh(other)
      assert.equal(await uninstalledAt(), at)
    }
    await lab.requestRefresh(business('b1', true))
    assert.equal(await uninstalledAt(), null)
  },

  async 'requestRefresh of a business: the last of an install and an uninstall in one call counts'(lab) {
    for (const i of [1, 2, 3]) await lab.request(`s${i}`, `b${i}`)
    const event = (businessUid: string, installed: boolean, at?: number) =>
      eventOf('none', { key: businessUid, businessUid, refresh: business(businessUid, installed, at) })
    await lab.accept([event('b1', false), event('b2', true), event('b1', true), event('b2', false)])
    await lab.accept([event('b3', false, 2_000), event('b3', true, 1_000)])
    const claims = await claimsById(lab)
    for (const uid of ['s1', 's2', 's3']) has(claims.get(uid), { generation: 3 })
    has(claims.get('s1'), { uninstalledAt: null })
    for (const uid of ['s2', 's3']) isNumber(claims.get(uid)?.uninstalledAt, 'uninstalledAt')
  },

  async 'requestRefresh of a business: an uninstall counts as an update of what was read, whatever install came before or follows'(
    lab,
  ) {
    const soon = Date.now() + 3_600_000
    const cases: [isUpdate: boolean, isKnown: boolean, ...(readonly [installed: boolean, at?: number])[]][] =
      [
        [true, true, [false], [true]],
        [true, true, [true, soon], [false, soon - 1]],
        [false, true, [true], [true]],
        [false, false, [false], [true]],
      ]
    for (const isOneCall of [true, false])
      for (const [i, [isUpdate, isKnown, ...reports]] of cases.entries()) {
        const businessUid = `b${i} ${isOneCall}`
        await (isKnown
          ? lab.known(businessUid, 'purchased', businessUid)
          : lab.request(businessUid, businessUid))
        const events = reports.map((report) =>
          eventOf('none', { key: businessUid, businessUid, refresh: business(businessUid, ...report) }),
        )
        if (isOneCall) await lab.accept(events)
        else for (const event of events) await lab.accept([event])
        const { uninstalledAt, updateAt } = await lab.next(businessUid)
        same([uninstalledAt, updateAt !== null], [null, isUpdate], `${i}, in one call: ${isOneCall}`)
      }
  },

  async 'requestRefresh of a business: the latest install or uninstall counts, in any order of arrival'(lab) {
    const ago = (seconds: number) => Date.now() - seconds * 1_000
    const at = ago(70)
    const cases: [isUninstalled: boolean, ...reports: [installed: boolean, at: number | null][]][] = [
      [true, [false, ago(60)], [true, ago(90)]],
      [false, [true, ago(40)], [false, ago(50)]],
      [false, [false, ago(60)], [true, ago(40)]],
      // Of two with the same time the last to arrive counts.
      [true, [true, at], [false, at]],
      // A report without a time counts as of now.
      [true, [true, ago(40)], [false, null]],
      [true, [false, null], [true, ago(30)]],
      // So does a time in the future: otherwise it would count for years.
      [true, [true, ago(-1e9)], [false, null]],
      [true, [true, ago(-1e9)], [false, ago(-60)]],
      // A clock behind the platform's changes the order neither of two dates nor of what arrives without one.
      [true, [false, ago(-600)], [true, ago(-590)]],
      [true, [true, ago(-590)], [false, null]],
      [true, [false, ago(-600)], [true, null], [false, ago(-610)]],
    ]
    for (const i of cases.keys()) await lab.request(`s${i}`, `b${i}`)
    for (const [i, [, ...reports]] of cases.entries())
      for (const [installed, at] of reports) await lab.requestRefresh(business(`b${i}`, installed, at))
    const claims = await claimsById(lab)
    for (const [i, [isUninstalled]] of cases.entries())
      assert.equal(claims.get(`s${i}`)?.uninstalledAt !== null, isUninstalled, `${i}`)
  },
}

async function claimsById(lab: Lab) {
  return new Map((await lab.claimAll()).map((claim) => [claim.id, claim]))
}
