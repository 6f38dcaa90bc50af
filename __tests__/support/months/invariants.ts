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
} as const

export type Invariant = keyof typeof INVARIANTS

export interface Broken {
  invariant: Invariant
  message: string
}

/** Collects the violations, at most three of each kind. */
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
