import { checkAcknowledged, checkChanges } from '../world/journal.js'
import type { Verdict } from '../world/promises.js'
import type { EntryRow } from '../world/rows.js'
import { type Call, describeCall, wasFrozen } from './calls.js'
import { coveredMs, overlaps } from './clock.js'
import type { Acknowledged, Life } from './instances.js'
import type { Trouble } from './monkey.js'

/** Checks the journal and the calls of handlers after everything has come to rest. Returns some figures. */
export function audit(options: {
  journal: readonly EntryRow[]
  calls: readonly Call[]
  acknowledged: readonly Acknowledged[]
  lives: readonly Life[]
  troubles: readonly Trouble[]
  leaseMs: number
  verdict: Verdict
}) {
  const { journal, calls, acknowledged, lives, troubles, leaseMs, verdict } = options
  const { fail } = verdict
  const rows = new Map(journal.map((row) => [row.id, row]))
  const callsById = grouped(calls, ({ id }) => id)
  const callsByKey = grouped(calls, ({ id }) => rows.get(id)?.key)

  checkAcknowledged(
    acknowledged.map(({ id }) => id),
    journal,
    verdict,
  )
  for (const { id, status, kind, error, lapses } of journal) {
    // The instances have no handler of entitlements.
    if (kind === 'entitlement') continue
    const hasReturned = callsById.get(id)?.some(({ outcome }) => outcome === 'ends')
    if (status !== 'done') fail('handled', `${kind} ${id} is ${status}: ${error}, ${lapses} lapses`, id)
    else if (!hasReturned) fail('ended', `${kind} ${id} is done, and no handler has returned`, id)
  }

  for (const { instance, endedByItself, stderr } of lives) {
    if (endedByItself) fail('up', `instance ${instance} ended by itself: ${stderr}`)
    if (/listen_unavailable/.test(stderr)) {
      fail('up', `instance ${instance} has turned notifications off for ever: ${stderr}`)
    }
  }

  let overlapsOfFrozen = 0
  for (const [key, own] of callsByKey) {
    if (key === undefined) {
      for (const call of own) fail('handled', `a handler got no stored entry: ${describeCall(call)}`, call.id)
      continue
    }
    for (const [at, earlier] of own.entries()) {
      for (const later of own.slice(at + 1)) {
        if (!overlaps(earlier, later)) continue
        if (wasFrozen(earlier) || wasFrozen(later)) overlapsOfFrozen++
        else fail('apart', `${describeCall(earlier)}\n    ${describeCall(later)}`, earlier.id, later.id)
      }
    }
  }

  const firstBegin = (id: string) => callsById.get(id)?.[0]?.from ?? Number.POSITIVE_INFINITY
  const firstEnd = (id: string) =>
    Math.min(...(callsById.get(id) ?? []).filter(({ outcome }) => outcome === 'ends').map(({ to }) => to))
  function requireOrder(key: string | undefined, earlier: string | undefined, later: string) {
    if (earlier === undefined || firstBegin(later) >= firstEnd(earlier)) return
    fail('order', `${key}: ${later} began before ${earlier} was handled`, earlier, later)
  }
  const changes = checkChanges(journal, verdict)
  for (const { uid, rows: own } of changes.values()) {
    for (const [at, { id }] of own.entries()) requireOrder(uid, own[at - 1]?.id, id)
  }
  // A delivery that was acknowledged before the next one was sent comes first in the journal. Deliveries that
  // overlapped have no order.
  for (const [key, own] of grouped(acknowledged, ({ id }) => rows.get(id)?.key)) {
    const byReply = [...own].sort((a, b) => a.to - b.to)
    for (const [at, later] of byReply.entries()) {
      requireOrder(key, byReply.slice(0, at).findLast(({ to }) => to < later.from)?.id, later.id)
    }
  }

  const takeovers = calls.filter(({ outcome }) => outcome === 'killed').map(takeoverOf)
  function takeoverOf(call: Call): number {
    const next = callsById.get(call.id)?.find(({ outcome, to }) => outcome === 'ends' && to > call.to)
    const span = { from: call.to, to: next?.to ?? Number.POSITIVE_INFINITY }
    const others = troubles.filter(({ target }) => target !== call.life.instance)
    const excusedMs = coveredMs(span, others)
    if (next && span.to - span.from - excusedMs > leaseMs + 15_000) {
      fail('takeover', `${describeCall(call)}, and then ${describeCall(next)}`, call.id)
    }
    return span.to - span.from
  }

  return {
    changes: [...changes.values()].reduce((sum, { rows: own }) => sum + own.length, 0),
    'handlers called again': calls.length - callsById.size,
    'handlers run twice at once after a freeze': overlapsOfFrozen,
    'takeovers from the killed': takeovers.length,
    'slowest takeover, ms': Math.round(Math.max(0, ...takeovers.filter(Number.isFinite))),
  }
}

/** `Map.groupBy`, which Node has only from version 21. */
function grouped<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>()
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item])
  return groups
}
