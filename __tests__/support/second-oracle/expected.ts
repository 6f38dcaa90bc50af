import { OUR_ITEM } from '../settings.js'
import type { Observation } from './log.js'

/**
 * What the log shows the platform to have, for the subscriptions that the app can know: "those that a `create`, an
 * `update`, `track`, or a record has named". Returns why the last answers differ from it, or undefined. `isOpen`: no
 * definite answer does.
 */
export function stillUnequal(log: readonly Observation[]): { why: string; isOpen: boolean } | undefined {
  const known = new Set<string>()
  const truths = new Map<string, { business: string; item: string; state: string }>()
  const refused = new Set<string>()
  const bodies = new Map<number, string>()
  const asks = new Map<number, { business: string; at: number; process: string }>()
  /** The last answer for each business that somebody has asked about; undefined without one that counts. */
  const answers = new Map<string, { entitled: boolean; isDefinite: boolean; at: number } | undefined>()
  const troubledUntil = new Map<string, number>()
  let changedAt = 0
  for (const each of log) {
    const { at } = each
    switch (each.kind) {
      case 'truth':
        truths.set(each.uid, each)
        changedAt = at
        break
      case 'tokens refused':
        if (each.forMs > 0) refused.add(each.business)
        else refused.delete(each.business)
        changedAt = at
        break
      case 'delivered':
        if (each.isWhole) bodies.set(each.delivery, each.body)
        break
      case 'replied':
        if (each.status === 200) for (const uid of uidsIn(bodies.get(each.delivery) ?? '')) known.add(uid)
        break
      case 'trouble':
        troubledUntil.set(each.process, Math.max(troubledUntil.get(each.process) ?? 0, at + each.forMs))
        break
      case 'tracked':
        known.add(each.uid)
        break
      case 'asked':
        if (each.by !== 'explain') break
        asks.set(each.ask, { business: each.business, at, process: each.process })
        if (!answers.has(each.business)) answers.set(each.business, undefined)
        break
      case 'answered': {
        const ask = asks.get(each.ask)
        // A process that is cut off from the database knows nothing.
        const isCut = ask && (troubledUntil.get(ask.process) ?? Number.NEGATIVE_INFINITY) >= ask.at - 10_000
        const { entitled, known: isDefinite = true } = each.answer
        if (ask && !isCut) answers.set(ask.business, { entitled, isDefinite, at: ask.at })
      }
    }
  }
  for (const [business, answer] of answers) {
    if (!answer || answer.at < changedAt)
      return { why: `nobody has asked about ${business} since the last change`, isOpen: true }
    const { entitled, isDefinite } = answer
    const paid = [...truths].filter(
      ([, truth]) => truth.business === business && truth.item === OUR_ITEM && truth.state === 'purchased',
    )
    const expected = paid.length > 0 && !refused.has(business)
    // A delivery that got no 200, or a `track` without an end, may have been stored all the same.
    const isUnknown = expected && !entitled && !paid.some(([uid]) => known.has(uid))
    if (entitled !== expected && !isUnknown)
      return {
        why: `the answer for ${business} is ${entitled}, and the platform has ${expected}`,
        isOpen: !isDefinite,
      }
  }
  return undefined
}

function uidsIn(body: string): string[] {
  try {
    return [JSON.parse(body)].flat().flatMap(({ data }) => data?.subscription_uid ?? data?.uid ?? [])
  } catch {
    return []
  }
}
