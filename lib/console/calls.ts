import type { Role } from './roles.js'

/** One call of the page. `act`: it changes something, so it takes a POST with a token and leaves an action in the journal. */
export interface CallRule {
  kind: 'read' | 'act'
  /** The least role that may call it, checked on the server for every call. */
  role: Role
  /** In words, for the documentation. */
  does: string
}

/** Every call of the console. There is no other way in, and what is not named here does not exist. */
export const CALLS = {
  session: { kind: 'read', role: 'support', does: 'see who is signed in' },
  search: { kind: 'read', role: 'support', does: 'find a business or a subscription' },
  business: {
    kind: 'read',
    role: 'support',
    does: 'see the answer for a business, its cause and the next step',
  },
  history: { kind: 'read', role: 'support', does: 'see the timeline of a business' },
  answerAt: { kind: 'read', role: 'support', does: 'see the answer at a time' },
  subscriptions: { kind: 'read', role: 'support', does: 'list subscriptions' },
  entry: { kind: 'read', role: 'support', does: 'see an entry of the journal' },
  attention: { kind: 'read', role: 'support', does: 'see what is dead and what is tried again' },
  group: { kind: 'read', role: 'support', does: 'list the entries of a group' },
  shapes: { kind: 'read', role: 'support', does: 'see unrecognised deliveries by their shape' },
  webhooks: {
    kind: 'read',
    role: 'support',
    does: 'see which events come in, other items and wrong secrets',
  },
  live: { kind: 'read', role: 'support', does: 'watch what comes in' },
  health: { kind: 'read', role: 'support', does: 'see the health' },
  previewReplay: { kind: 'read', role: 'operator', does: 'preview a replay' },
  refresh: { kind: 'act', role: 'support', does: 'read a business again' },
  track: { kind: 'act', role: 'support', does: 'track a subscription' },
  replay: { kind: 'act', role: 'operator', does: 'replay an entry, a group, or all' },
  export: { kind: 'act', role: 'operator', does: 'export what is kept of a business' },
  erase: { kind: 'act', role: 'operator', does: 'erase a business' },
} as const satisfies Record<string, CallRule>

/** A call of the console: see `CALLS`. */
export type CallName = keyof typeof CALLS
export type ReadName = { [N in CallName]: (typeof CALLS)[N]['kind'] extends 'read' ? N : never }[CallName]
export type ActName = Exclude<CallName, ReadName>
