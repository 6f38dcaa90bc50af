import type { Decision } from '../../lib/index.js'
import type { Happening } from './timeline.js'

/** One step in the life of a subscription. */
export interface Step {
  title: string
  /** The action of the step. */
  act(): unknown
  /** Whether the step has ended, by the events since it began. Without it the decision is read at once. */
  until?(since: readonly Happening[]): boolean
  expect: Expected
}

/** The parts of the demo that a play needs. */
export interface Observable {
  happenings(): readonly Happening[]
  listen(listener: () => void): () => void
  observe(): Promise<Observed>
}

export interface Verdict {
  title: string
  /** A sentence for each difference. */
  faults: string[]
}

/**
 * Plays the steps in order and checks each decision once, without a second try. A step that does not end in time, or that
 * throws, is a fault too.
 */
export async function play(options: {
  steps: readonly Step[]
  demo: Observable
  stepTimeoutMs?: number
  onStep(title: string): void
  onVerdict(verdict: Verdict): void
}): Promise<Verdict[]> {
  const { steps, demo, stepTimeoutMs = 20_000, onStep, onVerdict } = options
  const verdicts: Verdict[] = []
  for (const { title, act, until, expect } of steps) {
    onStep(title)
    const before = demo.happenings().at(-1)?.id ?? 0
    const faults: string[] = []
    try {
      await act()
      const isOver = () => until?.(demo.happenings().filter(({ id }) => id > before)) ?? true
      if (!(await becomes(isOver, demo, stepTimeoutMs)))
        faults.push(`the step has not ended after ${stepTimeoutMs / 1_000} s`)
      faults.push(...check(expect, await demo.observe()))
    } catch (error) {
      faults.push(error instanceof Error ? error.message : String(error))
    }
    const verdict = { title, faults }
    verdicts.push(verdict)
    onVerdict(verdict)
  }
  return verdicts
}

/** The exit code: 0 only if there were decisions and all of them were right. */
export function exitCodeOf(verdicts: readonly Verdict[]): 0 | 1 {
  return verdicts.length > 0 && verdicts.every(({ faults }) => faults.length === 0) ? 0 : 1
}

/** Waits for the condition. False if it does not hold in time. */
export function becomes(
  isSo: () => boolean,
  demo: Pick<Observable, 'listen'>,
  timeoutMs: number,
): Promise<boolean> {
  return new Promise((resolve) => {
    const look = () => {
      if (isSo()) end(true)
    }
    const timer = setTimeout(() => end(false), timeoutMs)
    const unlisten = demo.listen(look)
    function end(result: boolean) {
      clearTimeout(timer)
      unlisten()
      resolve(result)
    }
    look()
  })
}

/** The expected answer at a point in the life of a subscription. */
export interface Expected {
  entitled: boolean
  reason: Decision['reason']
  /** The status of the paid page. */
  report: 200 | 402 | 503
}

export interface Observed {
  decision: Pick<Decision, 'entitled' | 'reason'>
  report: number
}

/** The differences, a sentence for each. */
export function check(expected: Expected, { decision, report }: Observed): string[] {
  const faults: string[] = []
  if (decision.entitled !== expected.entitled) {
    faults.push(`expected ${textOf(expected.entitled)}, got ${textOf(decision.entitled)}`)
  }
  if (decision.reason !== expected.reason) {
    faults.push(`expected the reason ${expected.reason}, got ${decision.reason}`)
  }
  if (report !== expected.report) {
    faults.push(`expected the report to answer ${expected.report}, got ${report}`)
  }
  return faults
}

function textOf(entitled: boolean): string {
  return entitled ? 'let in' : 'not let in'
}
