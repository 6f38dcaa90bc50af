import type { Hint } from '../store/store.js'

/** A message of the channel: `<process> probe`, or `<process> <kind of hint> <business>`. */
export type Message = { from: string } & ({ kind: 'probe' } | { kind: 'hint'; hint: Hint })

/** A message of a process to itself. */
export const probeFrom = (self: string) => `${self} probe`

export const hintFrom = (self: string, hint: Hint) => `${self} ${textOf(hint)}`

/** A hint as text; equal for equal hints. */
export function textOf(hint: Hint): string {
  if (hint.kind === 'journal') return hint.kind
  const kind = hint.kind === 'decided' && hint.superseded ? 'superseded' : hint.kind
  return hint.businessUid === null ? kind : `${kind} ${encodeURIComponent(hint.businessUid)}`
}

/** Any client of the database may send anything on any channel, so an unknown message is undefined. */
export function messageIn(payload: unknown): Message | undefined {
  if (typeof payload !== 'string') return undefined
  const [from = '', kind, business] = payload.split(' ')
  const businessUid = business ? decoded(business) : null
  switch (kind) {
    case 'probe':
      return { from, kind }
    case 'journal':
      return { from, kind: 'hint', hint: { kind } }
    case 'requested':
      return { from, kind: 'hint', hint: { kind, businessUid } }
    case 'decided':
    case 'superseded':
      return { from, kind: 'hint', hint: { kind: 'decided', businessUid, superseded: kind === 'superseded' } }
    default:
      return undefined
  }
}

/** Null, which means any business, for a text that was not encoded here. */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}
