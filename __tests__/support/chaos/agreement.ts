import { canonicalState } from '../../../lib/entitlement/purchase-state.js'
import type { PostgresServer } from '../engines/postgres.js'
import { OUR_ITEM } from '../settings.js'
import type { Verdict } from '../world/promises.js'
import type { EntryRow, SubscriptionRow } from '../world/rows.js'
import { realTime } from './clock.js'
import type { Acknowledged, Instance } from './instances.js'
import type { Platform } from './platform.js'

/** Reads the two tables as a superuser, and so bypasses all code under test. */
export function createBooks(server: PostgresServer, address: string) {
  const database = new URL(address).pathname.slice(1)
  // PostgreSQL returns int8 as text, and as a number in JSON.
  const rows = async <Row>(of: string, order: string): Promise<Row[]> => {
    const text = `select row_to_json(own) as row from (select * from marketplace_webhooks.${of}) own order by ${order}`
    return (await server.sql<{ row: Row }>(text, [], database)).map(({ row }) => row)
  }
  return {
    journal: () => rows<EntryRow>('journal', 'seq'),
    async subscriptions(): Promise<SubscriptionRow[]> {
      const found = await rows<SubscriptionRow & { record: string | null }>('subscriptions', 'created_at')
      return found.map(({ record, ...row }) => ({
        ...row,
        updated_at: JSON.parse(record ?? '{}').updated_at ?? null,
      }))
    },
  }
}

export type Books = ReturnType<typeof createBooks>

/** The differences between instances, database and platform, one sentence each. Empty when they agree. */
export async function disagreements(options: {
  instances: readonly Instance[]
  businesses: readonly string[]
  platform: Platform
  books: Books
}): Promise<string[]> {
  const { instances, businesses, platform, books } = options
  const kept = await books.subscriptions()
  const found = differencesOfStates(platform, kept)
  for (const instance of instances) {
    const answers = await instance.get<{ entitled: boolean; reason: string }[]>(
      `explain?of=${businesses.join()}`,
    )
    for (const [at, business] of businesses.entries()) {
      const answer = answers?.[at]
      const expected = platform.isPaying(business)
      if (answer?.entitled === expected) continue
      const rows = kept.filter((row) => row.business_uid === business).map((row) => JSON.stringify(row))
      found.push(
        `instance ${instance.number} answers ${answer?.entitled} (${answer?.reason}) of ${business}, the platform answers ${expected}: ${rows.join('; ')}`,
      )
    }
    const health = await instance.get<{ status: string; problems: { message: string }[] }>('health')
    if (health?.status === 'ok') continue
    const messages = health?.problems.map(({ message }) => message).join(', ')
    found.push(`instance ${instance.number} is ${health?.status}: ${messages}`)
  }
  return found
}

function differencesOfStates(platform: Platform, kept: readonly SubscriptionRow[]): string[] {
  const rows = new Map(kept.map((row) => [row.subscription_uid, row]))
  return [...platform.subscriptions.values()].flatMap(({ uid, business, item, state, updatedAt }) => {
    if (item !== OUR_ITEM) return []
    const row = rows.get(uid)
    const isCanceled = canonicalState(state) === 'canceled'
    // The app was uninstalled: the last read came before the platform refused, or the refusal revoked the row, or
    // the first event came after it.
    if (isCanceled && (row?.gone === 'revoked' || row?.state === 'canceled')) return []
    if (isCanceled && row?.failure === 'token_refused' && row.state === null) return []
    const updated_at = new Date(updatedAt).toISOString()
    if (row?.state === state && row.gone === null && row.updated_at === updated_at) return []
    return [`${uid} of ${business} is ${state} since ${updated_at}, and stored as ${JSON.stringify(row)}`]
  })
}

/**
 * The acknowledged notices of the app's own subscriptions that no read has followed. Each notice must cause a read that
 * begins after the notice was stored. A refused token ends a read too.
 */
export function noticesWithoutRead(
  platform: Platform,
  acknowledged: readonly Acknowledged[],
  journal: readonly EntryRow[],
): { id: string; text: string }[] {
  const received = new Map(journal.map(({ id, received_at }) => [id, received_at]))
  return acknowledged.flatMap(({ id, envelope }) => {
    const { subscription_uid: uid, purchasable_uid, business_id } = envelope.data
    const keptAt = received.get(id)
    if (purchasable_uid !== OUR_ITEM || !uid || keptAt === undefined) return []
    const last = platform.lastReadAt(uid, String(business_id))
    return last >= keptAt ? [] : [{ id, text: `${uid}: stored at ${keptAt}, last read at ${last}` }]
  })
}

/** Finds every `updated_at` that goes back in the database, even between two changes of the platform. */
export async function watchUpdatedAt(books: Books, { fail }: Verdict, isOver: () => boolean): Promise<void> {
  const latest = new Map<string, string>()
  while (!isOver()) {
    for (const { subscription_uid: uid, updated_at: at } of await books.subscriptions().catch(() => [])) {
      const before = latest.get(uid)
      if (at !== null && before !== undefined && at < before) fail('onward', `${uid}: ${before}, then ${at}`)
      if (at !== null) latest.set(uid, at)
    }
    await realTime.sleep(500)
  }
}
