/** What a person may do, from less to more: an operator may do all that support may. */
export const ROLES = ['support', 'operator'] as const

/** What a person may do. */
export type Role = (typeof ROLES)[number]

/** Who asks, as `authorize` gives it back. */
export interface Person {
  /** Kept with each action in the journal. 1 to 200 characters. */
  name: string
  role: Role
}

export function mayDo({ role }: Person, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

/** The person in what `authorize` answered; undefined for anything else, which denies. */
export function personIn(answer: unknown): Person | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined
  const { name, role } = answer as Partial<Person>
  if (typeof name !== 'string' || name.trim() === '' || name.length > MOST_CHARACTERS) return undefined
  if (role === undefined || !ROLES.includes(role)) return undefined
  return { name, role }
}

const MOST_CHARACTERS = 200
