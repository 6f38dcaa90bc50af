import type { Replies } from '../protocol/shapes.js'
import { countOf } from './health.js'
import type { ConsoleMarketplace } from './rows.js'

/** The rows of each list that a preview counts: a business may have very many that senders made up. */
const MAX_COUNTED = 250

/** What is stored of a business, in words, before a person exports or erases it. */
export function createStoredCall({
  explain,
  subscriptions,
  businesses,
}: Pick<ConsoleMarketplace, 'explain' | 'subscriptions' | 'businesses'>) {
  return async function stored(business_uid: string): Promise<Replies['stored']> {
    const listed = await subscriptions.list({ businessUid: business_uid, limit: MAX_COUNTED })
    const history = await businesses.history(business_uid, { limit: MAX_COUNTED })
    const entries = new Set(history.map(({ entryId }) => entryId))
    const isStored =
      listed.length > 0 || entries.size > 0 || (await hasItems(businesses.exportText(business_uid)))
    if (!isStored) return { business_uid, isStored, sentences: [] }
    const { entitled, known } = await explain(business_uid)
    return {
      business_uid,
      isStored,
      sentences: [
        `Stored: ${plural(listed.length, 'subscription')} of this business, and ${plural(entries.size, 'entry', 'entries', history.length)} of the journal that name it.`,
        entitled
          ? `This business pays, and may use the app. ${LOSES_ACCESS}`
          : known
            ? 'This business has no access now, so an erasure takes none away.'
            : `It is not known now whether this business pays. If it does: ${LOSES_ACCESS}`,
      ],
    }
  }
}

const LOSES_ACCESS =
  'After an erasure it loses its access, until an event or a person names its subscription again.'

/** Whether an export has an item beside its head. A long one has. */
async function hasItems(pieces: AsyncGenerator<string, void>): Promise<boolean> {
  let text = ''
  for await (const piece of pieces) {
    text += piece
    if (text.length > LONGEST_WITHOUT) return true
  }
  return Object.values(JSON.parse(text)).some((list) => Array.isArray(list) && list.length > 0)
}

/** An export without items has a head of two texts, and empty lists. */
const LONGEST_WITHOUT = 4_096

function plural(count: number, one: string, many = `${one}s`, listed = count): string {
  return `${countOf(count, listed < MAX_COUNTED ? Number.POSITIVE_INFINITY : 0)} ${count === 1 ? one : many}`
}
