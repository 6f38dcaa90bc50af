import { randomUUID } from 'node:crypto'
import { fullJitter } from '../base/backoff.js'
import { type Clock, MINUTE, SECOND } from '../base/clock.js'
import { createRecheck } from '../base/waiting.js'
import { type Warn, warn as warnProcess } from '../base/warnings.js'
import type { Hint } from '../store/port/store.js'
import { ANYTHING } from '../store/sql/engine.js'
import { type Connection, quoted, sql } from '../store/sql/sql.js'
import type { PostgresConnection } from './connection.js'
import type { PostgresConnections } from './pool.js'

/** The interval of a query whether the connection still listens. One that does not answer is half-open. */
const HEARTBEAT_MS = 5 * SECOND
/** How long an echo, a message to this process, may take. */
const ECHO_MS = 2 * SECOND
/** After this many lost echoes in a row no messages are expected here, for `OFF_MS`. */
const PROBES = 3
const OFF_MS = 10 * MINUTE
/** Hints are collected for this long and sent in one transaction: a NOTIFY locks the whole database at its commit. */
const COLLECT_MS = 20
/** The most hints that name a business; further ones are sent without it, and concern any. */
const MAX_NAMED = 20

/**
 * Receives hints by LISTEN, and sends them by NOTIFY. Hints only save time: without them work is found, and
 * decisions expire, a little later. docs/states.md has the states of the connection.
 */
export function createNotifications(options: {
  connections: PostgresConnections
  /** The channel: the name of the schema. */
  channel: string
  clock: Clock
  warn?: Warn | undefined
}) {
  const { connections, channel, clock, warn = warnProcess } = options
  // The server shows the last query of each connection, by which those that listen are found: `isHeardByOthers`.
  const listenTo = `listen ${quoted(channel)}`
  const heartbeat = `select 1 from pg_listening_channels() as c where c = '${channel}'`
  const self = randomUUID()
  const sender = createHintSender({ connections, channel, self, clock })
  let onHint: (hint: Hint) => void = () => {}
  /** `on`: any state between new and closed. */
  let state: 'new' | 'on' | 'closed' = 'new'
  let listening: PostgresConnection | undefined
  const echo = createRecheck(clock, ECHO_MS)
  let failures = 0
  let lostEchoes = 0
  let timer: unknown

  async function listen() {
    try {
      const connection = await connections.acquire()
      if (state !== 'on') return connection.release()
      listening = connection
      connection.onNotification(({ channel: to, payload }) => {
        if (to === channel) receive(payload)
      })
      connection.onLost(() => reconnect(connection))
      await connection.query(listenTo)
      const isReceived = await echoes()
      if (state !== 'on') return
      if (!isReceived) return echoLost(connection)
      lostEchoes = 0
      failures = 0
      // Messages may have been sent before the connection listened.
      ANYTHING.forEach(onHint)
      beat(connection)
    } catch {
      reconnect(listening)
    }
  }

  /** Whether a message to this process arrives in time. */
  async function echoes(): Promise<boolean> {
    const received = echo.wait(ECHO_MS)
    await sender.send([echoFrom(self)])
    return received
  }

  function beat(connection: PostgresConnection) {
    timer = clock.setTimeout(async () => {
      try {
        const rows = await connection.query(heartbeat)
        if (rows.length === 0) throw new Error('the connection does not listen any more')
        await connections.works(connection)
        if (connection === listening) beat(connection)
      } catch {
        reconnect(connection)
      }
    }, HEARTBEAT_MS)
  }

  function reconnect(
    connection: PostgresConnection | undefined,
    inMs = fullJitter(failures++, SECOND / 4, MINUTE / 2),
  ) {
    if (connection !== listening) return
    listening = undefined
    clock.clearTimeout(timer)
    // The connection is destroyed: behind a pooler another client would get the server's, which still listens.
    connection?.release(true)
    if (state === 'on') timer = clock.setTimeout(listen, inMs)
  }

  /** One lost echo may be a slow server, several in a row are a pooler; see docs/decisions/hints-may-be-lost.md. */
  function echoLost(connection: PostgresConnection) {
    if (++lostEchoes < PROBES) return reconnect(connection)
    reconnect(connection, OFF_MS)
    if (lostEchoes === PROBES) warn('listen_unavailable')
  }

  function receive(payload: unknown) {
    const message = messageIn(payload)
    if (message?.kind === 'hint' && message.from !== self) onHint(message.hint)
    if (message?.kind === 'echo' && message.from === self) echo.end()
  }

  return {
    start(listener: (hint: Hint) => void) {
      if (state !== 'new') return
      onHint = listener
      state = 'on'
      listen()
    },

    /**
     * Whether another connection to the channel listens, as one of each process does. It is not seen behind a pooler that
     * does not pass messages on, and if it belongs to another role.
     */
    async isHeardByOthers(db: Connection): Promise<boolean> {
      const rows = await sql`
        select 1 as one from pg_catalog.pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and query in (${listenTo}, ${heartbeat}) limit 1`.execute(
        db,
      )
      return rows.length > 0
    },

    announce(hint: Hint) {
      if (state === 'on') sender.announce(hint)
    },

    async announceIn(trx: Connection, hints: readonly Hint[]) {
      if (state === 'on') await sender.sendIn(trx, hints)
    },

    async close() {
      // A store whose opening failed closes its engine and may be opened again.
      if (state === 'new') return
      state = 'closed'
      clock.clearTimeout(timer)
      sender.close()
      echo.end()
      const connection = listening
      listening = undefined
      // The next user of a pooled connection must not receive our messages.
      await connection?.query(`unlisten ${quoted(channel)}`).catch(() => {})
      connection?.release()
    },
  }
}

/** Sends the hints of this process, each once in a while. */
function createHintSender(options: {
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

/** A message of the channel: `<process> echo`, or `<process> <kind of hint> <business>`. */
type Message = { from: string } & ({ kind: 'echo' } | { kind: 'hint'; hint: Hint })

/** A message of a process to itself. */
const echoFrom = (self: string) => `${self} echo`

const hintFrom = (self: string, hint: Hint) => `${self} ${textOf(hint)}`

/** A hint as text; equal for equal hints. */
function textOf(hint: Hint): string {
  if (hint.kind === 'journal') return hint.kind
  const kind = hint.kind === 'decided' && hint.superseded ? 'superseded' : hint.kind
  return hint.businessUid === null ? kind : `${kind} ${encodeURIComponent(hint.businessUid)}`
}

/** Any client of the database may send anything on any channel, so an unknown message is undefined. */
function messageIn(payload: unknown): Message | undefined {
  if (typeof payload !== 'string') return undefined
  const [from = '', kind, business] = payload.split(' ')
  const businessUid = business ? decoded(business) : null
  switch (kind) {
    case 'echo':
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
