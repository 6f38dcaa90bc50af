import { spread } from '../base/backoff.js'
import { type Clock, MINUTE, SECOND } from '../base/clock.js'
import { MarketplaceError } from '../base/errors.js'
import { nextTurn } from '../base/waiting.js'
import { type Decision, type DecisionRules, isOfOtherApp, type SubscriptionVerdict } from './decide.js'
import { type ItemOptions, unknownOption } from './items.js'

/**
 * How long to wait, and for which items.
 *
 * @example await marketplace.waitForEntitlement('business-1', { timeoutMs: 20_000, signal: AbortSignal.timeout(60_000) })
 */
export interface WaitOptions extends ItemOptions {
  /** The longest wait, in milliseconds: up to an hour. Default 30 s. */
  timeoutMs?: number
  /** Ends the wait: the promise rejects with its reason. */
  signal?: AbortSignal
}

const OPTIONS: readonly (keyof WaitOptions)[] = ['purchasableUid', 'timeoutMs', 'signal']
const DEFAULT_MS = 30 * SECOND
const MAX_MS = 60 * MINUTE
/** A hint may be lost. So everybody who waits looks again after about this time. */
const LOOK_AGAIN_MS = 30 * SECOND
/** The first look of a business without a subscription: the platform may list a purchase late. */
const SEARCH_AGAIN_MS = 5 * SECOND
/** Those who look again in one turn of the event loop, when a change may concern everybody. */
const AT_ONCE = 50

/**
 * Waits until a business may use the app. A hint of the store wakes those who wait for its business, so that any number may
 * wait for a purchase without asking the database meanwhile. Each look that finds no access searches for subscriptions again:
 * who bought after the last search, and whose event was lost, is found.
 */
export function createEntitlementWaits(options: {
  explain(businessUid: string, asked: ItemOptions): Promise<Decision>
  /** The answer of an `explain` that has not ended, without its wait for requested reads. */
  explainSoFar(businessUid: string, asked: ItemOptions): Promise<Decision>
  /** Searches the platform again for subscriptions of a business, if none was read. */
  searchAgain(businessUid: string): Promise<void>
  rules: Pick<DecisionRules, 'purchasableUids'>
  clock: Clock
}) {
  const { explain, explainSoFar, searchAgain, rules, clock } = options
  /** Whether the platform has shown the subscription, and it is one of the app's, also once it has ended: `isOfApp`. */
  const isShown = ({ asOf, purchasable_uid }: SubscriptionVerdict) =>
    asOf !== null && !isOfOtherApp(purchasable_uid ?? '', rules)
  const waiting = new Map<string, Set<() => void>>()
  let isClosed = false

  function add(businessUid: string, wake: () => void): () => void {
    const ofBusiness = waiting.get(businessUid) ?? new Set()
    waiting.set(businessUid, ofBusiness.add(wake))
    return () => {
      ofBusiness.delete(wake)
      if (ofBusiness.size === 0) waiting.delete(businessUid)
    }
  }

  /** Whether a promise settles before time is up and the signal ends the wait. */
  async function ended(asked: Promise<unknown>, withinMs: number, signal: AbortSignal | undefined) {
    const settled = asked.then(
      () => true,
      () => true,
    )
    let give = (_isSettled: boolean) => {}
    const over = new Promise<boolean>((resolve) => {
      give = resolve
    })
    const stop = () => give(false)
    const timer = clock.setTimeout(stop, withinMs)
    signal?.addEventListener('abort', stop)
    if (signal?.aborted) stop()
    try {
      return await Promise.race([settled, over])
    } finally {
      clock.clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    }
  }

  async function wakeAll() {
    const all = [...waiting.values()].flatMap((ofBusiness) => [...ofBusiness])
    for (const [i, wake] of all.entries()) {
      if (i > 0 && i % AT_ONCE === 0) await nextTurn()
      wake()
    }
  }

  return {
    /**
     * Resolves with the decision as soon as it is yes, or can never be because the item is not one of the app's; else with the
     * last one when time is up or the marketplace closes.
     * Rejects with the reason of `signal`, and with `argument_invalid` for a wrong option.
     */
    async wait(businessUid: string, given: WaitOptions = {}): Promise<Decision> {
      const { timeoutMs, signal } = checked(given)
      signal?.throwIfAborted()
      const endsAt = clock.monotonic() + timeoutMs
      const leftMs = () => Math.max(0, endsAt - clock.monotonic())
      let hasChanged = false
      let looks = 1
      let searches = 0
      let wake = () => {}
      const leave = add(businessUid, () => {
        hasChanged = true
        wake()
      })
      const onAbort = () => wake()
      signal?.addEventListener('abort', onAbort)
      try {
        for (;;) {
          hasChanged = false
          const asked = explain(businessUid, given)
          const isAsked = await ended(asked, leftMs(), signal)
          signal?.throwIfAborted()
          const decision = await (isAsked ? asked : explainSoFar(businessUid, given))
          const isFinal = decision.entitled || decision.reason === 'item_unknown'
          if (isFinal || !isAsked || leftMs() <= 0 || isClosed) return decision
          if (hasChanged) continue
          const isUnknown = !decision.subscriptions.some(isShown)
          if (isUnknown && searches < looks) {
            searches = looks
            // Without the store the wait goes on.
            await ended(searchAgain(businessUid), leftMs(), signal)
            signal?.throwIfAborted()
            if (hasChanged) continue
          }
          const lookInMs = isUnknown && looks === 1 ? SEARCH_AGAIN_MS : LOOK_AGAIN_MS
          await new Promise<void>((resolve) => {
            const look = () => {
              looks++
              resolve()
            }
            const timer = clock.setTimeout(look, Math.min(leftMs(), spread(lookInMs, 0.2)))
            wake = () => {
              clock.clearTimeout(timer)
              resolve()
            }
          })
          signal?.throwIfAborted()
        }
      } finally {
        leave()
        signal?.removeEventListener('abort', onAbort)
      }
    },

    /** Something about a business (null: of any) may have changed. */
    changed(businessUid: string | null) {
      if (businessUid === null) void wakeAll()
      else for (const wake of waiting.get(businessUid) ?? []) wake()
    },

    close() {
      isClosed = true
      void wakeAll()
    },
  }
}

/** The two options with their defaults. A value that is not an object names no item, so `explain` answers no. */
function checked(options: WaitOptions): { timeoutMs: number; signal: AbortSignal | undefined } {
  const { timeoutMs = DEFAULT_MS, signal } = (options ?? {}) as Record<keyof WaitOptions, unknown>
  const unknown = typeof options === 'object' && unknownOption(options ?? {}, OPTIONS)
  if (unknown) throw new MarketplaceError('argument_invalid', `Cannot wait: ${unknown}`)
  if (typeof timeoutMs !== 'number' || !(timeoutMs >= 0 && timeoutMs <= MAX_MS))
    throw new MarketplaceError(
      'argument_invalid',
      'Cannot wait: timeoutMs must be a number of milliseconds, from 0 to an hour',
    )
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw new MarketplaceError('argument_invalid', 'Cannot wait: signal must be an AbortSignal')
  return { timeoutMs, signal }
}
