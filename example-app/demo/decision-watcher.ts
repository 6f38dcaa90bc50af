import type { Decision } from '../../lib/index.js'
import { BUSINESSES } from './businesses.js'
import type { Demo } from './demo.js'
import { textOfDecision } from './timeline-texts.js'

/** The answer of the app, as the page shows it. */
export interface Watched {
  decision: Decision | null
  /** The app has not answered yet. It may wait for a read. */
  isChecking: boolean
  /** When it last answered: milliseconds since 1970. */
  askedAt: number | null
}

/** The pause before the next question while a read is under way or fails. */
const ASK_AGAIN_MS = 700

/** Holds the newest decision of every business. Asks the app again after each event that may change it. */
export function watchDecisions(demo: Demo, onUpdate: () => void) {
  const watched = new Map<string, Watched & { isOutdated: boolean; timer?: NodeJS.Timeout | undefined }>()
  for (const { uid } of BUSINESSES)
    watched.set(uid, { decision: null, isChecking: false, askedAt: null, isOutdated: false })

  async function ask(uid: string) {
    const state = watched.get(uid)
    if (!state || !demo.app.isRunning()) return
    if (state.isChecking) {
      state.isOutdated = true
      return
    }
    clearTimeout(state.timer)
    state.isChecking = true
    onUpdate()
    try {
      do {
        state.isOutdated = false
        const decision = await demo.decision(uid)
        const isNews =
          decision.reason !== state.decision?.reason || decision.entitled !== state.decision.entitled
        if (isNews && state.decision) demo.timeline.add(textOfDecision(decision))
        state.decision = decision
        state.askedAt = Date.now()
      } while (state.isOutdated)
    } catch {
      // The app was killed in the meantime. Its next start causes another question.
    }
    state.isChecking = false
    if (state.decision?.subscriptions.some(({ pending, failure }) => pending || failure)) {
      state.timer = setTimeout(ask, ASK_AGAIN_MS, uid)
    }
    onUpdate()
  }

  const unlisten = demo.timeline.listen(({ kind, business_uid }) => {
    onUpdate()
    if (kind === 'decision' || kind === 'platform' || kind === 'visit') return
    if (business_uid) void ask(business_uid)
    else for (const { uid } of BUSINESSES) void ask(uid)
  })
  for (const { uid } of BUSINESSES) void ask(uid)

  return {
    ask,
    of: (uid: string): Watched => {
      const { decision = null, isChecking = false, askedAt = null } = watched.get(uid) ?? {}
      return { decision, isChecking, askedAt }
    },
    close() {
      unlisten()
      for (const { timer } of watched.values()) clearTimeout(timer)
    },
  }
}
