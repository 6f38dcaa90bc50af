import { expect, it } from '@jest/globals'
import { MINUTE, SECOND, systemClock } from '../../../lib/base/clock.js'
import { createEntitlements } from '../../../lib/entitlement/entitlements.js'
import { useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { startProxy } from '../../support/engines/tcp-proxy.js'
import { createScene } from '../../support/scene.js'
import { ruled } from '../../support/scenes/reader.js'
import { gate, until } from '../../support/until.js'

const postgres = useEngine('PostgreSQL')

it.each(['a cancellation', 'an erasure'])(
  'J35 %s reaches another instance although the database is lost right after its commit',
  async (what) => {
    const address = await postgres.freshAddress()
    const proxy = await startProxy({ to: Number(new URL(address).port) })
    const store = proxy.through(address)
    const { platform, marketplace } = await createScene({ store, clock: lateHints })
    const { store: seen } = await openStoreWithSql(store)
    const other = createEntitlements({ store: seen, rules: RULES, waitMs: 0, clock: systemClock })
    let hasEnded = false
    const notified = gate<void>()
    seen.subscribe((hint) => {
      if (hint.kind === 'decided' && hint.superseded && hasEnded) notified.open()
    })
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await until('the other instance has the answer in memory', () => other.isEntitled('b1'))
    hasEnded = true
    const told = gate<void>()
    marketplace.onPurchaseChange(({ to }) => {
      if (to === 'canceled') told.open()
    })
    if (what === 'an erasure') await marketplace.businesses.erase('b1')
    else {
      platform.cancel(uid)
      await told.opened
    }
    await notified.opened
    await proxy.cut()
    const decision = await other.explain('b1')
    await proxy.heal()
    expect(decision).toMatchObject({ entitled: false, reason: 'store_unavailable' })
  },
)

const RULES = {
  purchasableUids: [],
  entitledWhen: ruled(({ purchase_state }) => purchase_state === 'purchased'),
  maxStaleMs: MINUTE,
}

/** The clock of a process that loses the database before it sends the hints that it collects for 20 ms. */
const lateHints = {
  ...systemClock,
  setTimeout: (run: () => void, ms: number) => systemClock.setTimeout(run, ms === 20 ? 4 * SECOND : ms),
}
