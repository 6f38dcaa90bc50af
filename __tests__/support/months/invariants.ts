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

/** So few checks of an invariant may be skipped in any world, for one reason. */
const FEW = 3
/**
 * Why a check is skipped, and the part of the checks of its invariant that one world may skip for this reason, where
 * `FEW` is not enough. Too many skipped checks hide what they should find. The largest parts in 30 worlds without faults were 1 %,
 * 5.4 % and 0.06 %.
 */
const SKIPPED_AT_MOST = {
  // Any number of businesses may have been misled; each is checked again after its next change.
  'handlers got the answers of a wrong option': 1,
  'too early': 0.015,
  'no delivery named it, or it is under way, and deliveries are lost': 0.08,
  'it is under way': 0.002,
  'the delivery was lost or refused': 0,
  'health is not ok': 0,
  'the app has not met the fault': 0,
  'no delivery named the purchase': 0,
  'no read has shown the purchase': 0,
  // Ends of several during a long outage are held back: "An outage is not the end of many" in docs/guarantees.md.
  'the answer is not known': 0,
  'a refused token alone proves nothing': 0,
  'no handler got a change of the business': 0,
  'its last change was handled while the answer was unknown': 0,
  'the disk fails': 0,
  'a kill may have prevented the report of its end': 0,
  'a power cut may have lost it': 0,
  'the restored backup may be older': 0,
  'settled for less than half a day': 0,
} as const
export type SkipReason = keyof typeof SKIPPED_AT_MOST

export interface Broken {
  invariant: Invariant
  message: string
}

interface Counts {
  made: number
  skipped: Partial<Record<SkipReason, number>>
}

/** How often each invariant was checked, and how often not, by reason. */
export type Tally = Partial<Record<Invariant, Counts>>

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
    skipped(invariant: Invariant, why: SkipReason) {
      const { skipped } = of(invariant)
      skipped[why] = (skipped[why] ?? 0) + 1
    },
    /** At the end of a world: compares the skipped checks with their bounds. `expected` must have been checked at all. */
    close(expected: readonly Invariant[]) {
      for (const invariant of expected)
        if (!tally[invariant]?.made) fail('checked', `'${invariant}' was never checked`)
      for (const [invariant, counts] of invariantsIn(tally)) {
        for (const [why, skipped] of reasonsIn(counts)) {
          const most = Math.max(FEW, SKIPPED_AT_MOST[why] * (counts.made + skippedIn(counts)))
          if (skipped > most)
            fail(
              'checked',
              `'${invariant}' was checked ${countsOf(counts)}; the bound of '${why}' is ${most}`,
            )
        }
      }
    },
  }
}

export type Verdict = ReturnType<typeof createVerdict>

const invariantsIn = (tally: Tally) => Object.entries(tally) as [Invariant, Counts][]
const reasonsIn = ({ skipped }: Counts) => Object.entries(skipped) as [SkipReason, number][]
const skippedIn = (counts: Counts) => reasonsIn(counts).reduce((sum, [, count]) => sum + count, 0)

function countsOf(counts: Counts): string {
  const reasons = reasonsIn(counts).map(([why, count]) => `${count} × ${why}`)
  return `${counts.made} times${reasons.length > 0 ? ` and skipped ${skippedIn(counts)} times: ${reasons.join(', ')}` : ''}`
}

/** The sum of the tallies of several worlds. */
export function addTally(sum: Tally, more: Tally) {
  for (const [invariant, own] of invariantsIn(more)) {
    const counts = sum[invariant] ?? { made: 0, skipped: {} }
    sum[invariant] = counts
    counts.made += own.made
    for (const [why, count] of reasonsIn(own)) counts.skipped[why] = (counts.skipped[why] ?? 0) + count
  }
}

/** A line for each invariant: how often it was checked and skipped. */
export function tallyLines(tally: Tally): string[] {
  return invariantsIn(tally).map(([invariant, counts]) => `  ${invariant}: checked ${countsOf(counts)}`)
}

/** A problem of health() as text. Older versions of the package have texts, later ones objects. */
export function wordsOf(problem: unknown): string {
  if (typeof problem === 'string') return problem
  const { message, next } = problem as { message: string; next: string }
  return `${message}: ${next}`
}
