/** The roles, lowest first. An operator may do everything that support may. */
export const ROLES = ['support', 'operator'] as const

/** What a person may do. */
export type Role = (typeof ROLES)[number]

/** A person, as `authorize` returns it. */
export interface Person {
  /** Recorded with each action in the journal. 1 to 200 characters. */
  name: string
  /** What the person may do. An operator may do everything that support may. */
  role: Role
}

export function mayDo({ role }: Person, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

/** The person in the answer of `authorize`; undefined for any other value, which denies. */
export function personIn(answer: unknown): Person | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined
  const { name, role } = answer as Partial<Person>
  if (typeof name !== 'string' || name.trim() === '' || name.length > MAX_CHARACTERS) return undefined
  if (role === undefined || !ROLES.includes(role)) return undefined
  return { name, role }
}

const MAX_CHARACTERS = 200
