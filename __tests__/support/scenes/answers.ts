import type { DecisionRules } from '../../../lib/entitlement/decide.js'
import { createEntitlements } from '../../../lib/entitlement/entitlements.js'
import type { Hint, Subscription } from '../../../lib/store/port/store.js'
import { createVirtualClock } from '../machine/virtual-clock.js'
import { gate } from '../until.js'
import { record, ruled, subscriptionOf } from './reader.js'

/** What a subscription in this state has in the store. */
export const inState = (state: string) => ({ record: record(state, 1), state })

/**
 * Answers over a store in which each business has bought, except those named unknown, in virtual time. `more` changes
 * the subscription, which is the same for all.
 */
export function createAnswers({
  more = {},
  rules = {},
  waitMs = 0,
}: {
  more?: Partial<Subscription> | ((now: number) => Partial<Subscription>)
  rules?: Partial<DecisionRules>
  waitMs?: number
} = {}) {
  const clock = createVirtualClock()
  const bought = { ...inState('purchased'), readAt: clock.now(), requestedAt: null, pending: false }
  let rows = [subscriptionOf({ ...bought, ...(typeof more === 'function' ? more(clock.now()) : more) })]
  let [looks, subscribed, first] = [0, 0, 0]
  let isDown = false
  let held: ReturnType<typeof gate<void>> | undefined
  let notify: (hint: Hint) => void = () => {}
  const { isEntitled, explain, waitForEntitlement, close } = createEntitlements({
    store: {
      async readFirst() {
        first++
      },
      async subscriptionsOf(businessUid) {
        looks++
        if (isDown) throw new Error('down')
        const seen = businessUid.startsWith('unknown') ? [] : rows
        const waitsFor = held
        held = undefined
        await waitsFor?.opened
        return seen
      },
      subscribe(listener) {
        subscribed++
        notify = listener
        return () => void subscribed--
      },
    },
    rules: {
      purchasableUids: [],
      entitledWhen: ruled(({ purchase_state }) => purchase_state === 'purchased'),
      maxStaleMs: 72 * 3_600_000,
      ...rules,
    },
    waitMs,
    clock: clock.forProcess(),
  })
  return {
    clock,
    isEntitled,
    explain,
    waitForEntitlement,
    close,
    /** The number of queries of the store. */
    looks: () => looks,
    subscribed: () => subscribed,
    /** How often a read was put first. */
    first: () => first,
    notify: (hint: Hint) => notify(hint),
    /** Writes changes of the subscription, without a hint. */
    change(changes: Partial<Subscription>) {
      rows = rows.map((row) => ({ ...row, ...changes }))
    },
    /** From now on the store has these subscriptions. */
    have(subscriptions: Subscription[]) {
      rows = subscriptions
    },
    /** The next query has read its result, which arrives when the gate opens. */
    hold() {
      held = gate<void>()
      return held
    },
    fail() {
      isDown = true
    },
  }
}
