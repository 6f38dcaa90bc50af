import { BlockList, isIP } from 'node:net'
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
    z
      .array(each, {
        error: ({ input }) =>
          `expected a text, or several in an array${input === undefined ? ', and it is missing' : ''}`,
      })
      .min(1, 'expected at least one'),
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

/** An address of the platform. */
export const platformAddress = z.string().superRefine(without(addressFaults))

function addressFaults(value: string): string[] {
  const url = URL.canParse(value) ? new URL(value) : undefined
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (!url || !isWeb || url.username + url.password + url.search + url.hash !== '')
    return ['expected an absolute http or https URL without credentials, query or fragment']
  if (url.protocol === 'https:' || isOnLoopback(url)) return []
  return [
    'expected https://, because the client secret travels in the URL of the token call, and a token in each read: ' +
      `use the https:// address of the platform. http:// is only for ${ON_LOOPBACK}`,
  ]
}

const ON_LOOPBACK = 'a platform on this machine (localhost, 127.0.0.1 or [::1])'

/** The addresses that no other machine can reach. */
const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8)
LOOPBACK.addAddress('::1', 'ipv6')

/** Names that only resemble `localhost`, such as `app.localhost`, are left out: not every system resolves them itself. */
function isOnLoopback({ hostname }: URL): boolean {
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  const version = isIP(host)
  return version === 0 ? host === 'localhost' : LOOPBACK.check(host, version === 6 ? 'ipv6' : 'ipv4')
}

/** Every secret that stands in the pages, the examples and the programs of this package. */
export const PUBLISHED_SECRETS: readonly string[] = [
  'q8Zr3mW5xK1vT7yB9nL2cD4f',
  'my-client-secret',
  'not-a-real-secret',
  'dev-client-secret',
  'dev-9Lr2mXw7Kq4ZtB8v',
]

/** One sentence for each secret in unchecked options that everybody knows, unless the platform is on this machine. */
export function publishedSecrets(options: unknown): string[] {
  const { app, platform, deliverySecrets } = objectIn(options)
  const { baseUrl, authUrl } = objectIn(platform)
  const isLocal = [baseUrl, authUrl].every(
    (address) => typeof address === 'string' && URL.canParse(address) && isOnLoopback(new URL(address)),
  )
  if (isLocal) return []
  const clientFault = publicityOf(objectIn(app).clientSecret)
  return [
    ...(clientFault
      ? [`app.clientSecret: ${clientFault}: use the secret that the platform gave to your app`]
      : []),
    ...[deliverySecrets].flat().flatMap((secret, i) => {
      const fault = publicityOf(secret)
      return fault
        ? [`deliverySecrets.${i}: ${fault}: make one with \`npx marketplace-webhooks secret\``]
        : []
    }),
  ]
}

/** Why everybody knows a secret, in whatever case and with whatever spaces around it; undefined for any other value. */
function publicityOf(secret: unknown): string | undefined {
  if (typeof secret !== 'string') return undefined
  const text = secret.trim().toLowerCase()
  if (text.startsWith('<') && text.endsWith('>'))
    return `it is a placeholder in angle brackets, as in the documentation of this package, and is only for ${ON_LOOPBACK}`
  return PUBLISHED_SECRETS.some((each) => each.toLowerCase() === text)
    ? `it stands in the documentation of this package, so everybody knows it, and is only for ${ON_LOOPBACK}`
    : undefined
}

function objectIn(value: unknown): Record<string, unknown> {
  return isObject(value) ? (value as Record<string, unknown>) : {}
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

export function isClock(value: unknown): boolean {
  if (!isObject(value)) return false
  const clock = value as Record<string, unknown>
  return ['now', 'setTimeout', 'clearTimeout'].every((name) => typeof clock[name] === 'function')
}
