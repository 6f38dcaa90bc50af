import { randomUUID } from 'node:crypto'
import { fullJitter } from '../backoff.js'
import { type Clock, MINUTE, SECOND } from '../clock.js'
import { ANYTHING } from '../store/engine.js'
import type { Hint } from '../store/store.js'
import { type Warn, warn as warnProcess } from '../warnings.js'
import { quoted } from './grants.js'
import type { PostgresConnection, PostgresConnections } from './pool.js'

/** How often the listening connection is asked whether it still listens; one that does not answer is half-open. */
const HEARTBEAT_MS = 5 * SECOND
/** How long a message to ourselves may take, how many may get lost before we do without, and for how long then. */
const PROBE_MS = 2 * SECOND
const PROBES = 3
const OFF_MS = 10 * MINUTE
/** Hints of this long travel as one message: a NOTIFY takes a lock of the whole database at its commit. */
const COLLECT_MS = 20
/** A message is at most 8,000 bytes; beyond this many businesses it says "any". */
const MAX_NAMED = 20

/**
 * LISTEN and NOTIFY, as a hint only: work is found and decisions expire without them, a little later.
 * Behind a pooler in transaction mode no message arrives: a message to ourselves finds out, and listening stops.
 */
export function createListener(options: {
  connections: PostgresConnections
  /** Of the database; the schema's name. */
  channel: string
  clock: Clock
  warn?: Warn | undefined
}) {
  const { connections, channel, clock, warn = warnProcess } = options
  const self = randomUUID()
  const collected = new Map<string, Hint>()
  let onHint: (hint: Hint) => void = () => {}
  let state: 'new' | 'on' | 'closed' = 'new'
  let listening: PostgresConnection | undefined
  let onProbe = () => {}
  let failures = 0
  let silences = 0
  let timer: unknown
  let flushing: unknown

  async function listen() {
    if (state !== 'on') return
    try {
      const connection = await connections.acquire()
      if (state !== 'on') return connection.release()
      listening = connection
      connection.onNotification(({ channel: to, payload }) => {
        if (to === channel) receive(payload)
      })
      connection.onLost(() => again(connection))
      await connection.query(`listen ${quoted(channel)}`)
      const isHeard = await hearsItself()
      if (state !== 'on') return
      if (!isHeard) return notHeard(connection)
      silences = 0
      failures = 0
      // What was said while nobody listened.
      ANYTHING.forEach(onHint)
      beat(connection)
    } catch {
      again(listening)
    }
  }

  async function hearsItself(): Promise<boolean> {
    const heard = new Promise<boolean>((resolve) => {
      const giveUp = clock.setTimeout(() => resolve(false), PROBE_MS)
      onProbe = () => {
        clock.clearTimeout(giveUp)
        resolve(true)
      }
    })
    await send(`${self} probe`)
    return heard
  }

  function beat(connection: PostgresConnection) {
    timer = clock.setTimeout(async () => {
      try {
        const rows = await connection.query('select 1 from pg_listening_channels() as c where c = $1', [
          channel,
        ])
        if (rows.length === 0) throw new Error('the connection does not listen any more')
        if (connection === listening && state === 'on') beat(connection)
      } catch {
        again(connection)
      }
    }, HEARTBEAT_MS)
  }

  function again(
    connection: PostgresConnection | undefined,
    inMs = fullJitter(failures++, SECOND / 4, MINUTE / 2),
  ) {
    if (connection !== listening) return
    listening = undefined
    clock.clearTimeout(timer)
    // Behind a pooler the server's connection goes to others, and must not listen for them.
    connection?.release(true)
    if (state === 'on') timer = clock.setTimeout(listen, inMs)
  }

  /** One silence may be a slow moment or a connection that is half open; several on new connections are a rule. */
  function notHeard(connection: PostgresConnection) {
    if (++silences < PROBES) return again(connection)
    again(connection, OFF_MS)
    if (silences > PROBES) return
    warn('listen_unavailable')
  }

  /** Anybody who may connect to the database can send anything on any channel: what cannot be read is passed over. */
  function receive(payload: unknown) {
    if (typeof payload !== 'string') return
    const [from, kind, business] = payload.split(' ')
    if (kind === 'probe') {
      if (from === self) onProbe()
      return
    }
    if (from === self) return
    const businessUid = business ? decoded(business) : null
    if (kind === 'journal') onHint({ kind })
    else if (kind === 'requested') onHint({ kind, businessUid })
    else if (kind === 'decided' || kind === 'superseded')
      onHint({ kind: 'decided', businessUid, superseded: kind === 'superseded' })
  }

  async function send(...payloads: string[]) {
    const connection = await connections.acquire()
    try {
      await connection.query(
        'select pg_notify($1, message) from json_array_elements_text($2::json) as message',
        [channel, JSON.stringify(payloads)],
      )
    } finally {
      connection.release()
    }
  }

  function flush() {
    flushing = undefined
    const hints = [...collected.values()]
    collected.clear()
    // Should it fail, nobody is told; everybody looks by themselves.
    send(...hints.map((hint) => `${self} ${words(hint)}`)).catch(() => {})
  }

  return {
    start(listener: (hint: Hint) => void) {
      // The one connection of a pool of one has other work.
      if (state !== 'new' || connections.max < 2) return
      onHint = listener
      state = 'on'
      listen()
    },

    announce(hint: Hint) {
      if (state !== 'on') return
      const any: Hint = hint.kind === 'journal' ? hint : { ...hint, businessUid: null }
      if (collected.has(words(any))) return
      const isOneTooMany = collected.size >= MAX_NAMED
      collected.set(words(isOneTooMany ? any : hint), isOneTooMany ? any : hint)
      flushing ??= clock.setTimeout(flush, COLLECT_MS)
    },

    async close() {
      // Not begun: an opening that failed before may be tried again.
      if (state === 'new') return
      state = 'closed'
      clock.clearTimeout(timer)
      clock.clearTimeout(flushing)
      onProbe()
      const connection = listening
      listening = undefined
      // A pooled connection must not go on listening for whoever gets it next.
      await connection?.query(`unlisten ${quoted(channel)}`).catch(() => {})
      connection?.release()
    },
  }
}

function words(hint: Hint): string {
  if (hint.kind === 'journal') return hint.kind
  const kind = hint.kind === 'decided' && hint.superseded ? 'superseded' : hint.kind
  return hint.businessUid === null ? kind : `${kind} ${encodeURIComponent(hint.businessUid)}`
}

/** Null, so any business, for what nobody here has encoded. */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}
