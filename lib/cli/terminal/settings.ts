import { inEnvironment } from '../../environment.js'
import type { ConfigError, MarketplaceOptions } from '../../index.js'
import { Stop, USAGE } from './exit-codes.js'

/**
 * The error for faults of the options. It names the settings of the environment, unless the options come from the file
 * `config`.
 */
export function settingsStop(error: ConfigError, env: NodeJS.ProcessEnv, config: string | undefined): Stop {
  return config
    ? faultsStop(error.faults, `Correct them in ${config}.`)
    : faultsStop(inEnvironment(error.faults, env), FIX_OF_ENVIRONMENT)
}

/** The error for the faults that `optionsFromEnvironment` has found in the file of options. Undefined for any other error. */
export function stopOfFile(error: unknown): Stop | undefined {
  // The class may be that of the other build of the package, so the code decides.
  const { code, faults } = (error ?? {}) as Partial<ConfigError>
  return code === 'config_invalid' && faults ? faultsStop(faults, FIX_OF_ENVIRONMENT) : undefined
}

const FIX_OF_ENVIRONMENT = 'Set them in the environment, or give a file: --env <file> or --config <file>.'

function faultsStop(faults: readonly string[], fix: string): Stop {
  const lines = faults.map((fault) => `  - ${fault}`)
  return new Stop(USAGE, ['The settings are not valid:', ...lines], { code: 'config_invalid', fix })
}

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
