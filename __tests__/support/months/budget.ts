import { DAY, HOUR } from '../../../lib/base/clock.js'
import type { Verdict } from '../world/promises.js'
import type { Deliveries } from './deliveries.js'
import type { Platform } from './platform.js'
import type { Sender } from './sender.js'

/**
 * The budget of a settled subscription. Settled means that for 30 hours nothing named it and nothing failed. 30 hours
 * cover the longest reconcile after refusals, and the reads that verify its result. The reconcile comes after 80 % of
 * 24 h at the earliest, so at most two reads happen in a day. The token of such an old read has expired, so there are
 * at most as many token calls. For a refused business there may be two calls in an hour, because for some days it is
 * unclear whether the refusal is final. Before the no of made-up subscriptions is definite, some others are read, which shows
 * that the platform works, so a flood may cost a read of a customer, and so may each other business that is refused: its
 * refusals become final only while others are served. The calls in the closely observed last period have to keep the same budget.
 */
const SETTLED_AFTER_MS = 30 * HOUR
const RECONCILE_LEAST_MS = 0.8 * DAY
const REFUSED_EVERY_MS = HOUR / 2
/** A refusal that becomes final in this time is verified: after 5 s, 30 s, 2 min, and then less and less often. */
const VERIFYING_CALLS = 8
/** How long before the end of a world its clock steps through every timer. */
export const CLOSELY_MS = HOUR / 3

export function checkBudget(options: {
  platform: Platform
  deliveries: Deliveries
  verdict: Verdict
  sender: Sender | undefined
  /** When the last fault ended, and when the world ended. */
  calmFrom: number
  until: number
}) {
  const { platform, deliveries, verdict, sender, calmFrom, until } = options
  const times = new Map<string, number[]>()
  for (const { at, kind, of } of platform.calls) {
    const key = `${kind} ${of}`
    times.set(key, [...(times.get(key) ?? []), at])
  }

  function check(
    kind: 'read' | 'token',
    name: string,
    from: number,
    subscriptions: number,
    isRefused: boolean,
  ) {
    const spanMs = until - from
    if (spanMs < DAY / 2) return verdict.skipped('budget', 'settled for less than half a day')
    verdict.made('budget')
    const everyMs = isRefused ? REFUSED_EVERY_MS : RECONCILE_LEAST_MS
    for (const overMs of [spanMs, CLOSELY_MS]) {
      const count = (times.get(`${kind} ${name}`) ?? []).filter((at) => at > until - overMs).length
      const floods = sender?.floodsSince(until - overMs) ?? 0
      const verifying = isRefused ? VERIFYING_CALLS : 0
      const most = (Math.ceil(overMs / everyMs) + 1 + verifying + floods + refused.length) * subscriptions
      if (count <= most) continue
      const hours = (overMs / HOUR).toFixed(1)
      verdict.fail('budget', `${count} ${kind} calls for ${name} in ${hours} settled hours, at most ${most}`)
    }
  }

  const fromOf = (...names: string[]) =>
    Math.max(calmFrom, ...names.map((name) => deliveries.namedAt(name))) + SETTLED_AFTER_MS
  const businesses = new Set<string>()
  for (const { business } of platform.subscriptions.values()) businesses.add(business)
  const refused = [...businesses].filter((business) => platform.isRefused(business))
  for (const { uid, business } of platform.subscriptions.values())
    check('read', uid, fromOf(uid, business), 1, platform.isRefused(business))
  for (const business of businesses) {
    const uids = platform.of(business).map(({ uid }) => uid)
    check('token', business, fromOf(business, ...uids), uids.length, platform.isRefused(business))
  }
}
