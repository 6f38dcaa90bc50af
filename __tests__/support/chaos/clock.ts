import { setTimeout as sleep } from 'node:timers/promises'

/** Milliseconds on the monotonic clock of the machine, which all processes share. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** The time of a run is real. */
export const realTime = { now: () => Date.now(), sleep }

/** A period of time. `to` is Infinity until the period ends. */
export interface Window {
  from: number
  to: number
}

export function overlaps(a: Window, b: Window): boolean {
  return a.from < b.to && b.from < a.to
}

/** How many milliseconds of `span` at least one of `windows` covers. */
export function coveredMs(span: Window, windows: readonly Window[]): number {
  let covered = 0
  let until = span.from
  for (const { from, to } of [...windows].sort((a, b) => a.from - b.from)) {
    const begin = Math.max(from, until)
    const end = Math.min(to, span.to)
    if (end > begin) covered += end - begin
    until = Math.max(until, end)
  }
  return covered
}

export const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`
