import type { JournalRow } from './books.js'
import { type Call, describeCall, wasFrozen } from './calls.js'
import { coveredMs, overlaps } from './clock.js'
import { grouped } from './grouped.js'
import type { Life } from './instances.js'
import type { Trouble } from './monkey.js'
import type { Acknowledged } from './sender.js'

/** A violation, with the rows and calls that it concerns. */
export interface Finding {
  promise: string
  text: string
  ids: string[]
}

export interface Audit {
  findings: Finding[]
  /** Calls after the first one of an entry. */
  repeated: number
  /** Times when two handlers ran at once because a process had been frozen. */
  overlapsOfFrozen: number
  takeovers: number
  slowestTakeoverMs: number
  changes: number
}

/** Checks the journal and the calls of handlers after everything has come to rest. */
export function audit(options: {
  journal: readonly JournalRow[]
  calls: readonly Call[]
  acknowledged: readonly Acknowledged[]
  lives: readonly Life[]
  troubles: readonly Trouble[]
  leaseMs: number
}): Audit {
  const { journal, calls, acknowledged, lives, troubles, leaseMs } = options
  const findings: Finding[] = []
  const find = (promise: string, text: string, ...ids: string[]) => findings.push({ promise, text, ids })
  const rows = new Map(journal.map((row) => [row.id, row]))
  const callsById = grouped(calls, ({ id }) => id)
  const callsByKey = grouped(calls, ({ id }) => rows.get(id)?.key)

  for (const { ids, instance, from, to } of acknowledged) {
    for (const id of ids.filter((each) => !rows.has(each))) {
      find(
        'acknowledged deliveries are stored',
        `${id}, acknowledged by instance ${instance} at ${from}-${to}, is missing`,
        id,
      )
    }
  }

  for (const { id, status, kind, error, lapses } of journal) {
    if (status === 'dead') find('nothing becomes dead', `${kind} ${id}: ${error}, ${lapses} lapses`, id)
    if (status === 'pending') find('everything is handled', `${kind} ${id} is still pending: ${error}`, id)
    if (status === 'done' && !callsById.get(id)?.some(({ outcome }) => outcome === 'ends')) {
      find('everything is handled', `${kind} ${id} is done, and no handler has returned`, id)
    }
  }

  for (const life of lives) {
    if (life.endedByItself)
      find('a process stays up', `instance ${life.instance} ended by itself: ${life.stderr}`)
    if (/listen_unavailable/.test(life.stderr)) {
      find(
        'notifications stay on',
        `instance ${life.instance} has turned notifications off for ever: ${life.stderr}`,
      )
    }
  }

  let overlapsOfFrozen = 0
  for (const [key, own] of callsByKey) {
    if (key === undefined) {
      for (const call of own)
        find('handlers get only stored entries', `no such entry: ${describeCall(call)}`, call.id)
      continue
    }
    for (const [at, earlier] of own.entries()) {
      for (const later of own.slice(at + 1)) {
        if (!overlaps(earlier, later)) continue
        if (wasFrozen(earlier) || wasFrozen(later)) overlapsOfFrozen++
        else
          find(
            'never two at once',
            `${describeCall(earlier)}\n    ${describeCall(later)}`,
            earlier.id,
            later.id,
          )
      }
    }
  }

  const firstBegin = (id: string) => callsById.get(id)?.[0]?.from ?? Number.POSITIVE_INFINITY
  const firstEnd = (id: string) =>
    Math.min(...(callsById.get(id) ?? []).filter(({ outcome }) => outcome === 'ends').map(({ to }) => to))

  const changes = journal.filter(({ kind }) => kind === 'change')
  for (const [key, own] of grouped(changes, (row) => row.subscription_uid)) {
    let before: { row: JournalRow; to: unknown; updatedAt: number } | undefined
    for (const row of own) {
      const { from, to, record } = JSON.parse(row.payload)
      const updatedAt = Date.parse(record?.updated_at)
      if (from !== (before?.to ?? null)) {
        find(
          'each change follows the one before',
          `${key}: ${before?.to} is followed by ${from} -> ${to}`,
          row.id,
        )
      }
      if (before && updatedAt < before.updatedAt) {
        find('updated_at never goes back', `${key}: ${record.updated_at}`, before.row.id, row.id)
      }
      if (before && firstBegin(row.id) < firstEnd(before.row.id)) {
        find('in order', `${key}: ${row.id} began before ${before.row.id} was handled`, before.row.id, row.id)
      }
      before = { row, to, updatedAt }
    }
  }

  // A delivery that was acknowledged before the next one was sent comes first in the journal. Deliveries that
  // overlapped have no order.
  for (const [key, own] of grouped(acknowledged, ({ ids }) => rows.get(ids[0] as string)?.key)) {
    const byReply = [...own].sort((a, b) => a.to - b.to)
    for (const [at, later] of byReply.entries()) {
      const earlier = byReply.slice(0, at).findLast(({ to }) => to < later.from)
      const [first, second] = [earlier?.ids[0], later.ids[0] as string]
      if (first && firstBegin(second) < firstEnd(first)) {
        find('in order', `${key}: event ${second} began before event ${first} was handled`, first, second)
      }
    }
  }

  const takeovers = calls.filter(({ outcome }) => outcome === 'killed').map(takeoverOf)
  function takeoverOf(call: Call): number {
    const next = callsById.get(call.id)?.find(({ outcome, to }) => outcome === 'ends' && to > call.to)
    const span = { from: call.to, to: next?.to ?? Number.POSITIVE_INFINITY }
    const others = troubles.filter(({ target }) => target !== call.life.instance)
    const excusedMs = coveredMs(span, others)
    if (next && span.to - span.from - excusedMs > leaseMs + 15_000) {
      find(
        'taken over within the lease and 15 s',
        `${describeCall(call)}, and then ${describeCall(next)}`,
        call.id,
      )
    }
    return span.to - span.from
  }

  return {
    findings,
    repeated: [...callsById.values()].reduce((sum, own) => sum + own.length - 1, 0),
    overlapsOfFrozen,
    takeovers: takeovers.length,
    slowestTakeoverMs: Math.max(0, ...takeovers.filter(Number.isFinite)),
    changes: changes.length,
  }
}
