import assert from 'node:assert/strict'
import { type Check, claimedAll, eventOf, fails, has, isNumber, named } from '../lab.js'

const business = (businessUid: string, installed: boolean | null = null, at: number | null = null) =>
  ({ kind: 'business', businessUid, install: installed === null ? null : { installed, at } }) as const

export const INSTALLS: readonly Check[] = [
  {
    name: 'requestRefresh of a business: stores an uninstall, which only an install clears',
    async check(lab) {
      const { store } = lab
      const uninstalledAt = async () => {
        const claim = await lab.until('the next read is due', async () => (await claimedAll(store))[0])
        await store.finishRead(claim, fails('platform_timeout'))
        return claim.uninstalledAt
      }
      await store.requestRefresh(named('s1', 'b1'))
      assert.equal(await uninstalledAt(), null)
      await store.requestRefresh(business('b1', false))
      const at = await uninstalledAt()
      isNumber(at, 'uninstalledAt')
      for (const other of [
        business('b1', null),
        named('s1', 'b1'),
        business('b2', true),
        { kind: 'known', subscriptionUid: 's1', businessUid: 'b1' } as const,
      ]) {
        await store.requestRefresh(other)
        if (other.businessUid === 'b1') assert.equal(await uninstalledAt(), at)
      }
      await store.requestRefresh(business('b1', true))
      assert.equal(await uninstalledAt(), null)
    },
  },
  {
    name: 'requestRefresh of a business: the last of an install and an uninstall in one call counts',
    async check({ store }) {
      await store.requestRefresh(named('s1', 'b1'))
      await store.requestRefresh(named('s2', 'b2'))
      await store.requestRefresh(named('s3', 'b3'))
      const event = (businessUid: string, installed: boolean, at?: number) =>
        eventOf('none', { key: businessUid, businessUid, refresh: business(businessUid, installed, at) })
      await store.accept([event('b1', false), event('b2', true), event('b1', true), event('b2', false)])
      await store.accept([event('b3', false, 2_000), event('b3', true, 1_000)])
      const claims = new Map((await claimedAll(store)).map((claim) => [claim.id, claim]))
      has(claims.get('s1'), { uninstalledAt: null, generation: 3 })
      has(claims.get('s2'), { generation: 3 })
      isNumber(claims.get('s2')?.uninstalledAt, 'uninstalledAt')
      has(claims.get('s3'), { generation: 3 })
      isNumber(claims.get('s3')?.uninstalledAt, 'uninstalledAt')
    },
  },
  {
    name: 'requestRefresh of a business: the latest install or uninstall counts, in any order of arrival',
    async check({ store }) {
      const ago = (seconds: number) => Date.now() - seconds * 1_000
      const cases: [isUninstalled: boolean, ...reports: [installed: boolean, at: number | null][]][] = [
        [true, [false, ago(60)], [true, ago(90)]],
        [false, [true, ago(40)], [false, ago(50)]],
        [false, [false, ago(60)], [true, ago(40)]],
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
      for (const i of cases.keys()) await store.requestRefresh(named(`s${i}`, `b${i}`))
      for (const [i, [, ...reports]] of cases.entries())
        for (const [installed, at] of reports) await store.requestRefresh(business(`b${i}`, installed, at))
      const claims = new Map((await claimedAll(store)).map((claim) => [claim.id, claim.uninstalledAt]))
      for (const [i, [isUninstalled]] of cases.entries())
        assert.equal(claims.get(`s${i}`) !== null, isUninstalled, `${i}`)
    },
  },
]
