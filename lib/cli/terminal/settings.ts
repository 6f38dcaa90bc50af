import type { ConfigError, MarketplaceOptions } from '../../index.js'
import { Stop, USAGE } from './exit-codes.js'

/** Every setting of the environment, with its option. */
export const SETTINGS = {
  MARKETPLACE_CLIENT_ID: { option: 'app.clientId', isList: false },
  MARKETPLACE_CLIENT_SECRET: { option: 'app.clientSecret', isList: false },
  MARKETPLACE_PURCHASABLE_UID: { option: 'app.purchasableUid', isList: true },
  MARKETPLACE_CODE_NAME: { option: 'app.codeName', isList: true },
  MARKETPLACE_BASE_URL: { option: 'platform.baseUrl', isList: false },
  MARKETPLACE_AUTH_URL: { option: 'platform.authUrl', isList: false },
  DELIVERY_SECRETS: { option: 'deliverySecrets', isList: true },
  MARKETPLACE_STORE: { option: 'store', isList: false },
} as const

/** The options in an environment, unchecked. An empty value counts as not set, and commas separate lists. */
export function optionsFromEnvironment(env: NodeJS.ProcessEnv): MarketplaceOptions {
  const options: Record<string, unknown> = { app: {}, platform: {} }
  for (const [name, { option, isList }] of Object.entries(SETTINGS)) {
    const given = env[name]?.trim()
    if (!given) continue
    const value = isList ? given.split(',').map((each) => each.trim()) : given
    const [group, field] = option.split('.') as [string, string?]
    if (field) (options[group] as Record<string, unknown>)[field] = value
    else options[group] = value
  }
  return options as unknown as MarketplaceOptions
}

/**
 * The error for faults of the options. It names the settings of the environment, unless the options come from the file
 * `config`.
 */
export function settingsStop(error: ConfigError, env: NodeJS.ProcessEnv, config: string | undefined): Stop {
  const faults = config ? error.faults : [...new Set(error.faults.map((fault) => inEnvironment(fault, env)))]
  return new Stop(USAGE, ['The settings are not valid:', ...faults.map((fault) => `  - ${fault}`)], {
    code: 'config_invalid',
    fix: config
      ? `Correct them in ${config}.`
      : 'Set them in the environment, or give a file: --env <file> or --config <file>.',
  })
}

function inEnvironment(fault: string, env: NodeJS.ProcessEnv): string {
  const [, path = '', rest = ''] = /^([\w.]+): (.*)$/s.exec(fault) ?? []
  for (const [name, { option }] of Object.entries(SETTINGS)) {
    if (path !== option && !path.startsWith(`${option}.`)) continue
    if (!env[name]?.trim()) return `${name} is not set (${option})`
    return `${name} (${option}): ${option === 'store' ? EXPECTED_ADDRESS : rest}`
  }
  return fault
}

/** A store as text. The option also takes values that only code can give. */
export const EXPECTED_ADDRESS = 'expected sqlite:<path> or postgres://…'

/** The address of a store without the user and the password. */
export function nameOf(address: string, schema?: string): string {
  if (address.startsWith('sqlite:') || !URL.canParse(address)) return address
  const { protocol, host, pathname } = new URL(address)
  return `${protocol}//${host}${pathname}${schema === undefined ? '' : ` (schema ${schema})`}`
}

/** The secrets in the options, which must not be printed. */
export function secretsOf(options: MarketplaceOptions): (string | undefined)[] {
  const { app, deliverySecrets, store } = options as {
    app?: { clientSecret?: unknown }
    deliverySecrets?: unknown
    store?: unknown
  }
  const all = [app?.clientSecret, ...[deliverySecrets].flat(), ...passwordsOf(store)]
  return all.filter((each) => typeof each === 'string')
}

/** The password in the address of a store, as it stands there and as it is. */
export function passwordsOf(store: unknown): string[] {
  const password = typeof store === 'string' && URL.canParse(store) ? new URL(store).password : ''
  return [password, decoded(password)]
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
