import { type Clock, DAY, MINUTE } from '../../base/clock.js'
import { type HealthProblem, problemOf } from '../../base/health.js'
import type { StoredSubscription } from '../../store/port/store.js'

const OTHERS_IN_A_ROW = 10
/** At most so many stored subscriptions are looked at. Old ones may all be for a former item, and come first. */
const MOST_LOOKED_AT = 10_000
/** The database is looked at again after so long: another process may read the subscriptions. */
const LOOK_AGAIN_MS = 10 * MINUTE
/** The most items that the problem names. */
const MAX_ITEMS_NAMED = 5

/**
 * Detects that all known subscriptions, or all new ones, are for items of other apps: then `app.purchasableUid` is probably
 * misspelt. Beside one for the app's own items a few others are not a problem. Only reads count: an event names what its
 * sender says.
 */
export function createOtherItems(options: {
  purchasableUids: readonly string[]
  /** All stored subscriptions. */
  pages(): AsyncIterable<readonly Pick<StoredSubscription, 'record' | 'purchasableUid'>[]>
  onError(error: unknown): void
  clock: Pick<Clock, 'monotonic'>
}) {
  const { purchasableUids, pages, onError, clock } = options
  /** Items of new subscriptions since the last new one for one of the app's own. */
  const newItems = new Set<string>()
  let newOthers = 0
  let ownAt: number | undefined
  /** Items of known subscriptions, while none of them is one of the app's own. */
  const knownItems = new Set<string>()
  /** When the last look at the stored subscriptions began. */
  let lookedAt: number | undefined

  function problem(what: string, others: Iterable<string>): HealthProblem[] {
    const [own, named] = [purchasableUids, [...others]].map((uids) =>
      uids.map((uid) => JSON.stringify(uid)).join(', '),
    )
    const message = `${what} for another item (${named}) and none for app.purchasableUid (${own}): businesses that bought another item are denied`
    return [problemOf('other_items_only', message)]
  }

  function addTo(items: Set<string>, item: string) {
    if (items.size < MAX_ITEMS_NAMED) items.add(item)
  }

  /** The items of subscriptions that were read. */
  function noteKnown(known: readonly (string | null)[]) {
    if (known.some((item) => item !== null && purchasableUids.includes(item))) {
      knownItems.clear()
      ownAt ??= clock.monotonic()
    }
    if (ownAt !== undefined) return
    for (const item of known) if (item !== null) addTo(knownItems, item)
  }

  /**
   * Looks at stored subscriptions that were read, until one is for one of the app's own items. The item of one that was never
   * read is what its sender says.
   */
  async function look(): Promise<void> {
    if (purchasableUids.length === 0) return
    lookedAt = clock.monotonic()
    const stored = new Set<string | null>()
    let count = 0
    try {
      for await (const page of pages()) {
        for (const { record, purchasableUid } of page) if (record) stored.add(purchasableUid)
        count += page.length
        if (purchasableUids.some((own) => stored.has(own)) || count >= MOST_LOOKED_AT) break
      }
      noteKnown([...stored])
    } catch (error) {
      onError(error)
    }
  }

  return {
    look,

    /** The item that a read has shown. `isNew`: an event announced the subscription, and it was never read before. */
    noteRead(item: string | null, isNew: boolean) {
      if (item === null || purchasableUids.length === 0) return
      noteKnown([item])
      if (!isNew) return
      if (purchasableUids.includes(item)) {
        newItems.clear()
        newOthers = 0
        ownAt = clock.monotonic()
      } else {
        newOthers++
        addTo(newItems, item)
      }
    },

    problems(): HealthProblem[] {
      const isLookDue = lookedAt !== undefined && clock.monotonic() - lookedAt >= LOOK_AGAIN_MS
      if (isLookDue && ownAt === undefined) void look()
      if (knownItems.size > 0) return problem('the known subscriptions are', knownItems)
      const areAllOthers =
        newOthers >= OTHERS_IN_A_ROW && ownAt !== undefined && clock.monotonic() - ownAt >= DAY
      return areAllOthers ? problem(`the last ${newOthers} new subscriptions are`, newItems) : []
    },
  }
}
