import { ConfigError } from './base/errors.js'
import { type MarketplaceOptions, readOptions } from './options.js'

/** Every variable of the environment, with its option. */
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

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The options in the variables of an environment, by default that of the process, by the names that the command line reads. `MARKETPLACE_PURCHASABLE_UID`,
 * `MARKETPLACE_CODE_NAME` and `DELIVERY_SECRETS` take several values with commas. An empty variable counts as not set.
 *
 * Throws `ConfigError`: its `faults` name each variable that is missing or not valid, and never a value.
 *
 * @example
 * const marketplace = createMarketplace({ ...optionsFromEnvironment(process.env), entitledWhen: paidThrough() })
 * const fromVault = optionsFromEnvironment({ ...process.env, DELIVERY_SECRETS: await vault.read('delivery-secrets') })
 */
export function optionsFromEnvironment(
  env: Readonly<Record<string, string | undefined>> = process.env,
): MarketplaceOptions {
  const options = readEnvironment(env)
  try {
    readOptions(options)
  } catch (error) {
    throw error instanceof ConfigError ? new ConfigError(inEnvironment(error.faults, env)) : error
  }
  return options
}

/** The options in an environment, not checked. */
export function readEnvironment(env: Environment): MarketplaceOptions {
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

/** The variables of options: those whose value is a text or a list of texts. `readEnvironment` gets the same options from them. */
export function environmentOf(options: MarketplaceOptions): Record<string, string> {
  const variables: Record<string, string> = {}
  for (const [name, { option }] of Object.entries(SETTINGS)) {
    const value = option
      .split('.')
      .reduce<unknown>((of, field) => (of as Record<string, unknown> | undefined)?.[field], options)
    const texts = [value ?? []].flat()
    if (texts.length > 0 && texts.every((each) => typeof each === 'string')) variables[name] = texts.join(',')
  }
  return variables
}

/** The faults of options that come from an environment, with the names of its variables. */
export function inEnvironment(faults: readonly string[], env: Environment): string[] {
  return [...new Set(faults.map((fault) => withVariable(fault, env)))]
}

function withVariable(fault: string, env: Environment): string {
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
