import { DAY } from '../base/clock.js'
import { MarketplaceError } from '../base/errors.js'
import type { SubscriptionRecord } from '../base/record.js'
import type { EntitledWhen } from './own-rule.js'
import { canonicalState, grants } from './purchase-state.js'

/**
 * A rule for `entitledWhen`: `purchased`, or canceled and paid until `expiration_date` in ISO 8601. A date without a time counts
 * to its end, and a time without a zone is UTC. A canceled subscription without such a date is not entitled, because any
 * other form may be read in two ways.
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
 * again if the platform updates the suspended subscription. Throws `argument_invalid` if `ms` is not a positive number of at
 * most 100 years.
 *
 * @example
 * const [isPaid, isInGrace] = [paidThrough(), gracePeriod(3 * 86_400_000)]
 * createMarketplace({ ...options, entitledWhen: (record, at) => isPaid(record, at) || isInGrace(record, at) })
 */
export function gracePeriod(ms: number): EntitledWhen {
  if (typeof ms !== 'number' || !(ms > 0 && ms <= MAX_MS))
    throw new MarketplaceError(
      'argument_invalid',
      'Cannot make a grace period: expected a positive number of milliseconds, at most 100 years',
    )
  return ({ purchase_state, updated_at }, { now }) => {
    if (grants(purchase_state)) return true
    if (purchase_state !== 'suspended') return false
    return openUntil(timeOf(updated_at) + ms, now)
  }
}

/** With more, the end is a date that JavaScript cannot hold. */
const MAX_MS = 100 * 366 * DAY

/** False, and no answer with an end, if that has passed: so two rules can be joined by `||`. */
function openUntil(until: number, now: number) {
  return until > now && { entitled: true, until }
}

function endOfTime(date: SubscriptionRecord['expiration_date']): number {
  const isDay = typeof date === 'string' && date.length === DAY_LENGTH
  return timeOf(date) + (isDay ? DAY : 0)
}

const DAY_LENGTH = 'yyyy-mm-dd'.length
const ISO_8601 = /^(\d{4}-\d\d-(\d\d))(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(?: ?(Z|UTC|[+-]\d\d:?\d\d))?)?$/

/**
 * The time of a date in ISO 8601, UTC without a zone; NaN for every other value. The platform writes texts, and the format of
 * `expiration_date` is not documented. Of other forms `Date.parse` takes the day in the zone of the machine.
 */
function timeOf(date: unknown): number {
  const [, day, dayOfMonth, time = '00:00', zone = 'Z'] =
    ISO_8601.exec(typeof date === 'string' ? date : '') ?? []
  // `Date.parse` takes June 31 for July 1.
  if (day === undefined || new Date(day).getUTCDate() !== Number(dayOfMonth)) return Number.NaN
  return Date.parse(`${day}T${time}${zone.replace('UTC', 'Z')}`)
}
