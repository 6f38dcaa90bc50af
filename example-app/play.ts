import { check, type Expected, type Observed } from './check.js'
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

/** The parts of the stage that a play needs. */
export interface PlayStage {
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
  stage: PlayStage
  stepTimeoutMs?: number
  onStep(title: string): void
  onVerdict(verdict: Verdict): void
}): Promise<Verdict[]> {
  const { steps, stage, stepTimeoutMs = 20_000, onStep, onVerdict } = options
  const verdicts: Verdict[] = []
  for (const { title, act, until, expect } of steps) {
    onStep(title)
    const before = stage.happenings().at(-1)?.id ?? 0
    const faults: string[] = []
    try {
      await act()
      const isOver = () => until?.(stage.happenings().filter(({ id }) => id > before)) ?? true
      if (!(await becomes(isOver, stage, stepTimeoutMs)))
        faults.push(`the step has not ended after ${stepTimeoutMs / 1_000} s`)
      faults.push(...check(expect, await stage.observe()))
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
  stage: Pick<PlayStage, 'listen'>,
  timeoutMs: number,
): Promise<boolean> {
  return new Promise((resolve) => {
    const look = () => {
      if (isSo()) end(true)
    }
    const timer = setTimeout(() => end(false), timeoutMs)
    const unlisten = stage.listen(look)
    function end(result: boolean) {
      clearTimeout(timer)
      unlisten()
      resolve(result)
    }
    look()
  })
}
