import { overlaps, type Window } from './clock.js'
import type { CallLine } from './instance-child.js'
import type { Life } from './instances.js'

/** One call of a handler. If the process died during the call, `to` is the time of its death. */
export interface Call extends Window {
  id: string
  attempt: number
  life: Life
  outcome: 'ends' | 'fails' | 'stops' | 'killed' | 'running'
}

/** Every call of every process, in the order in which the calls began. */
export function callsOf(lives: readonly Life[]): Call[] {
  return lives
    .flatMap((life) => {
      const lines = life.calls()
      const ends = new Map(lines.filter(({ is }) => is !== 'begins').map((line) => [line.call, line]))
      return lines
        .filter(({ is }) => is === 'begins')
        .map((begun) => callOf(life, begun, ends.get(begun.call)))
    })
    .sort((a, b) => a.from - b.from)
}

function callOf(life: Life, { id, attempt, at: from }: CallLine, end: CallLine | undefined): Call {
  const isOver = life.to !== Number.POSITIVE_INFINITY
  const outcome = end ? (end.is as 'ends' | 'fails' | 'stops') : isOver ? 'killed' : 'running'
  return { id, attempt, life, from, to: end?.at ?? life.to, outcome }
}

/** How long a thawed process takes to notice that another process took its leases over. */
const WAKING_MS = 2_000

/**
 * Whether the process was frozen during the call, or just before it while it held the lease. Such a process continues
 * when it wakes up, and nothing can prevent that: handlers are called at least once.
 */
export function wasFrozen({ from, to, life }: Call): boolean {
  return life.frozen.some((frozen) =>
    overlaps({ from: frozen.from, to: frozen.to + WAKING_MS }, { from, to }),
  )
}

export function describeCall({ id, attempt, life, from, to, outcome }: Call): string {
  const frozen = life.frozen.map((each) => `${Math.round(each.from)}-${Math.round(each.to)}`)
  return `${id} attempt ${attempt} at instance ${life.instance} (life ${life.number}, pid frozen ${frozen.join(' ') || 'never'}): ${from.toFixed(1)}-${to.toFixed(1)} ${outcome}`
}
