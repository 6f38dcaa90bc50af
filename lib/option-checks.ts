import { z } from 'zod'

/** A refinement of zod from a function that lists the faults of a value. */
export function without<T>(faultsOf: (value: T) => readonly string[]) {
  return (value: T, context: z.RefinementCtx) => {
    for (const message of faultsOf(value)) context.addIssue({ code: 'custom', message })
  }
}

export function duration(defaultMs: number, minMs: number, maxMs: number) {
  return count(defaultMs, minMs, maxMs, ' ms')
}

export function count(usual: number, min: number, max: number, unit = '') {
  return z
    .int('expected a whole number')
    .min(min, `expected ${min}${unit} or more`)
    .max(max, `expected ${max}${unit} or less`)
    .default(usual)
}

/** An optional group of settings, each with a default. */
export function group<Shape extends z.ZodRawShape>(shape: Shape) {
  return z
    .strictObject(shape, {
      error: ({ code }) =>
        code === 'invalid_type' ? 'expected an object of settings, or nothing for the defaults' : undefined,
    })
    .prefault({} as never)
}

export function oneOrMore<T extends z.ZodType<string>>(each: T) {
  return z.preprocess(
    (value) => (typeof value === 'string' ? [value] : value),
    z.array(each, 'expected a text, or several in an array').min(1, 'expected at least one'),
  )
}

/** One sentence for each fault, with the path of its option. */
export function sentences(issues: readonly z.core.$ZodIssue[]): string[] {
  return issues.map(({ path, message }) => `${path.join('.') || 'options'}: ${plain(message)}`)
}

/** The messages of zod for a value of another type, and for an unknown key, in the words of the other faults. */
function plain(message: string): string {
  return message
    .replace(/^Invalid input: /, '')
    .replace(', received undefined', ', and it is missing')
    .replace(', received ', ', got ')
    .replace('Unrecognized key', 'unknown option')
}

export const httpUrl = z
  .string()
  .refine(isHttpUrl, 'expected an absolute http or https URL without credentials, query or fragment')

function isHttpUrl(value: string): boolean {
  if (!URL.canParse(value)) return false
  const { protocol, username, password, search, hash } = new URL(value)
  return (protocol === 'https:' || protocol === 'http:') && username + password + search + hash === ''
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

export function isClock(value: unknown): boolean {
  if (!isObject(value)) return false
  const clock = value as Record<string, unknown>
  return ['now', 'setTimeout', 'clearTimeout'].every((name) => typeof clock[name] === 'function')
}
