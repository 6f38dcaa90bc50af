import { HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import { endure, type FaultClass, tracked } from './faults.js'
import type { Outage } from './platform.js'
import type { World } from './world.js'

/** Ends of subscriptions that the platform does not show, and faults that look like such ends. */
export const FAULTS_OF_ENDS = {
  dyingTokens: {
    id: 'M62',
    what: 'tokens that ended with their subscriptions',
    async live(world) {
      const { time, platform, buyers, deliveries, probes } = world
      const ways = ['uninstall', 'record', 'update', 'nothing'] as const
      const names = ways.flatMap((way) => [0, 1, 2].map((i) => ({ way, business: `ends-${way}-${i}` })))
      await tracked(world, 20)
      for (const { business } of names) buyers.buy(business)
      await time.advance(HOUR)
      for (const { way, business } of names) {
        const uid = platform.of(business)[0]?.uid as string
        const ended = platform.set(uid, business, 'canceled')
        platform.refuse(business)
        if (way === 'uninstall') void deliveries.install(business, 'uninstalled')
        if (way === 'record') void deliveries.record(ended, platform.recordOf(ended))
        if (way === 'update') void deliveries.purchase(ended, 'update')
        await time.advance(20 * MINUTE)
      }
      for (const { way, withinMs } of [
        { way: 'uninstall', withinMs: 3 * MINUTE },
        { way: 'record', withinMs: 0 },
        { way: 'update', withinMs: 90 * MINUTE },
        { way: 'nothing', withinMs: 101 * HOUR },
      ]) {
        await time.advance(withinMs)
        for (const each of names) {
          if (each.way !== way) continue
          await probes.expect('healed', each.business, false, `after its end (${way})`)
          deliveries.learnEnd(each.business)
        }
      }
    },
  },

  noRecords: {
    id: 'M66',
    what: 'empty lists for everybody',
    async live(world) {
      const { time, platform, random } = world
      await tracked(world, 40)
      await time.advance(10 * MINUTE)
      platform.now.outage = 'no records'
      await endureRestarts(world, 'the platform shows no records', random.pick([7 * HOUR, 36 * HOUR]))
      platform.now.outage = 'none'
    },
  },

  noTokens: {
    id: 'M67',
    what: 'refused tokens for everybody, beside forged uninstalls',
    async live(world) {
      const { time, platform, deliveries, buyers, random, probes, note } = world
      await tracked(world, 30)
      await time.advance(10 * MINUTE)
      const forMs = random.pick([3 * SECOND, HOUR, 20 * HOUR])
      note(`tokens are refused for ${forMs / MINUTE} min`)
      buyers.rest(true)
      platform.now.outage = 'no tokens' satisfies Outage
      for (let i = 0; i < 30; i++) void deliveries.install(`customer-${i}`, 'uninstalled')
      time.attend(forMs + 10 * MINUTE)
      for (let passed = 0; passed < forMs; ) {
        const step = Math.min(forMs - passed, passed < 5 * MINUTE ? MINUTE : HOUR)
        await time.advance(step)
        passed += step
        await probes.expectPayers('while tokens are refused')
      }
      platform.now.outage = 'none'
      await time.advance(10 * MINUTE)
      await probes.expectPayers('10 min after tokens were refused')
      for (let i = 0; i < 30; i++) await deliveries.install(`customer-${i}`, 'installed')
      buyers.rest(false)
      await probes.visit()
    },
  },
} satisfies Record<string, FaultClass>

/** The fault lasts over several restarts, because what the app has seen of it must not be forgotten by them. */
async function endureRestarts(world: World, what: string, forMs: number) {
  const { app, random, buyers, probes } = world
  const isRestarted = random.chance(0.5)
  buyers.rest(true)
  await endure(world, what, HOUR)
  for (let passed = HOUR; passed < Math.min(forMs, world.longestMs); passed += HOUR) {
    if (isRestarted) await app.redeploy()
    await world.time.advance(HOUR)
    await probes.expectPayers(`while ${what}`)
  }
  buyers.rest(false)
}
