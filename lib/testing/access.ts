import { EVENTS, type EventName } from '../events/registry.js'
import type { Simulator } from './api.js'
import { cannot } from './cannot.js'
import { isEventName, isTargetUrl, type Registrations } from './registrations.js'
import type { Tokens } from './tokens.js'
import type { World } from './world.js'

/** Tokens and registrations without a request, as methods of the simulator. `opened` throws after the close. */
export function createAccess(parts: {
  opened: () => World
  tokens: Tokens
  registrations: Registrations
}): Pick<Simulator, 'appToken' | 'businessToken' | 'directoryToken' | 'register' | 'registerAll'> {
  const { opened, tokens, registrations } = parts

  function tokenFor(kind: 'app' | 'business', businessUid: string): string {
    opened().businesses.add(businessUid)
    return tokens.issue(kind, businessUid)
  }

  async function register(event: EventName, targetUrl: string): Promise<void> {
    opened()
    if (!isEventName(event)) throw cannot('register the webhook', `there is no event ${event}`)
    if (!isTargetUrl(targetUrl)) throw cannot('register the webhook', 'the target is not an HTTP address')
    const [kind] = EVENTS[event].tokens
    // A directory token instead of a business token, because the target gets the events of every business.
    registrations.add(event, targetUrl, { kind: kind === 'app' ? 'app' : 'directory', businessUid: null })
  }

  return {
    appToken: (businessUid) => tokenFor('app', businessUid),
    businessToken: (businessUid) => tokenFor('business', businessUid),
    directoryToken() {
      opened()
      return tokens.issue('directory', null)
    },
    register,
    async registerAll(targetUrl) {
      for (const event of Object.keys(EVENTS) as EventName[]) await register(event, targetUrl)
    },
  }
}
