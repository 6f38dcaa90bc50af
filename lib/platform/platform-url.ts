import { MarketplaceError } from '../base/errors.js'

/** The URL of `path` below the address `base`. Throws `config_invalid` for an address that is not an absolute URL. */
export function platformUrl(base: string, path: string, query: Record<string, string> = {}): URL {
  // The address is checked first, because the error of `new URL` contains its input.
  if (!URL.canParse(base)) {
    throw new MarketplaceError(
      'config_invalid',
      'Cannot call the platform: its address is not an absolute URL. Correct platform.baseUrl and platform.authUrl',
    )
  }
  const url = new URL(base)
  url.pathname = url.pathname.replace(/\/+$/, '') + path
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return url
}
