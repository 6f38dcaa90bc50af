import { existsSync, readFileSync } from 'node:fs'
import type { FullSubscription, Simulator } from '../../testing/index.js'
import { Stop, USAGE } from '../terminal/exit-codes.js'
import { replaceFile } from '../terminal/files.js'

/** What the platform of `dev` knows, so that the database of the app still fits to it after a restart. */
interface Kept {
  /** The number of the business that the keys act for. */
  business: number
  /** The businesses without the app. */
  uninstalled: string[]
  subscriptions: FullSubscription[]
}

/** Restores the businesses of the file on a platform without registrations. Returns the number of the last one. */
export function recall(file: string, platform: Simulator): number {
  if (!existsSync(file)) return 1
  try {
    const { business, uninstalled, subscriptions } = JSON.parse(readFileSync(file, 'utf8')) as Kept
    if (!Number.isSafeInteger(business) || business < 1) throw new TypeError('no number')
    const isOnSale = (uid: string) => platform.apps.some(({ purchasableUid }) => purchasableUid === uid)
    for (const { uid, business_uid, purchasable_uid } of subscriptions)
      platform.purchase({
        ...{ business_uid, subscription_uid: uid, payment: 'succeeded' },
        ...(isOnSale(purchasable_uid) ? { purchasable_uid } : {}),
      })
    for (const uid of uninstalled) platform.uninstall(uid)
    // The uninstalls have changed some of them.
    for (const record of subscriptions) platform.set(record.uid, record)
    return business
  } catch {
    throw new Stop(USAGE, `Cannot use ${file}: it does not contain the businesses of dev`, {
      fix: 'Delete it to begin with new businesses, or choose another file with --state.',
    })
  }
}

/** Writes what the platform knows now. */
export function remember(file: string, platform: Simulator, business: number): void {
  const subscriptions = platform.subscriptions()
  const bought = [...new Set(subscriptions.map(({ business_uid }) => business_uid))]
  const uninstalled = bought.filter((uid) => !platform.servesTokens(uid))
  replaceFile(file, JSON.stringify({ business, uninstalled, subscriptions } satisfies Kept))
}
