import { DAY } from '../../base/clock.js'
import type { Subject } from '../../events/subject.js'
import type { Announcement, RefreshRequest } from '../../store/port/store.js'

/** Whether a notice names one of the app's own items, another item, or none. */
export type NamedItem = 'own' | 'other' | 'none'

/** Decides which read an event requests, from its subject alone. */
export function createRequestedReads(options: {
  purchasableUids: readonly string[]
  codeNames: readonly string[]
  /** Whether an install searches for subscriptions of its business. */
  searches?: boolean
}) {
  const { purchasableUids, codeNames, searches = false } = options

  function itemOf(uid: string | null): NamedItem {
    return uid === null ? 'none' : purchasableUids.includes(uid) ? 'own' : 'other'
  }

  return {
    itemOf,

    /** The read that an event requests; null: none. */
    requestedBy(subject: Subject, announces?: Announcement): RefreshRequest | null {
      const {
        kind,
        subscription_uid: subscriptionUid,
        business_uid: businessUid,
        purchasable_uid,
        app,
      } = subject
      if (kind === 'other' || !businessUid) return null
      if (kind === 'installed' || kind === 'uninstalled') {
        const isOurs = codeNames.length === 0 || app === null || codeNames.includes(app)
        const install = { installed: kind === 'installed', at: timeOf(subject.event_time) }
        const search = searches && install.installed ? { search: true } : {}
        return isOurs ? { kind: 'business', businessUid, install, ...search } : null
      }
      if (!subscriptionUid) return null
      const named = { subscriptionUid, businessUid }
      const announced = announces === undefined ? {} : { announces }
      const subscription = {
        kind: 'subscription',
        ...named,
        purchasableUid: purchasable_uid,
        ...announced,
      } as const
      // The platform sends notices only for the app's own subscriptions. One for another item suggests that
      // `app.purchasableUid` is misspelt: it is read too, so that it counts as soon as the setting is corrected.
      if (kind === 'notice') return subscription
      // The platform sends records for every subscription of the business. A read shows the item of a record without one.
      // It is requested only if the app's own items are known, or every purchase of the business would count as the
      // app's.
      const item = itemOf(purchasable_uid)
      const mayBeOurs = item === 'own' || (item === 'none' && purchasableUids.length > 0)
      return mayBeOurs ? subscription : { kind: 'stored', ...named, ...announced }
    },
  }
}

/** A time in ms since 1970. Null without an offset, because it might be off by hours, and for a zero date. */
function timeOf(text: string | null): number | null {
  if (text === null || !/^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:?\d\d)$/.test(text)) return null
  const at = Date.parse(text)
  return at > DAY ? at : null
}
