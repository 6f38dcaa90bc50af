import type { Role } from './roles.js'

/** One call of the page. `act`: it changes something, so it requires a POST with a token, and the journal records it. */
export interface CallRule {
  kind: 'read' | 'act'
  /** The lowest role that may call it. The server checks it for every call. */
  role: Role
  /** A description for the documentation. */
  does: string
}

/** Every call of the console. */
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
  entry: { kind: 'read', role: 'support', does: 'see a journal entry' },
  attention: { kind: 'read', role: 'support', does: 'see dead and retrying entries' },
  group: { kind: 'read', role: 'support', does: 'list the entries of a group' },
  shapes: { kind: 'read', role: 'support', does: 'see unrecognised deliveries by their shape' },
  webhooks: {
    kind: 'read',
    role: 'support',
    does: 'see which events arrive, other items and wrong secrets',
  },
  live: { kind: 'read', role: 'support', does: 'watch new entries' },
  health: { kind: 'read', role: 'support', does: 'see the health' },
  previewReplay: { kind: 'read', role: 'operator', does: 'preview a replay' },
  refresh: { kind: 'act', role: 'support', does: 'read a business again' },
  track: { kind: 'act', role: 'support', does: 'track a subscription' },
  replay: { kind: 'act', role: 'operator', does: 'replay an entry, a group, or all' },
  export: { kind: 'act', role: 'operator', does: 'export the stored data of a business' },
  erase: { kind: 'act', role: 'operator', does: 'erase a business' },
} as const satisfies Record<string, CallRule>

export type CallName = keyof typeof CALLS
export type ReadName = { [N in CallName]: (typeof CALLS)[N]['kind'] extends 'read' ? N : never }[CallName]
export type ActName = Exclude<CallName, ReadName>
