import { setTimeout as pause } from 'node:timers/promises'
import type { Books } from './books.js'

/** Finds every `updated_at` that goes back in the database, even between two changes of the platform. */
export async function watchUpdatedAt({
  books,
  isGoing,
  find,
}: {
  books: Pick<Books, 'subscriptions'>
  isGoing(): boolean
  find(promise: string, text: string): void
}): Promise<void> {
  const latest = new Map<string, string>()
  while (isGoing()) {
    const rows = await books.subscriptions().catch(() => [])
    for (const { subscription_uid: uid, updated_at: at } of rows) {
      if (at === null) continue
      const before = latest.get(uid)
      if (before !== undefined && at < before)
        find('updated_at never goes back', `${uid}: ${before}, then ${at}`)
      latest.set(uid, at)
    }
    await pause(500)
  }
}
