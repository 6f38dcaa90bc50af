import { DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import { wordsOf } from '../world/promises.js'
import { type FaultClass, tracked } from './faults.js'
import type { World } from './world.js'

/** Faults of the machine, the process, the database and the registration, after which the app knows less than it thinks. */
export const FAULTS_OF_MACHINES = {
  registration: {
    id: 'M63',
    what: 'a registration that was removed',
    async live(world) {
      const { time, deliveries, buyers, app, verdict } = world
      for (let i = 0; i < 12; i++) buyers.settle(`silent-${i}`)
      await time.advance(DAY)
      deliveries.now.lost = 1
      await time.advance(6 * DAY)
      time.lookClosely(3 * SECOND)
      await time.advance(3 * SECOND)
      verdict.made('honest')
      const { status, problems } = await time.until(app.marketplace().health())
      const words = problems.map(wordsOf)
      if (!words.some((each) => /without an event|webhook/i.test(each))) {
        verdict.fail('honest', `no event for days, and health is ${status}: ${words.join('; ')}`)
      }
      deliveries.now.lost = 0
      await time.advance(9 * DAY)
    },
  },

  suspended: {
    id: 'M64',
    what: 'a machine that was suspended',
    async live(world) {
      const { time, buyers, platform, random, probes, note } = world
      await tracked(world, 20)
      await time.advance(2 * HOUR)
      buyers.rest(true)
      await time.advance(HOUR)
      const forMs = random.pick([10 * MINUTE, 20 * HOUR, 10 * DAY])
      note(`suspended for ${forMs / HOUR} h`)
      time.after(forMs / 20, () => {
        for (let i = 0; i < 10; i++)
          void buyers.move(platform.of(`customer-${i}`)[0]?.uid as string, 'suspended')
      })
      await time.suspend(forMs)
      // Answers older than 72 h are not given any more.
      if (forMs > 4 * DAY) {
        for (let i = 0; i < 20; i++)
          await probes.expectUnknown(`customer-${i}`, 'right after a sleep of days')
      } else await probes.expectPayers('right after a sleep')
      time.attend(20 * MINUTE)
      await time.advance(20 * MINUTE)
      // After a day, everything is due.
      if (forMs > 1.2 * DAY) {
        for (let i = 0; i < 20; i++)
          await probes.expect('healed', `customer-${i}`, i >= 10, '20 min after a sleep of days')
      } else await probes.expectPayers('20 min after a sleep')
      buyers.rest(false)
      await probes.visit()
    },
  },

  restored: {
    id: 'M65',
    what: 'a backup that was restored',
    async live(world) {
      const { time, buyers, platform, app, disk, deliveries, ledger, probes, checkJournal } = world
      await tracked(world, 30)
      await time.advance(2 * HOUR)
      await checkJournal()
      buyers.rest(true)
      await time.advance(5 * MINUTE)
      const known = deliveries.snapshot()
      const backup = await disk.backup((path) => time.until(app.marketplace().backup(path)))
      for (let i = 0; i < 10; i++)
        await buyers.move(platform.of(`customer-${i}`)[0]?.uid as string, 'suspended')
      await buyers.buy('after-the-backup').isDelivered
      await time.advance(2 * HOUR)
      for (let i = 0; i < 10; i++)
        await probes.expect('healed', `customer-${i}`, false, 'after a missed payment')
      await app.close()
      await app.restore(backup)
      deliveries.recall(known)
      ledger.onRestore()
      app.deploy()
      time.attend(20 * MINUTE)
      await time.advance(20 * MINUTE)
      for (let i = 0; i < 30; i++) {
        await probes.expect('healed', `customer-${i}`, i >= 10, '20 min after the restore of a backup')
      }
      buyers.rest(false)
    },
  },

  deadly: {
    id: 'M68',
    what: 'a handler that ended its process each time',
    async live(world) {
      const { time, app, buyers, ledger, verdict, note, checkJournal } = world
      const killer = createKiller(world)
      const { kill } = killer
      app.now.onHandler = (business, isChange) => {
        if (business === 'deadly' && isChange) time.after(5, kill)
      }
      // The handlers of others are under way when the process ends.
      app.now.handlerMs = 400
      const others = Array.from({ length: 6 }, (_, i) => `beside-${i}`)
      for (const business of ['deadly', ...others]) void buyers.buy(business)
      // Leases end after a minute, so the clock takes small jumps.
      for (let i = 0; i < 60; i++) await time.advance(MINUTE)
      for (const business of others) expectHandled(world, business)
      for (let i = 0; i < 40 && !ledger.isWithoutChange('deadly'); i++) {
        await time.advance(6 * HOUR)
        if (!app.isUp()) await time.advance(10 * SECOND)
        await checkJournal()
      }
      note(`the process ended ${killer.kills()} times`)
      verdict.made('ended')
      if (!ledger.isWithoutChange('deadly'))
        verdict.fail('ended', `a deadly change is not dead after ${killer.kills()} ends`)
      for (const business of others) {
        verdict.made('ended')
        if (ledger.isWithoutChange(business))
          verdict.fail('ended', `a change of ${business} died with another one`)
      }
      app.now.onHandler = () => {}
      app.now.handlerMs = 0
    },
  },

  deadlyRead: {
    id: 'M69',
    what: 'a read that ended its process each time',
    async live(world) {
      const { time, app, buyers, note, probes } = world
      const killer = createKiller(world)
      app.now.onCall = (address) => {
        if (address.includes('-deadly')) time.after(5, killer.kill)
      }
      const others = Array.from({ length: 6 }, (_, i) => `read-beside-${i}`)
      for (const business of ['deadly', ...others]) void buyers.buy(business)
      for (let i = 0; i < 15; i++) await time.advance(MINUTE)
      // The next end of the process must not come between the questions.
      app.now.onCall = () => {}
      await time.advance(10 * SECOND)
      note(`the process ended ${killer.kills()} times`)
      for (const business of others)
        await probes.expect('healed', business, true, '15 min beside a deadly read')
    },
  },
} satisfies Record<string, FaultClass>

/** Kills the process, which is started again 3 s later. */
function createKiller({ time, app }: World) {
  let kills = 0
  return {
    kills: () => kills,
    kill() {
      if (!app.isUp()) return
      kills++
      app.kill()
      time.after(3 * SECOND, () => app.deploy())
    },
  }
}

/** A business beside a deadly one gets its handler within the hour. */
function expectHandled({ verdict, app }: World, business: string) {
  verdict.made('open')
  if (!app.open.get(business))
    verdict.fail('open', `no handler got ${business} within an hour, beside a deadly one`)
}
