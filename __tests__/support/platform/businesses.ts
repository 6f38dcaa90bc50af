/** What a business is to the app: `gone` after an uninstall, else by the state of one of its subscriptions. */
export type Standing = keyof typeof HABITS
export type Act =
  | 'buys'
  | 'upgrades'
  | 'pays'
  | 'misses a payment'
  | 'cancels'
  | 'resumes'
  | 'uninstalls'
  | 'leaves'
  | 'returns'
  | 'installs'
  | 'edits'
  | 'buys another item'

/** What a business of each standing does next, with the weight of each act. */
const HABITS = {
  new: { buys: 1 },
  purchased: {
    'misses a payment': 0.4,
    cancels: 0.2,
    uninstalls: 0.2,
    leaves: 0.08,
    upgrades: 0.1,
    edits: 0.05,
    installs: 0.04,
    'buys another item': 0.05,
  },
  suspended: { pays: 0.7, cancels: 0.1, uninstalls: 0.2, edits: 0.05 },
  canceled: { buys: 0.75, resumes: 0.25 },
  gone: { returns: 1 },
} satisfies Record<string, Partial<Record<Act, number>>>

/** Four of five purchases are paid at once. */
export const PAID_AT_ONCE = 0.8

/**
 * Draws what a business does next, among the acts that its world knows. Simulation, months and chaos have these
 * businesses in common; how an act comes to the app, and how often it happens, is their own.
 */
export function nextAct<A extends Act>(
  next: () => number,
  standing: Standing,
  acts: Readonly<Partial<Record<A, unknown>>>,
  weights: Partial<Record<Act, number>> = {},
): A {
  const habits = Object.entries({ ...HABITS[standing] }).flatMap(([act, usual]): [A, number][] =>
    act in acts ? [[act as A, weights[act as A] ?? usual]] : [],
  )
  let rest = next() * habits.reduce((sum, [, weight]) => sum + weight, 0)
  for (const [act, weight] of habits) {
    rest -= weight
    if (rest < 0) return act
  }
  return (habits.at(-1) as [A, number])[0]
}

/** The standing of a business that uses the app, by the state of a subscription. */
export function standingOf(state: string | undefined): Standing {
  if (state === undefined || state === 'none') return 'new'
  return state.startsWith('cancel') ? 'canceled' : (state as 'purchased' | 'suspended')
}
