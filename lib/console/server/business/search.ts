import type { Found, SearchReply } from '../../protocol/shapes.js'
import type { ConsoleMarketplace } from '../rows.js'
import type { Scans } from '../scans.js'
import { distance, folded, formsOf } from './likeness.js'
import { type Lookup, lookedUp } from './lookup.js'
import { isPossible, searchTerms } from './search-terms.js'

/** Limit of exact lookups for one search. */
const MAX_LOOKUPS = 16
/** The rows after each beginning that are compared. */
const ROWS_AFTER = 20
/** The most suggestions. */
const MAX_NEAR = 5

/**
 * Finds the business or the subscription that a pasted text names: exactly, else in another case or without its spaces, else by
 * the app's own `lookup`, else by how it begins. If several fit, or only something similar does, they are suggestions.
 */
export function createSearch({
  marketplace: { subscriptions, businesses },
  scans,
  lookup,
}: {
  marketplace: Pick<ConsoleMarketplace, 'subscriptions' | 'businesses'>
  scans: Pick<Scans, 'inTurn' | 'subscriptions'>
  lookup: Lookup | undefined
}) {
  return async function search(pasted: string): Promise<SearchReply> {
    const terms = searchTerms(pasted)
    const others = terms.flatMap((term) => formsOf(term).slice(1))
    const possible = [...new Set([...terms, ...others])].filter(isPossible)
    for (const term of possible.slice(0, MAX_LOOKUPS)) {
      const [found, other] = await named(term)
      const near = found && other ? [found, other] : []
      if (found) return { ...found, isKnown: true, terms, near, hasLookupFailed: false }
    }
    const text = pasted.trim()
    const own = lookup && text !== '' ? await lookedUp(lookup, text) : []
    const hasLookupFailed = own === undefined
    const [only, another] = own ?? []
    if (only && !another) return { ...only, isKnown: true, terms, near: [], hasLookupFailed }
    const [term] = terms
    const unknown = { subscription_uid: null, isKnown: false, terms, hasLookupFailed }
    if (only) return { business_uid: term ?? text, ...unknown, near: own ?? [] }
    if (term === undefined) return { business_uid: null, ...unknown, near: [] }
    const near = await similarTo(term)
    const meant = meantBy(term, near)
    if (meant) return { ...pick(meant), isKnown: true, terms, near: [], hasLookupFailed }
    return { business_uid: term, ...unknown, near: near.slice(0, MAX_NEAR).map(pick) }
  }

  /**
   * The business and the subscription of this name, if they differ. Anybody may make up a subscription that was never read, so it
   * does not stand beside a known business.
   */
  async function named(term: string): Promise<Found[]> {
    const subscription = await subscriptions.get(term)
    const found = subscription ? [pick(subscription)] : []
    if (subscription?.business_uid === term || !(await isBusiness(term))) return found
    return [{ business_uid: term, subscription_uid: null }, ...(subscription?.record ? found : [])]
  }

  async function isBusiness(uid: string): Promise<boolean> {
    const ofBusiness = await subscriptions.list({ businessUid: uid, limit: 1 })
    if (ofBusiness.length > 0) return true
    const items = await businesses.history(uid, { limit: 10 })
    return items.some(({ kind }) => kind !== 'action')
  }

  /** Stored identifiers that begin like the term, or differ in a few characters, the most similar first. */
  async function similarTo(term: string): Promise<Near[]> {
    const near = new Map<string, Near>()
    function consider(found: Found) {
      const uid = found.subscription_uid ?? found.business_uid
      const rank = distance(term, uid)
      if (rank !== undefined)
        near.set(JSON.stringify([found.business_uid, found.subscription_uid]), { ...found, rank })
    }
    // The beginnings are ranges of an index, however many rows there are. The scan also finds a slip in the first characters.
    await scans.inTurn(async () => {
      for (const beginning of beginningsOf(term)) {
        const rows = await subscriptions.list({ after: beginning, limit: ROWS_AFTER })
        for (const row of rows) consider(pick(row))
        const uids = await businesses.list({ after: beginning, limit: ROWS_AFTER })
        for (const business_uid of uids) consider({ business_uid, subscription_uid: null })
      }
    })
    await scans.subscriptions({
      take(row) {
        consider(pick(row))
        consider({ business_uid: row.business_uid, subscription_uid: null })
      },
    })
    return [...near.values()].sort((a, b) => a.rank - b.rank)
  }
}

/** A similar identifier. `rank`: the `distance` from the term. */
interface Near extends Found {
  rank: number
}

/** The one that is as typed but for case, spaces and dashes, or the only one, if it begins as typed. */
function meantBy(term: string, near: readonly Near[]): Near | undefined {
  const [first, second] = near
  if (first?.rank === 0) return second?.rank === 0 ? undefined : first
  const isLong = folded(term).length >= MIN_OPENING
  return first && second === undefined && first.rank < 1 && isLong ? first : undefined
}

/** Shorter beginnings open nothing by themselves. */
const MIN_OPENING = 4

/** The term and its first half, as they are and in the cases of `formsOf`. */
function beginningsOf(term: string): string[] {
  const half = term.slice(0, Math.ceil(term.length / 2))
  const beginnings = [...new Set([...formsOf(term), half])]
  return beginnings.filter((each) => isPossible(each) && folded(each) !== '').slice(0, 5)
}

function pick({ business_uid, subscription_uid }: Found): Found {
  return { business_uid, subscription_uid }
}
