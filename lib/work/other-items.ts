import { type Clock, DAY } from '../clock.js'
import type { Problems } from '../health.js'

const OTHERS_IN_A_ROW = 10
/** A bound: a sender with the delivery secret can forge any number of items. */
const MAX_ITEMS_NAMED = 5

/**
 * Detects that all notices name items of other apps: then `app.purchasableUid` is probably misspelt. Once a notice has
 * named one of the app's own items, a few notices for others are not a problem.
 */
export function createOtherItems(purchasableUids: readonly string[], clock: Clock) {
  /** Items named since the last notice for one of the app's own, oldest first. */
  const items = new Set<string>()
  let notices = 0
  let ownAt: number | undefined

  function areAllOthers(): boolean {
    if (ownAt === undefined) return notices > 0
    return notices >= OTHERS_IN_A_ROW && clock.monotonic() - ownAt >= DAY
  }

  return {
    note(item: string | null) {
      if (item === null) return
      if (purchasableUids.includes(item)) {
        items.clear()
        notices = 0
        ownAt = clock.monotonic()
        return
      }
      notices++
      if (items.size < MAX_ITEMS_NAMED) items.add(item)
    },

    problems(): Problems {
      if (!areAllOthers()) return { failing: [], degraded: [] }
      const [own, others] = [purchasableUids, [...items]].map((uids) =>
        uids.map((uid) => JSON.stringify(uid)).join(', '),
      )
      const count = notices === 1 ? 'the last notice was' : `the last ${notices} notices were`
      return {
        failing: [],
        degraded: [
          `${count} for another item (${others}) and none for app.purchasableUid (${own}): is app.purchasableUid right? Businesses that bought another item are denied`,
        ],
      }
    },
  }
}
