import type { Role } from './roles.js'

/** One call of the page. `act`: it changes something, so it requires a POST with a token, and the journal records it. */
export interface CallRule {
  /** `read` changes nothing; `act` is an action of a person. */
  kind: 'read' | 'act'
  /** The lowest role that may call it. The server checks it for every call. */
  role: Role
  /** A description for the documentation. */
  does: string
}

/** Every call of the console. */
export const CALLS = {
  session: read('support', 'see who is signed in'),
  search: read('support', 'find a business or a subscription'),
  business: read('support', 'see the answer for a business, its cause and the next step'),
  history: read('support', 'see the timeline of a business'),
  subscriptions: read('support', 'list subscriptions'),
  entry: read('support', 'see a journal entry'),
  attention: read('support', 'see dead and retrying entries'),
  group: read('support', 'list the entries of a group'),
  shapes: read('support', 'see unrecognised deliveries by their shape'),
  webhooks: read('support', 'see which events arrive, other items and wrong secrets'),
  live: read('support', 'watch new entries'),
  health: read('support', 'see the health'),
  activity: read('support', 'see the deliveries of the last day'),
  previewReplay: read('operator', 'preview a replay'),
  outcomes: read('operator', 'see the outcome of a replay'),
  stored: read('operator', 'see what an export has and an erasure deletes'),
  refresh: act('support', 'read a business again'),
  track: act('support', 'track a subscription'),
  replay: act('operator', 'replay an entry, a group, or all'),
  export: act('operator', 'export the stored data of a business'),
  erase: act('operator', 'erase a business'),
} as const satisfies Record<string, CallRule>

/** A call of the console: see `CALLS`. */
export type CallName = keyof typeof CALLS
export type ReadName = { [N in CallName]: (typeof CALLS)[N]['kind'] extends 'read' ? N : never }[CallName]
export type ActName = Exclude<CallName, ReadName>

function read(role: Role, does: string) {
  return { kind: 'read', role, does } as const
}

function act(role: Role, does: string) {
  return { kind: 'act', role, does } as const
}
