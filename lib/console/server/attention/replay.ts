import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Inputs } from '../../protocol/inputs.js'
import type { Person } from '../../protocol/roles.js'
import type {
  AttentionStatus,
  EntryRow,
  ReplayPreview,
  ReplaySample,
  Replies,
} from '../../protocol/shapes.js'
import { Refusal } from '../http.js'
import { type ConsoleMarketplace, rowsFor, rowsOf } from '../rows.js'
import type { FailedEntries } from './groups.js'

/** Limit of entries that one call replays. */
const MAX_REPLAYED = 1_000

type Selection = Inputs['previewReplay']

/** The entries of a replay. */
interface Selected {
  /** Oldest first. */
  ids: string[]
  /** Only entries that still have it are replayed; of one entry any. */
  status?: AttentionStatus
  /** A phrase that describes them. */
  which: string
  /** The business of each entry that has one. */
  businessOf: ReadonlyMap<string, string>
  /** Whether there may be more among older entries, which were not examined. */
  hasOlder: boolean
}

/** Replays one entry, a group of entries, or all of a status, and shows before what that does. */
export function createReplay({
  marketplace,
  failed,
}: {
  marketplace: ConsoleMarketplace
  failed: FailedEntries
}) {
  async function selected({ entryId, group, status, ...window }: Selection): Promise<Selected> {
    const given = [entryId, group, status].filter((each) => each !== undefined).length
    if (given !== 1)
      throw new Refusal(400, 'argument_invalid', 'Cannot replay: select one entry, one group, or one status.')
    if (entryId !== undefined)
      return { ids: [entryId], which: THIS_ENTRY, businessOf: new Map(), hasOlder: false }
    const { ids, businessOf, name, hasOlder, ...found } =
      group === undefined
        ? await failed.ofStatus(status as NonNullable<typeof status>, window)
        : await failed.ofGroup(group, window)
    const which = group === undefined ? `that are ${status}` : `of ${name}`
    return { ...found, ids: ids.toReversed(), which, businessOf, hasOlder }
  }

  /** With the answer that a handler would get. An uncertain one may be another by then. */
  async function withAnswer(row: EntryRow): Promise<ReplaySample> {
    const isAnswered = row.kind === 'change' || row.kind === 'entitlement'
    if (!isAnswered || row.business_uid === null) return { ...row, entitled: null }
    const { entitled, known } = await marketplace.explain(row.business_uid)
    return { ...row, entitled: known ? entitled : null }
  }

  return {
    selected,

    async preview(person: Person, selection: Selection): Promise<ReplayPreview> {
      const { ids, which, businessOf, hasOlder } = await selected(selection)
      const { entryRow } = rowsFor(person)
      const taken = ids.slice(0, MAX_REPLAYED)
      const sample = await rowsOf(marketplace, taken.slice(0, 5), entryRow)
      if (taken.length > 0 && sample.length === 0)
        throw new Refusal(404, 'entry_gone', 'This entry no longer exists. Its retention may have ended.')
      const [last] = await rowsOf(marketplace, taken.slice(-1), entryRow)
      return {
        matched: ids.length,
        takes: taken.length,
        businesses:
          selection.entryId === undefined
            ? new Set(businessOf.values()).size
            : sample[0]?.business_uid
              ? 1
              : 0,
        oldest: sample[0]?.receivedAt ?? null,
        newest: last?.receivedAt ?? null,
        sample: await Promise.all(sample.map(withAnswer)),
        effect: effectOf(taken.length, ids.length, which, hasOlder),
      }
    },

    /**
     * Replays entries that `selected` returned, oldest first, each after `before`. `left`: how many exceed the limit of one call.
     */
    async replay(
      { ids, status, which, hasOlder }: Selected,
      before: (id: string) => Promise<void> = async () => {},
    ): Promise<Replies['replay']> {
      const only = status === undefined ? {} : { status }
      const replayed: string[] = []
      for (const id of ids.slice(0, MAX_REPLAYED)) {
        await before(id)
        if (await marketplace.journal.replay(id, only)) replayed.push(id)
        await nextTurn()
      }
      if (which === THIS_ENTRY && replayed.length === 0)
        throw new Refusal(404, 'entry_gone', 'This entry no longer exists. Its retention may have ended.')
      const left = Math.max(0, ids.length - MAX_REPLAYED)
      return { replayed: replayed.length, left, hasOlder, ids: replayed }
    },
  }
}

const THIS_ENTRY = 'this entry'

function effectOf(takes: number, matched: number, which: string, hasOlder: boolean): string {
  const again =
    'A handler that has already succeeded is called again. For a change of a subscription or of the access, it gets the answer of that time: whether the business may use the app.'
  const older = hasOlder ? ' Older entries were not examined.' : ''
  if (which === THIS_ENTRY)
    return `Passes this entry to all of its handlers again, starting with the first try. ${again}`
  if (takes === 0) return `There is nothing to replay.${older}`
  if (takes === 1)
    return `Passes 1 entry ${which} to its handlers again, starting with the first try. ${again}${older}`
  const some = matched > takes ? `the oldest ${takes} of ${matched} entries` : `${takes} entries`
  return `Passes ${some} ${which} to their handlers again, oldest first, starting with the first try. ${again}${older}`
}
