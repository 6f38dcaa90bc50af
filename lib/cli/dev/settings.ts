import { environmentOf, readEnvironment, SETTINGS } from '../../environment.js'
import type { MarketplaceOptions } from '../../index.js'

/**
 * The settings of an app beside `dev`. They may stand in public: an app takes these secrets only from a platform on its
 * machine.
 */
const OWN = {
  MARKETPLACE_CLIENT_ID: 'dev-app',
  MARKETPLACE_CLIENT_SECRET: 'dev-client-secret',
  MARKETPLACE_PURCHASABLE_UID: 'dev-item',
  MARKETPLACE_CODE_NAME: 'dev-app',
  DELIVERY_SECRETS: 'dev-9Lr2mXw7Kq4ZtB8v',
  MARKETPLACE_STORE: 'sqlite:marketplace-dev.db',
}

/** What the person has set, and values of our own for the rest. The addresses are those of the platform of `dev`. */
export function devSettings(options: MarketplaceOptions) {
  const { MARKETPLACE_BASE_URL: _, MARKETPLACE_AUTH_URL: __, ...given } = environmentOf(options)
  const { app, deliverySecrets } = readEnvironment({ ...OWN, ...given })

  return {
    app,
    deliverySecrets,
    /** The names of what the person has set. The values may be secret, so they are not printed. */
    given: Object.keys(given),
    /** The lines for the environment of the app: all, or those without what the person has set. */
    lines(which: 'all' | 'own', { baseUrl, authUrl }: MarketplaceOptions['platform']): string[] {
      const own = { ...OWN, MARKETPLACE_BASE_URL: baseUrl, MARKETPLACE_AUTH_URL: authUrl }
      const values: Record<string, string> = { ...own, ...given }
      return Object.keys(SETTINGS)
        .filter((name) => which === 'all' || !(name in given))
        .map((name) => `${name}=${quoted(values[name] as string)}`)
    },
  }
}

export type DevSettings = ReturnType<typeof devSettings>

/** A value as a shell and `node --env-file` read it. */
function quoted(value: string): string {
  if (/^[\w.,:/@%+~-]+$/.test(value)) return value
  return value.includes("'") ? `"${value}"` : `'${value}'`
}
