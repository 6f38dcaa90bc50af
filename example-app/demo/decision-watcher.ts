import type { Decision } from '../../lib/index.js'
import type { AppProcess } from './app-process.js'
import { BUSINESSES } from './businesses.js'
import type { Demo } from './demo.js'
import { textOfDecision, textOfVisit } from './timeline-texts.js'

/** The answer of the app, as the page shows it. */
export interface Watched {
  /** Null: this process of the app has not answered yet. */
  decision: Decision | null
  /** The app has not answered the newest question yet. It may wait for a read. */
  isChecking: boolean
}

/** The pause before the next question while a read is under way or fails. */
const ASK_AGAIN_MS = 700

/** The reply of the gate and the answer may be of two moments. A visit is then repeated, this often at most. */
const MOST_VISITS = 3

type State = Watched & {
  isOutdated: boolean
  answered: Promise<void>
  timer?: NodeJS.Timeout | undefined
}

/** Holds the newest decision of every business. Asks the app again after each event that may change it. */
export function watchDecisions(
  demo: Pick<Demo, 'timeline' | 'decision' | 'report'> & { app: Pick<AppProcess, 'state'> },
  onUpdate: () => void,
) {
  const watched = new Map<string, State>()
  for (const { uid } of BUSINESSES)
    watched.set(uid, { decision: null, isChecking: false, isOutdated: false, answered: Promise.resolve() })

  /** Resolves when the app has answered a question that was asked from now on, or has ended. */
  async function ask(uid: string): Promise<void> {
    const state = watched.get(uid)
    if (!state || demo.app.state() !== 'running') return
    state.isOutdated = true
    if (!state.isChecking) state.answered = askUntilCurrent(uid, state)
    await state.answered
  }

  async function askUntilCurrent(uid: string, state: State) {
    clearTimeout(state.timer)
    state.isChecking = true
    onUpdate()
    try {
      while (state.isOutdated) {
        state.isOutdated = false
        note(state, await demo.decision(uid))
      }
    } catch {
      // The app was killed in the meantime. Its next start causes another question.
    }
    state.isChecking = false
    if (state.decision?.subscriptions.some(({ pending, failure }) => pending || failure)) {
      state.timer = setTimeout(ask, ASK_AGAIN_MS, uid)
    }
    onUpdate()
  }

  function note(state: State, decision: Decision) {
    if (demo.app.state() !== 'running') return
    const { entitled = false, reason = 'unknown_business' } = state.decision ?? {}
    state.decision = decision
    if (decision.entitled !== entitled || decision.reason !== reason)
      demo.timeline.add(textOfDecision(decision))
  }

  const unlisten = demo.timeline.listen(({ kind, business_uid }) => {
    onUpdate()
    // The next process of the app answers from its database.
    if (demo.app.state() !== 'running') for (const state of watched.values()) state.decision = null
    if (kind === 'decision' || kind === 'platform' || kind === 'visit') return
    if (business_uid) void ask(business_uid)
    else for (const { uid } of BUSINESSES) void ask(uid)
  })
  for (const { uid } of BUSINESSES) void ask(uid)

  return {
    ask,
    of: (uid: string): Watched => {
      const { decision = null, isChecking = false } = watched.get(uid) ?? {}
      return { decision, isChecking }
    },
    /** A visit to the paid page, in the timeline, when the answer that is known agrees with the reply. */
    async visit(uid: string) {
      for (let visits = 1; ; visits++) {
        const reply = await demo.report(uid)
        await ask(uid)
        if (visits < MOST_VISITS && !agrees(reply.status, watched.get(uid)?.decision)) continue
        demo.timeline.addAlone(textOfVisit(uid, reply.status))
        return reply
      }
    },
    close() {
      unlisten()
      for (const { timer } of watched.values()) clearTimeout(timer)
    },
  }
}

/** Whether a reply of the gate shows this answer; status 0: the app is stopped, and has none. */
function agrees(status: number, decision: Decision | null | undefined): boolean {
  if (!decision) return status === 0
  return status === (decision.entitled ? 200 : decision.known ? 402 : 503)
}
