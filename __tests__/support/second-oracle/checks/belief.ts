import type { Reply } from '../log.js'
import type { Call, History, Life } from './history.js'

type Record = Extract<Reply, { is: 'record' }>
export interface Sight extends Omit<Call, 'reply'> {
  reply: Record
}

/** How much the answer of a process may be behind: "a changed decision reaches the other instances within five seconds" (docs/several-instances.md). */
const FRESH_MS = 5_000
const SECOND = 1_000
const MINUTE = 60 * SECOND

/** What an app may believe about subscriptions at a time, from the replies that its processes have got. */
export function createBelief(history: History) {
  const { exactness, looksAt, tokensOf, shownOf, isSteady } = history
  const { storeMs, skewMs } = exactness
  /** The time in which a reply is stored, and every process answers from it. */
  const lagMs = FRESH_MS + 2 * SECOND + 8 * storeMs
  /** The answer in memory ends at a change, so the process that has read it answers from it at once. */
  const ownLagMs = SECOND + 8 * storeMs
  const slackMs = 2 * skewMs + lagMs

  const isSight = (look: Call): look is Call & Sight =>
    look.reply?.is === 'record' && look.reply.business === look.business
  const sightsOf = (uid: string) => looksAt(uid).filter(isSight) as readonly Sight[]

  /** Whether the process that got the reply has surely stored it: it was in order, and its lease had not ended. */
  const settled = new Map<Call | Sight, boolean>()
  function isSettled(look: Call | Sight): boolean {
    let is = settled.get(look)
    if (is === undefined) {
      is =
        look.at - look.from <= 2 * SECOND &&
        isSteady(look.process, look.from - 3 * SECOND, look.at + SECOND + 8 * storeMs)
      settled.set(look, is)
    }
    return is
  }

  /**
   * The records that answers given between the two times may rest on: the newest one that was surely stored, and those
   * that may have replaced it. "An older record never replaces a newer one", unless "the platform shows the same older
   * record for an hour".
   */
  function mayBe(
    uid: string,
    from: number,
    until: number,
    asker?: Life,
  ): { certain: Sight | undefined; all: readonly Sight[] } {
    const sights = sightsOf(uid).filter(({ at }) => at <= until)
    const certain = sights
      .filter((each) => each.at + (each.process === asker ? ownLagMs : lagMs) <= from && isSettled(each))
      .reduce<Sight | undefined>((best, each) => (best && isNewer(best, each) ? best : each), undefined)
    if (!certain) return { certain, all: sights }
    const isOld = (each: Sight) => isNewer(certain, each)
    const since = sights.filter((each) => each.at > certain.at && isOld(each))
    const isBelieved = (each: Sight) =>
      since.some(
        (other) =>
          other.reply.updatedAt === each.reply.updatedAt && Math.abs(each.at - other.at) >= 50 * MINUTE,
      )
    return {
      certain,
      all: sights.filter((each) => !isOld(each) || (each.at > certain.at && isBelieved(each))),
    }
  }

  const gives = ({ reply }: Sight, business: string, { rules }: Life) =>
    reply.state === 'purchased' &&
    reply.business === business &&
    (rules.items.length === 0 || rules.items.includes(reply.item))

  /** The replies since a read, other than records, which may be evidence that the subscription has ended. */
  function adverse(uid: string, business: string, after: number, until: number): readonly Call[] {
    return [...looksAt(uid), ...tokensOf(business)]
      .filter(
        ({ at, reply }) =>
          at > after && at <= until && (reply?.is === 'refused' || isElsewhere(reply, business)),
      )
      .sort((a, b) => a.at - b.at)
  }

  const uidsOf = (business: string) => new Set(shownOf(business).map(({ uid }) => uid))

  /** The record by which the subscription surely gives its item at this time. */
  function surelyGives(uid: string, business: string, at: number, process: Life): Sight | undefined {
    const { certain, all } = mayBe(uid, at, at)
    const givesSurely = (each: Sight) => gives(each, business, process) && hasSameItems(each.process, process)
    // A process with other items may have stored that the same record gives nothing.
    if (!certain || !all.every(givesSurely)) return undefined
    const last = sightsOf(uid)
      .filter((each) => each.at <= at && isSettled(each))
      .at(-1) as Sight
    const isQuiet = adverse(uid, business, last.from, at).length === 0
    return isQuiet && history.isEven(certain.at - 24 * 60 * MINUTE, at) ? certain : undefined
  }

  return { surelyGives, lagMs, slackMs, sightsOf, isSettled, mayBe, gives, adverse, uidsOf }
}

export type Belief = ReturnType<typeof createBelief>

/** A list without the record, or a record of another business. */
export const isElsewhere = (reply: Reply | undefined, business: string) =>
  reply?.is === 'nothing' || (reply?.is === 'record' && reply.business !== business)

const hasSameItems = (a: Life, b: Life) => a.rules.items.join() === b.rules.items.join()

const isNewer = (a: Sight, b: Sight) => a.reply.updatedAt > b.reply.updatedAt
