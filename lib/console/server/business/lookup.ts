import type { Found } from '../../protocol/shapes.js'

/**
 * The option `lookup`: the businesses that your app knows by a text of a person, such as a name, a mail address or an order
 * number: one `business_uid`, or several. Null, undefined or an empty list: none.
 */
export type Lookup = (text: string) => unknown

const MAX_FOUND = 20
const TIMEOUT_MS = 5_000

/** Calls the option. Undefined if it fails, which is not the same as a customer who is unknown. */
export async function lookedUp(lookup: Lookup, text: string): Promise<Found[] | undefined> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('timeout')), TIMEOUT_MS)
  })
  try {
    const answer = await Promise.race([lookup(text), timeout])
    const uids = [answer ?? []].flat().slice(0, MAX_FOUND)
    return uids.map((uid) => ({ business_uid: uidOf(uid), subscription_uid: null }))
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
  }
}

function uidOf(value: unknown): string {
  if ((typeof value === 'string' && value !== '') || typeof value === 'number') return String(value)
  throw new TypeError('lookup returned something that is not an identifier')
}
