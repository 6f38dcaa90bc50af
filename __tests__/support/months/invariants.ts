/** The promises that are checked in every world. */
export const INVARIANTS = {
  in: 'while health is ok, who buys is let in within 10 s, who stops paying is out, and "not yet" is never "no"',
  honest: 'health() explains a problem after a minute',
  healed: 'when all is right again, payers are in, others out and health is ok, within the reconcile',
  ended: 'an entry ends by a handler that returned, as dead and reported, or by retention after either',
  apart: 'two handlers of one subscription never run at once',
  budget: 'calls to the platform stay within the budget',
  id: 'one change has one id',
} as const

export type Invariant = keyof typeof INVARIANTS

export interface Broken {
  invariant: Invariant
  message: string
}

/** Collects the violations, only the first of each kind. */
export function createVerdict(when: () => string) {
  const broken: Broken[] = []
  return {
    broken,
    fail(invariant: Invariant, what: string) {
      if (broken.filter((each) => each.invariant === invariant).length >= 3) return
      broken.push({ invariant, message: `${when()}: ${what}` })
    },
  }
}

export type Verdict = ReturnType<typeof createVerdict>
