import { type Decision, failureInWords } from '../../../index.js'

type Verdict = Decision['subscriptions'][number]

/**
 * What a requested read of a business did, in words: read and what changed, not read and why, moved, searched, or nothing to
 * read. `left`: the subscriptions that are no longer of the business. `tracked`: the one that was named for the read.
 */
export function readAgainInWords(
  before: Decision,
  after: Decision,
  { left = [], tracked }: { left?: readonly string[]; tracked?: string | undefined } = {},
): string {
  if (after.reason === 'store_unavailable')
    return 'The outcome is not known: the database cannot be read now.'
  const { subscriptions, search } = after
  const isThere = (uid: string) => subscriptions.some(({ subscription_uid }) => subscription_uid === uid)
  const sentences = []
  if (left.length > 0)
    sentences.push(
      `No longer of this business, because it belongs to another or was erased: ${listOf(left)}.`,
    )
  if (tracked !== undefined && !isThere(tracked))
    sentences.push(`${tracked} is not read for this business yet: the read is requested.`)
  const isNone = subscriptions.length === 0 && sentences.length === 0
  if (isNone && !search) return 'There is nothing to read: no subscription of this business is known.'
  const failed = subscriptions.filter(({ failure }) => failure !== null)
  const waiting = subscriptions.filter(({ failure, pending }) => failure === null && pending)
  const read = subscriptions.filter(({ failure, pending }) => failure === null && !pending)

  const isOne = subscriptions.length === 1
  const earlier = new Map(before.subscriptions.map((each) => [each.subscription_uid, each]))
  const changes = read.flatMap((each) => {
    const change = changeBetween(earlier.get(each.subscription_uid), each)
    return change === undefined ? [] : [isOne ? change : `${each.subscription_uid} ${change}`]
  })
  if (read.length > 0)
    sentences.push(
      `${isOne ? 'Read' : `Read ${countOf(read)}`} from the platform: ${listOf(changes) || 'nothing has changed'}.`,
    )
  if (failed.length > 0) {
    const why = new Set(failed.map(({ failure }) => failureInWords(failure as string)))
    sentences.push(`${isOne ? 'Could' : `${countOf(failed)} could`} not be read: ${listOf([...why])}.`)
    if (failed.some(({ pending }) => pending)) sentences.push('The app tries again by itself.')
  }
  if (waiting.length > 0)
    sentences.push(`${isOne ? 'Not' : `${countOf(waiting)} not`} read yet: the read is requested.`)
  if (search && (isNone || search.pending || search.failure !== null)) sentences.push(searchInWords(search))
  return sentences.join(' ')
}

/** What the search for subscriptions of a business did, of which none to the app was read. */
function searchInWords({ pending, failure }: NonNullable<Decision['search']>): string {
  if (failure !== null) {
    const again = pending ? ' The app tries again by itself.' : ''
    return `The platform could not be searched: ${failureInWords(failure)}.${again}`
  }
  return pending
    ? 'The platform is not searched yet: the search is requested.'
    : 'Searched the platform: it shows no subscription of this business.'
}

/** Undefined if nothing changed that a support person asks for. */
function changeBetween(before: Verdict | undefined, after: Verdict): string | undefined {
  const [from, to] = [stateOf(before), stateOf(after)]
  if (from !== to) return `changed from ${from} to ${to}`
  const [hadItem, hasItem] = [before?.purchasable_uid ?? null, after.purchasable_uid]
  if (hadItem !== hasItem && hadItem !== null) return `changed from the item ${hadItem} to ${hasItem}`
  return undefined
}

function stateOf(verdict: Verdict | undefined): string {
  if (!verdict || (verdict.asOf === null && verdict.purchase_state === null)) return 'never read'
  return verdict.purchase_state ?? 'no longer shown'
}

function countOf(subscriptions: readonly Verdict[]): string {
  return subscriptions.length === 1 ? '1 subscription' : `${subscriptions.length} subscriptions`
}

/** The first of the texts, and how many more there are. */
function listOf(texts: readonly string[]): string {
  const more = texts.length - MAX_LISTED
  return [...texts.slice(0, MAX_LISTED), ...(more > 0 ? [`and ${more} more`] : [])].join('; ')
}

const MAX_LISTED = 5
