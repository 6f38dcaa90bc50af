import { canonicalState } from '../../../lib/entitlement/purchase-state.js'
import type { Simulator } from '../../../lib/testing/index.js'
import { OUR_ITEM } from '../settings.js'
import type { Books, JournalRow, SubscriptionRow } from './books.js'
import type { Commerce } from './commerce.js'
import type { Instance } from './instances.js'
import type { Acknowledged, Sender } from './sender.js'

/** The differences between instances, database and platform, one sentence each. Empty when they agree. */
export async function disagreements(options: {
  instances: readonly Instance[]
  commerce: Commerce
  platform: Simulator
  sender: Sender
  books: Books
}): Promise<string[]> {
  const { instances, commerce, platform, sender, books } = options
  if (sender.waiting() > 0) return [`${sender.waiting()} deliveries are not acknowledged`]
  const kept = await books.subscriptions()
  const found = differencesOfStates(platform, kept)
  for (const { number, url } of instances) {
    const entitled = await get<{ entitled: boolean; reason: string }[]>(
      `${url}/explain?of=${commerce.businesses.join(',')}`,
    )
    for (const [at, business] of commerce.businesses.entries()) {
      const answer = entitled?.[at]
      if (answer?.entitled !== commerce.isAllowed(business)) {
        const rows = kept.filter((row) => row.business_uid === business).map(line)
        found.push(
          `instance ${number} answers ${answer?.entitled} (${answer?.reason}) of ${business}, the platform answers ${commerce.isAllowed(business)}: ${rows.join('; ')}`,
        )
      }
    }
    const health = await get<{ status: string; problems: { message: string }[] }>(`${url}/health`)
    if (health?.status !== 'ok')
      found.push(
        `instance ${number} is ${health?.status}: ${health?.problems.map(({ message }) => message).join(', ')}`,
      )
  }
  return found
}

/** A sentence about the entries that no handler has finished yet. Empty when all are finished. */
export async function unhandled(books: Books): Promise<string[]> {
  const pending = (await books.journal()).filter(({ status }) => status === 'pending')
  return pending.length === 0
    ? []
    : [`${pending.length} entries of the journal are pending: ${line(pending[0])}`]
}

function differencesOfStates(platform: Simulator, kept: readonly SubscriptionRow[]): string[] {
  const rows = new Map(kept.map((row) => [row.subscription_uid, row]))
  return platform
    .subscriptions()
    .flatMap(({ uid, business_uid, purchasable_uid, purchase_state, updated_at }) => {
      if (purchasable_uid !== OUR_ITEM) return []
      const row = rows.get(uid)
      const isCanceled = canonicalState(purchase_state) === 'canceled'
      // The app was uninstalled: the last read came before the platform refused, or the refusal revoked the row, or
      // the first event came after it.
      if (isCanceled && (row?.gone === 'revoked' || row?.state === 'canceled')) return []
      if (isCanceled && row?.failure === 'token_refused' && row.state === null) return []
      if (row?.state === purchase_state && row.gone === null && row.updated_at === updated_at) return []
      return [
        `${uid} of ${business_uid} is ${purchase_state} since ${updated_at}, and stored as ${line(row)}`,
      ]
    })
}

/**
 * The acknowledged notices of the app's own subscriptions that no read has followed. Each notice must cause a read that
 * begins after the notice was stored. A refused token ends a read too.
 */
export function noticesWithoutRead(
  platform: Simulator,
  acknowledged: readonly Acknowledged[],
  journal: readonly JournalRow[],
): { id: string; text: string }[] {
  const received = new Map(journal.map(({ id, received_at }) => [id, received_at]))
  const readAt = new Map<string, number>()
  // The log is in the order of the replies, and some replies are slow.
  const note = (uid = '', at: number) => readAt.set(uid, Math.max(at, readAt.get(uid) ?? 0))
  for (const { endpoint, status, subscription_uid, business_uid, at } of platform.requests) {
    if (endpoint === 'read' && status === 200) note(subscription_uid, at)
    if (endpoint === 'token' && status === 403) note(business_uid, at)
  }
  return acknowledged.flatMap(({ ids, envelope }) => {
    const { subscription_uid, purchasable_uid, business_id } = envelope.data as Record<string, string>
    const keptAt = received.get(ids[0] as string)
    if (purchasable_uid !== OUR_ITEM || !subscription_uid || keptAt === undefined) return []
    const last = Math.max(readAt.get(subscription_uid) ?? 0, readAt.get(business_id as string) ?? 0)
    if (last >= keptAt) return []
    return [{ id: ids[0] as string, text: `${subscription_uid}: stored at ${keptAt}, last read at ${last}` }]
  })
}

/** The businesses for which the last changes of all subscriptions together give the wrong answer. */
export function wrongLastChanges(
  commerce: Commerce,
  journal: readonly JournalRow[],
): { id: string; text: string }[] {
  const last = new Map<string, { row: JournalRow; paid: Set<string> }>()
  for (const row of journal) {
    if (row.kind !== 'change') continue
    const business = String(row.business_uid)
    const paid = last.get(business)?.paid ?? new Set()
    const { to, record } = JSON.parse(row.payload)
    if (to === 'purchased' && record.purchasable_uid === OUR_ITEM) paid.add(String(row.subscription_uid))
    else paid.delete(String(row.subscription_uid))
    last.set(business, { row, paid })
  }
  return [...last].flatMap(([business, { row, paid }]) => {
    if (paid.size > 0 === commerce.isAllowed(business)) return []
    return [
      { id: row.id, text: `the changes of ${business} end with ${paid.size} purchased: ${row.payload}` },
    ]
  })
}

export function line(row: object | undefined): string {
  return row ? JSON.stringify(row) : 'nothing'
}

async function get<T>(url: string): Promise<T | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(10_000) })
    return (await response.json()) as T
  } catch {
    return undefined
  }
}
