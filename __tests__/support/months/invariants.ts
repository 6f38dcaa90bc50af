/** The promises that are checked in every world. */
export const INVARIANTS = {
  in: 'while health is ok, buyers get access within 10 s, others lose it, and "not known yet" is never "no"',
  honest: 'health() explains a problem after a minute',
  healed: 'after the correction, payers have access, others do not, and health is ok, within the reconcile',
  ended:
    'an entry ends after its handler returned, or dead and reported; retention deletes it only after that',
  apart: 'two handlers of one subscription never run at once',
  budget: 'calls to the platform stay within the budget',
  id: 'one change has one id',
  calm: 'without a fault, health() is ok at all times, and no entry is dead',
  right:
    'without a fault, every answer is right within the time that its evidence allows, a payer stays in, and nobody is stale',
  open: 'what the change handler writes into a table of the app becomes the truth, as the answers do',
  checked: 'only a bounded part of the checks is skipped',
} as const

export type Invariant = keyof typeof INVARIANTS

/**
 * The largest part of the checks of an invariant that one world may skip. Checks that a fault makes impossible are
 * skipped; too many of them hide what they should find.
 */
const SKIPPED_AT_MOST: Partial<Record<Invariant, number>> = { in: 0.5, healed: 0.4, budget: 0.4, open: 0.8 }
const SKIPPED_AT_MOST_OF_OTHERS = 0.15
/** So few may be skipped in any world. */
const FEW = 3

export interface Broken {
  invariant: Invariant
  message: string
}

/** How often each invariant was checked, and how often not, by reason. */
export type Tally = Partial<Record<Invariant, { made: number; skipped: Record<string, number> }>>

/** Collects the violations, at most three of each kind, and counts the checks. */
export function createVerdict(when: () => string) {
  const broken: Broken[] = []
  const tally: Tally = {}

  function of(invariant: Invariant) {
    const counts = tally[invariant] ?? { made: 0, skipped: {} }
    tally[invariant] = counts
    return counts
  }

  function fail(invariant: Invariant, what: string) {
    if (broken.filter((each) => each.invariant === invariant).length >= 3) return
    broken.push({ invariant, message: `${when()}: ${what}` })
  }

  return {
    broken,
    tally,
    fail,
    made: (invariant: Invariant) => void of(invariant).made++,
    skipped(invariant: Invariant, why: string) {
      const { skipped } = of(invariant)
      skipped[why] = (skipped[why] ?? 0) + 1
    },
    /** At the end of a world: compares the skipped checks with their bounds. */
    close() {
      for (const [invariant, counts] of Object.entries(tally) as [Invariant, Tally[Invariant] & object][]) {
        const skipped = skippedIn(counts)
        const most = SKIPPED_AT_MOST[invariant] ?? SKIPPED_AT_MOST_OF_OTHERS
        if (skipped <= FEW || skipped <= most * (skipped + counts.made)) continue
        fail(
          'checked',
          `'${invariant}' was checked ${countsOf(counts)}; at most ${most * 100} % may be skipped`,
        )
      }
    },
  }
}

export type Verdict = ReturnType<typeof createVerdict>

function skippedIn({ skipped }: { skipped: Record<string, number> }): number {
  return Object.values(skipped).reduce((sum, count) => sum + count, 0)
}

function countsOf(counts: { made: number; skipped: Record<string, number> }): string {
  const reasons = Object.entries(counts.skipped).map(([why, count]) => `${count} × ${why}`)
  return `${counts.made} times${reasons.length > 0 ? ` and skipped ${skippedIn(counts)} times: ${reasons.join(', ')}` : ''}`
}

/** The sum of the tallies of several worlds. */
export function addTally(sum: Tally, more: Tally) {
  for (const [invariant, { made, skipped }] of Object.entries(more) as [
    Invariant,
    Tally[Invariant] & object,
  ][]) {
    const counts = sum[invariant] ?? { made: 0, skipped: {} }
    sum[invariant] = counts
    counts.made += made
    for (const [why, count] of Object.entries(skipped))
      counts.skipped[why] = (counts.skipped[why] ?? 0) + count
  }
}

/** A line for each invariant: how often it was checked and skipped. */
export function tallyLines(tally: Tally): string[] {
  return Object.entries(tally).map(([invariant, counts]) => `  ${invariant}: checked ${countsOf(counts)}`)
}

/** A problem of health() as text. Older versions of the package have texts, later ones objects. */
export function wordsOf(problem: unknown): string {
  if (typeof problem === 'string') return problem
  const { message, next } = problem as { message: string; next: string }
  return `${message}: ${next}`
}
