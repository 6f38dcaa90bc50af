import { check, type Expected, type Observed } from './check.js'
import type { Happening } from './timeline.js'

/** One step in the life of a subscription. */
export interface Step {
  title: string
  /** What happens. */
  act(): unknown
  /** When to ask for the decision: told what happened since the step began. Asked at once when left out. */
  until?(since: readonly Happening[]): boolean
  expect: Expected
}

/** What a play needs of its stage. */
export interface PlayStage {
  happenings(): readonly Happening[]
  listen(listener: () => void): () => void
  observe(): Promise<Observed>
}

export interface Verdict {
  title: string
  /** What was wrong, one sentence each. */
  faults: string[]
}

/**
 * Plays the steps in order and checks each decision once, at the moment when it must be right: no trying until it fits.
 * A step that does not come to its end in time, or throws, is a fault like any other.
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
        faults.push(`not over after ${stepTimeoutMs / 1_000} s`)
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

/** What the process ends with: 0 only when there were decisions, and every one of them was right. */
export function exitCodeOf(verdicts: readonly Verdict[]): 0 | 1 {
  return verdicts.length > 0 && verdicts.every(({ faults }) => faults.length === 0) ? 0 : 1
}

/** Resolves to whether it became so in time. */
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
