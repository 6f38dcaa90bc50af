import type { Simulator } from '../lib/testing/index.js'
import { ACTIONS, type ActionName, type Standing } from './actions.js'
import { nameOf } from './businesses.js'
import type { Timeline } from './timeline.js'

/** What businesses do on the platform, and how each of them stands. */
export function createActing({ simulator, timeline }: { simulator: Simulator; timeline: Timeline }) {
  const presence = new Map<string, Standing['presence']>()

  function standing(businessUid: string): Standing {
    const subscription = simulator
      .subscriptions()
      .findLast(({ business_uid }) => business_uid === businessUid)
    return { business_uid: businessUid, subscription, presence: presence.get(businessUid) ?? 'none' }
  }

  /** Performs the action, or returns the reason why it is not possible. */
  function perform(name: ActionName, businessUid: string): string | null {
    const { phrase, whyNot, perform } = ACTIONS[name]
    const now = standing(businessUid)
    const why = whyNot(now)
    if (why) return why
    timeline.begin({ kind: 'platform', business_uid: businessUid, text: `${nameOf(businessUid)} ${phrase}` })
    perform(simulator, now)
    if (name === 'install') presence.set(businessUid, 'installed')
    if (name === 'uninstall') presence.delete(businessUid)
    if (name.startsWith('buy') && now.presence === 'none') presence.set(businessUid, 'bought')
    return null
  }

  return { standing, perform }
}
