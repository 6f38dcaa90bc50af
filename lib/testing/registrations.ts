import { EVENTS, type EventName } from '../events/registry.js'
import type { Happening } from './envelopes.js'
import type { Token } from './tokens.js'

/** A registered target of an event. `number` counts registrations, and is the same in every run with one seed. */
export interface Registration {
  number: number
  event: EventName
  target: string
  /** The business whose events it gets, for a business token; null (every business) for an app or directory token. */
  businessUid: string | null
}

/** All registrations: which target gets which events. */
export interface Registrations {
  /** `exists` when the same owner has registered this event and target before. */
  add(event: EventName, target: string, token: Pick<Token, 'kind' | 'businessUid'>): 'added' | 'exists'
  for(happening: Happening): Registration[]
}

export function createRegistrations(): Registrations {
  const all = new Map<string, Registration>()
  return {
    add(event, target, { kind, businessUid }) {
      // A registration with an app token belongs to the app, whichever business the token was issued for.
      const owner = kind === 'business' ? businessUid : null
      const key = JSON.stringify([event, target, kind, owner])
      if (all.has(key)) return 'exists'
      all.set(key, { number: all.size + 1, event, target, businessUid: owner })
      return 'added'
    },
    for(happening) {
      const business = 'record' in happening ? happening.record.business_uid : happening.businessUid
      const targets = new Set<string>()
      return [...all.values()].filter(({ event, target, businessUid }) => {
        if (event !== happening.name || (businessUid !== null && businessUid !== business)) return false
        // A target registered with several kinds of token gets the event once.
        return !targets.has(target) && targets.add(target)
      })
    },
  }
}

/** Whether the interface document lists the event. */
export function isEventName(name: unknown): name is EventName {
  return typeof name === 'string' && Object.hasOwn(EVENTS, name)
}

/** Whether a delivery can be sent there. */
export function isTargetUrl(value: unknown): value is string {
  return typeof value === 'string' && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)
}
