import type { Finding } from '../log.js'
import type { Belief, Sight } from './belief.js'
import { grouped } from './handling.js'
import type { History, Run } from './history.js'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HEADING = 'Handlers are called when access begins or ends'

/** Judges the calls of `onEntitlementChange`: one when what the reads show begins or ends, with what is true then. */
export function judgeEntitlements(history: History, belief: Belief): Finding[] {
  const findings: Finding[] = []
  const fail = (at: number, message: string) => void findings.push({ at, heading: HEADING, message })
  const runs = history.runs.filter(({ topic }) => topic === 'entitlement')
  if (runs.length === 0 && !history.log.some(({ kind }) => kind === 'healed')) return findings
  const restoredAt = history
    .of('machine')
    .filter(({ what }) => what === 'restored')
    .map(({ at }) => at)
  for (const run of runs) judgeCall(run)
  // With other items, a record means something else.
  if (new Set(history.processes.map(({ rules }) => rules.items.join())).size > 1) return findings
  for (const [business, own] of grouped(runs, ({ entry }) => entry.business)) judgeChain(business, own)
  judgeBegun()
  return findings

  function judgeCall({ entry, from, process }: Run) {
    const { business, items, entitled, reason } = entry
    if (entitled !== items.length > 0)
      fail(from, `${business}: entitled is ${entitled} with the items ${items.join()}`)
    if (reason === 'not_read_yet' || reason === 'store_unavailable')
      fail(from, `${business}: the reason of a call is ${reason}`)
    for (const item of items) {
      const isPossible = [...belief.uidsOf(business)].some((uid) =>
        belief
          .mayBe(uid, from - 2 * SECOND, from)
          .all.some((each) => each.reply.item === item && belief.gives(each, business, process)),
      )
      if (!isPossible)
        fail(from, `${business}: ${item} is among the items, and the last read does not show it`)
    }
    for (const uid of belief.uidsOf(business)) {
      const sure = belief.surelyGives(uid, business, from, process)
      if (sure && !items.includes(sure.reply.item))
        fail(from, `${business}: ${sure.reply.item} is missing among the items`)
    }
  }

  /**
   * "`previousItems` are the items before the changes of this call": of one change, or of several that came before it. Each
   * subscription that gives another item is a change, in the order of the reads.
   */
  function judgeChain(business: string, own: readonly Run[]) {
    const changes = changesOf(business)
    if (!changes) return
    const state = (count: number) => itemsAfter(changes.slice(0, count)).join()
    /** How many changes the calls so far may have been for. */
    let covered = new Set([0])
    for (const run of own) {
      const count = changes.filter(({ at }) => at <= run.from).length
      // Of several changes just before the call, the last may have come while it was prepared.
      const recent = changes.filter(({ at }) => Math.abs(at - run.from) <= belief.lagMs / 2)
      if (!run.isDone || recent.length > 1) return
      const got = run.entry.previousItems.join()
      const possible = [...covered].filter((each) => state(each) === got)
      if (possible.length === 0)
        return fail(
          run.from,
          `${business}: previousItems are '${got}', and the items were '${[...covered].map(state).join(`' or '`)}'`,
        )
      const least = Math.min(...possible)
      covered = new Set(
        Array.from({ length: count - least + 1 }, (_, i) => least + i).slice(count > least ? 1 : 0),
      )
    }
  }

  /** The changes that reads have shown; undefined if a reply may have been lost, or ended a subscription. */
  function changesOf(business: string) {
    const changes: { at: number; uid: string; item: string }[] = []
    const isRestarted =
      restoredAt.length > 0 || history.of('erased').some((each) => each.business === business)
    if (isRestarted) return undefined
    for (const uid of belief.uidsOf(business)) {
      if (belief.adverse(uid, business, -1, Number.POSITIVE_INFINITY).length > 0) return undefined
      let newest: Sight | undefined
      let item = ''
      for (const sight of belief.sightsOf(uid)) {
        if (!belief.isSettled(sight)) return undefined
        if (newest && sight.reply.updatedAt <= newest.reply.updatedAt) continue
        newest = sight
        const now = belief.gives(sight, business, sight.process) ? sight.reply.item : ''
        if (now !== item) changes.push({ at: sight.at, uid, item: now })
        item = now
      }
    }
    return changes.sort((a, b) => a.at - b.at)
  }

  /** Whether another subscription may give the business the item at about this time. */
  function isOfAnother(uid: string, business: string, item: string, { at, process }: Sight) {
    return [...belief.uidsOf(business)].some(
      (other) =>
        other !== uid &&
        belief
          .mayBe(other, at, at + 15 * SECOND)
          .all.some((each) => each.reply.item === item && belief.gives(each, business, process)),
    )
  }

  /** "At least once, within about ten seconds, when a subscription gives a business another item than before, or none any more." */
  function judgeBegun() {
    const registered = new Set(runs.map(({ process }) => process))
    const { lateMs, storeMs } = history.exactness
    const uids = new Set(history.looks.map(({ uid }) => uid))
    for (const uid of uids) {
      let item = ''
      let newest: Sight | undefined
      for (const sight of belief.sightsOf(uid)) {
        if (newest && sight.reply.updatedAt <= newest.reply.updatedAt) continue
        const { business } = sight.reply
        // It may have ended meanwhile, and begun again, and what the last read showed may not have been stored.
        const isWhole =
          !newest ||
          (belief.isSettled(newest) && belief.adverse(uid, business, newest.at, sight.at).length === 0)
        newest = sight
        const now = belief.gives(sight, business, sight.process) ? sight.reply.item : ''
        // "A second subscription of the same item makes no call."
        const isTwin = [item, now].some((each) => each !== '' && isOfAnother(uid, business, each, sight))
        const isChange = now !== item && isWhole && sight.process.rules.isRight && !isTwin
        item = now
        const by = sight.at + 15 * SECOND + 2 * lateMs + 12 * storeMs
        if (!isChange || by > history.endAt || !belief.isSettled(sight) || !registered.has(sight.process))
          continue
        if (!history.isSteady(sight.process, sight.from - MINUTE, by)) continue
        // Another process takes over the lane of one that has died after a minute.
        if (!history.isWorkedOn(sight.at, by)) continue
        // A slow or failing handler delays the next call of its business.
        const isBusy = runs.some(
          (run) =>
            run.entry.business === business &&
            run.from < by &&
            run.until > sight.at &&
            !(run.until <= by && run.isDone),
        )
        const isCalled = runs.some(
          (run) => run.entry.business === business && run.from >= sight.at && run.from <= by,
        )
        if (!isBusy && !isCalled)
          fail(
            by,
            `${business}: ${uid} gives ${now || 'nothing any more'} at ${sight.at}, and no handler was called`,
          )
      }
    }
  }
}

function itemsAfter(changes: readonly { uid: string; item: string }[]): string[] {
  const items = new Map<string, string>()
  for (const { uid, item } of changes) items.set(uid, item)
  return [...new Set([...items.values()].filter((item) => item !== ''))].sort()
}
