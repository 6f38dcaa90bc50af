import { dirname, join } from 'node:path'
import type * as Package from '../../../lib/index.js'
import type { MarketplaceOptions } from '../../../lib/index.js'

/**
 * The package that the months test: that of this tree, or another version's, to see an invariant fail there:
 * `MONTHS_LIB=/somewhere/else/lib/index npx jest __tests__/faults/life/months.test.ts`.
 */
const { MONTHS_LIB } = process.env

const package_ = require(MONTHS_LIB ?? '../../../lib/index.js') as typeof Package & Partial<LaterPackage>
export const { createMarketplace, restoreBackup } = package_

/** Versions before it had this restored a backup by a copy of the file. */
interface LaterPackage {
  restoreBackup(options: MarketplaceOptions, backup: string): Promise<unknown>
}

/** A file of the package under test, by its path in `lib`. */
export function fromPackage(path: string) {
  return require(MONTHS_LIB ? join(dirname(MONTHS_LIB), path.replace(/\.js$/, '')) : `../../../lib/${path}`)
}

let loading: Promise<void> | undefined

/** Loads the parts of the package that load when the first store opens. The time of a world does not wait for that. */
export function loadEverything(): Promise<void> {
  loading ??= (async () => {
    const app = { clientId: 'client', clientSecret: 'secret', purchasableUid: 'item' }
    const platform = { baseUrl: 'https://platform.test', authUrl: 'https://auth.test' }
    const deliverySecrets = 'Wq7xKe2mVb9sRt4cYp1n'
    const marketplace = createMarketplace({ app, platform, deliverySecrets, store: 'sqlite::memory:' })
    await marketplace.start()
    await marketplace.close()
  })()
  return loading
}
