import { DAY } from '../base/clock.js'
import { MarketplaceError } from '../base/errors.js'
import type { SubscriptionRecord } from '../base/record.js'
import type { EntitledWhen } from './own-rule.js'
import { canonicalState, grants } from './purchase-state.js'

/**
 * A rule for `entitledWhen`: `purchased`, or canceled and paid until `expiration_date`. A date without a time counts to its
 * end, in UTC. A canceled subscription without a date that can be read is not entitled.
 *
 * @example createMarketplace({ ...options, entitledWhen: paidThrough() })
 */
export function paidThrough(): EntitledWhen {
  return ({ purchase_state, expiration_date }, { now }) => {
    if (grants(purchase_state)) return true
    if (canonicalState(purchase_state) !== 'canceled') return false
    return openUntil(endOfTime(expiration_date), now)
  }
}

/**
 * A rule for `entitledWhen`: `purchased`, or suspended for less than `ms`, counted from `updated_at`. So the period begins
 * again if the platform updates the suspended subscription. Throws `argument_invalid` if `ms` is not a positive number.
 *
 * @example
 * const [isPaid, isInGrace] = [paidThrough(), gracePeriod(3 * 86_400_000)]
 * createMarketplace({ ...options, entitledWhen: (record, at) => isPaid(record, at) || isInGrace(record, at) })
 */
export function gracePeriod(ms: number): EntitledWhen {
  if (!(ms > 0 && Number.isFinite(ms)))
    throw new MarketplaceError(
      'argument_invalid',
      'Cannot make a grace period: expected a positive number of milliseconds',
    )
  return ({ purchase_state, updated_at }, { now }) => {
    if (grants(purchase_state)) return true
    if (purchase_state !== 'suspended') return false
    return openUntil(timeOf(updated_at) + ms, now)
  }
}

/** False, and no answer with an end, if that has passed: so two rules can be joined by `||`. */
function openUntil(until: number, now: number) {
  return until > now && { entitled: true, until }
}

function endOfTime(date: SubscriptionRecord['expiration_date']): number {
  const isDay = typeof date === 'string' && /^\d{4}-\d\d-\d\d$/.test(date)
  return timeOf(date) + (isDay ? DAY : 0)
}

/** NaN for a value that is no date. The platform writes texts; the format of `expiration_date` is not documented. */
function timeOf(date: unknown): number {
  return typeof date === 'string' ? Date.parse(date) : Number.NaN
}
