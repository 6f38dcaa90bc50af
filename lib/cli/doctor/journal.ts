import type { EventName, Marketplace } from '../../index.js'
import { sentenceOf } from '../journal/list.js'
import { oneLine } from '../terminal/layout.js'
import { type Finding, failed, ok, skipped, warning } from './report.js'

/** The newest entries of a name that are looked at. */
const LOOKED_AT = 100
const MAX_NAMED = 5

/**
 * Whether a purchase so far is of one of the app's items. If none is, and there are purchases of others, the setting is
 * misspelt, and every customer is denied. An app whose setting was always wrong has read no subscription, so the events count.
 */
export async function checkItems(marketplace: Marketplace, own: readonly string[]): Promise<Finding> {
  if (own.length === 0) return skipped('app.purchasableUid is not set')
  for (const purchasableUid of own) {
    const [found] = await marketplace.subscriptions.list({ purchasableUid, limit: 1 })
    if (found) return ok('there are subscriptions of the item of the app')
  }
  const stored = await marketplace.subscriptions.list({ limit: LOOKED_AT })
  const announced = [
    ...(await dataOf(marketplace, 'purchasable_subscription/create')),
    ...(await dataOf(marketplace, 'purchasable_subscription/update')),
  ]
  const items = [...stored, ...announced].map(({ purchasable_uid }) => purchasable_uid)
  const others = [...new Set(items.filter((item) => typeof item === 'string'))]
  if (others.some((item) => own.includes(item))) return ok('purchases of the item of the app have arrived')
  if (others.length === 0) return skipped('no purchase has arrived so far')
  const named = (uids: readonly string[]) => uids.map((uid) => JSON.stringify(oneLine(uid))).join(', ')
  return failed(
    `every purchase so far is of another item (${named(others.slice(0, MAX_NAMED))}) and none of the app's (${named(own)}): every customer is denied`,
    'Correct MARKETPLACE_PURCHASABLE_UID if one of these is the item of the app.',
  )
}

/** Whether handlers fail, with the newest error. */
export async function checkHandlers(marketplace: Marketplace): Promise<Finding> {
  const newest = async (status: 'dead' | 'retrying') =>
    (await marketplace.journal.list({ status, limit: 1 })).map(sentenceOf).map(oneLine)
  const [dead] = await newest('dead')
  if (dead !== undefined)
    return warning(
      `a handler has failed on every try; the newest: ${dead}`,
      'Mend the handler, and pass the entries to it again: marketplace-webhooks journal replay --dead --wait',
    )
  const [retrying] = await newest('retrying')
  if (retrying !== undefined)
    return warning(
      `a handler fails, and will be called again; the newest: ${retrying}`,
      'See marketplace-webhooks journal list --retrying, and mend the handler.',
    )
  return ok('no entry of the journal has failed')
}

/** The business of the newest install that no uninstall has followed. */
export async function lastInstalled(marketplace: Marketplace): Promise<string | undefined> {
  const [installs, uninstalls] = [
    await marketplace.journal.list({ name: 'application/installed', limit: LOOKED_AT }),
    await marketplace.journal.list({ name: 'application/uninstalled', limit: LOOKED_AT }),
  ]
  const isLast = ({ business_uid, receivedAt }: (typeof installs)[number]) =>
    !uninstalls.some((each) => each.business_uid === business_uid && each.receivedAt >= receivedAt)
  return installs.find(isLast)?.business_uid ?? undefined
}

/** The `data` of the newest events of a name. */
async function dataOf(marketplace: Marketplace, name: EventName): Promise<Record<string, unknown>[]> {
  const entries = await marketplace.journal.list({ kind: 'event', name, limit: LOOKED_AT })
  return entries.map(({ payload }) => (payload as { data?: Record<string, unknown> } | null)?.data ?? {})
}
