import type { Clock } from '../base/clock.js'
import type { Hint } from '../store/port/store.js'
import { type Connection, sql } from '../store/sql/sql.js'
import type { PostgresConnections } from './pool.js'

/** Hints are collected for this long and sent in one transaction: a NOTIFY locks the whole database at its commit. */
const COLLECT_MS = 20
/** The most hints that name a business; further ones are sent without it, and concern any. */
const MAX_NAMED = 20

/** Sends the hints of this process, each once in a while. */
export function createHintSender(options: {
  connections: Pick<PostgresConnections, 'acquire'>
  channel: string
  /** Names this process in its messages. */
  self: string
  clock: Clock
}) {
  const { connections, channel, self, clock } = options
  const collected = new Map<string, Hint>()
  let timer: unknown

  async function send(messages: readonly string[]) {
    const connection = await connections.acquire()
    try {
      await connection.query(
        'select pg_notify($1, message) from json_array_elements_text($2::json) as message',
        [channel, JSON.stringify(messages)],
      )
    } finally {
      connection.release()
    }
  }

  function flush() {
    timer = undefined
    const hints = [...collected.values()]
    collected.clear()
    // A failure only costs time: every process also polls.
    send(hints.map((hint) => hintFrom(self, hint))).catch(() => {})
  }

  return {
    send,

    /** A superseded decision is rare enough for a NOTIFY of its own. */
    async sendIn(trx: Connection, hints: readonly Hint[]) {
      const messages = hints.map((hint) => hintFrom(self, hint))
      await sql`select pg_notify(${channel}, message)
        from json_array_elements_text(${JSON.stringify(messages)}::json) as message`.execute(trx)
    },

    announce(hint: Hint) {
      const any: Hint = hint.kind === 'journal' ? hint : { ...hint, businessUid: null }
      if (collected.has(textOf(any))) return
      const announced = collected.size < MAX_NAMED ? hint : any
      collected.set(textOf(announced), announced)
      timer ??= clock.setTimeout(flush, COLLECT_MS)
    },

    /** Drops the hints that are not sent yet. */
    close() {
      clock.clearTimeout(timer)
    },
  }
}

/** A message of the channel: `<process> probe`, or `<process> <kind of hint> <business>`. */
export type Message = { from: string } & ({ kind: 'probe' } | { kind: 'hint'; hint: Hint })

/** A message of a process to itself. */
export const probeFrom = (self: string) => `${self} probe`

const hintFrom = (self: string, hint: Hint) => `${self} ${textOf(hint)}`

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
