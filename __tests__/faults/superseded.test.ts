import { expect, it } from '@jest/globals'
import { SECOND, systemClock } from '../../lib/clock.js'
import { useEngine } from '../support/engines.js'
import { createScene, openMarketplace } from '../support/scene.js'
import { startProxy } from '../support/tcp-proxy.js'
import { gate, until } from '../support/until.js'

const postgres = useEngine('PostgreSQL')

it.each(['a cancellation', 'an erasure'])(
  'J35 %s reaches another instance although the database is lost right after its commit',
  async (what) => {
    const address = await postgres.freshAddress()
    const proxy = await startProxy({ to: Number(new URL(address).port) })
    const store = proxy.through(address)
    const { platform, marketplace } = await createScene({ store, clock: lateHints })
    const other = openMarketplace(platform, { store, worker: false })
    await other.start()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await until('the other instance has the answer in memory', () => other.isEntitled('b1'))
    const told = gate<void>()
    marketplace.onPurchaseChange(({ to }) => {
      if (to === 'canceled') told.open()
    })
    if (what === 'an erasure') await marketplace.businesses.erase('b1')
    else {
      platform.cancel(uid)
      await told.opened
    }
    await until('the notification has arrived', () => other.peek('b1') !== true, SECOND)
    await proxy.cut()
    const decision = await other.explain('b1')
    await proxy.heal()
    expect(decision).toMatchObject({ entitled: false, reason: 'store_unavailable' })
  },
)

/** The clock of a process that loses the database before it sends the hints that it collects for 20 ms. */
const lateHints = {
  ...systemClock,
  setTimeout: (run: () => void, ms: number) => systemClock.setTimeout(run, ms === 20 ? 4 * SECOND : ms),
}
