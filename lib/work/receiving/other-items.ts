import { type Clock, DAY } from '../../base/clock.js'
import { type HealthProblem, problemOf } from '../../base/health.js'
import type { StoredSubscription } from '../../store/port/store.js'

const OTHERS_IN_A_ROW = 10
/** At most so many stored subscriptions are looked at. Old ones may all be for a former item, and come first. */
const MOST_LOOKED_AT = 10_000
/** A bound: a sender with the delivery secret can forge any number of items. */
const MAX_ITEMS_NAMED = 5

/**
 * Detects that all notices, or all known subscriptions, name items of other apps: then `app.purchasableUid` is probably
 * misspelt. Once a notice or a record has named one of the app's own items, a few others are not a problem.
 */
export function createOtherItems(purchasableUids: readonly string[], clock: Clock) {
  /** Items named since the last notice for one of the app's own, oldest first. */
  const items = new Set<string>()
  let notices = 0
  let ownAt: number | undefined
  /** Items of known subscriptions, while none of them is one of the app's own. */
  const knownItems = new Set<string>()

  function problem(what: string, others: Iterable<string>): HealthProblem[] {
    const [own, named] = [purchasableUids, [...others]].map((uids) =>
      uids.map((uid) => JSON.stringify(uid)).join(', '),
    )
    const message = `${what} for another item (${named}) and none for app.purchasableUid (${own}): businesses that bought another item are denied`
    return [problemOf('other_items_only', message)]
  }

  function areAllOthers(): boolean {
    if (ownAt === undefined) return notices > 0
    return notices >= OTHERS_IN_A_ROW && clock.monotonic() - ownAt >= DAY
  }

  const otherItems = {
    note(item: string | null) {
      if (item === null) return
      if (purchasableUids.includes(item)) {
        items.clear()
        knownItems.clear()
        notices = 0
        ownAt = clock.monotonic()
        return
      }
      notices++
      if (items.size < MAX_ITEMS_NAMED) items.add(item)
    },

    /** The items of subscriptions that the store has, or that a read has shown. */
    noteKnown(known: readonly (string | null)[]) {
      if (known.some((item) => item !== null && purchasableUids.includes(item))) {
        knownItems.clear()
        ownAt ??= clock.monotonic()
      }
      if (ownAt !== undefined || purchasableUids.length === 0) return
      for (const item of known) if (item !== null && knownItems.size < MAX_ITEMS_NAMED) knownItems.add(item)
    },

    /**
     * The items of stored subscriptions that were read, until one is the app's own. After a restart they show at once that
     * none is. The item of one that was never read is what its sender says.
     */
    async lookAt(pages: AsyncIterable<readonly Pick<StoredSubscription, 'record' | 'purchasableUid'>[]>) {
      if (purchasableUids.length === 0) return
      const stored = new Set<string | null>()
      let count = 0
      for await (const page of pages) {
        for (const { record, purchasableUid } of page) if (record) stored.add(purchasableUid)
        count += page.length
        if (purchasableUids.some((own) => stored.has(own)) || count >= MOST_LOOKED_AT) break
      }
      otherItems.noteKnown([...stored])
    },

    problems(): HealthProblem[] {
      if (areAllOthers()) {
        const count = notices === 1 ? 'the last notice was' : `the last ${notices} notices were`
        return problem(count, items)
      }
      if (knownItems.size > 0) return problem('the known subscriptions are', knownItems)
      return []
    },
  }
  return otherItems
}
