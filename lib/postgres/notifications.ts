import { randomUUID } from 'node:crypto'
import { fullJitter } from '../base/backoff.js'
import { type Clock, MINUTE, SECOND } from '../base/clock.js'
import { type Warn, warn as warnProcess } from '../base/warnings.js'
import type { Hint } from '../store/port/store.js'
import { ANYTHING } from '../store/sql/engine.js'
import { type Connection, quoted } from '../store/sql/sql.js'
import type { PostgresConnection } from './connection.js'
import { createHintSender, messageIn, probeFrom } from './hints.js'
import type { PostgresConnections } from './pool.js'

/** The interval of a query whether the connection still listens. One that does not answer is half-open. */
const HEARTBEAT_MS = 5 * SECOND
/** How long a probe, a message to this process, may take. */
const PROBE_MS = 2 * SECOND
/** After this many lost probes in a row no messages are expected here, for `OFF_MS`. */
const PROBES = 3
const OFF_MS = 10 * MINUTE

/**
 * Receives hints by LISTEN, and sends them (`hints.ts`). Hints only save time: without them work is found, and
 * decisions expire, a little later. docs/states.md has the states of the connection.
 */
export function createListener(options: {
  connections: PostgresConnections
  /** The channel: the name of the schema. */
  channel: string
  clock: Clock
  warn?: Warn | undefined
}) {
  const { connections, channel, clock, warn = warnProcess } = options
  const self = randomUUID()
  const sender = createHintSender({ connections, channel, self, clock })
  let onHint: (hint: Hint) => void = () => {}
  /** `on`: any state between new and closed. */
  let state: 'new' | 'on' | 'closed' = 'new'
  let listening: PostgresConnection | undefined
  let onProbe = () => {}
  let failures = 0
  let lostProbes = 0
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
      await connection.query(`listen ${quoted(channel)}`)
      const isReceived = await probe()
      if (state !== 'on') return
      if (!isReceived) return probeLost(connection)
      lostProbes = 0
      failures = 0
      // Messages may have been sent before the connection listened.
      ANYTHING.forEach(onHint)
      beat(connection)
    } catch {
      reconnect(listening)
    }
  }

  /** Whether a message to this process arrives in time. */
  async function probe(): Promise<boolean> {
    const received = new Promise<boolean>((resolve) => {
      const giveUp = clock.setTimeout(() => resolve(false), PROBE_MS)
      onProbe = () => {
        clock.clearTimeout(giveUp)
        resolve(true)
      }
    })
    await sender.send([probeFrom(self)])
    return received
  }

  function beat(connection: PostgresConnection) {
    timer = clock.setTimeout(async () => {
      try {
        const rows = await connection.query('select 1 from pg_listening_channels() as c where c = $1', [
          channel,
        ])
        if (rows.length === 0) throw new Error('the connection does not listen any more')
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

  /** One lost probe may be a slow server, several in a row are a pooler; see docs/decisions/hints-may-be-lost.md. */
  function probeLost(connection: PostgresConnection) {
    if (++lostProbes < PROBES) return reconnect(connection)
    reconnect(connection, OFF_MS)
    if (lostProbes === PROBES) warn('listen_unavailable')
  }

  function receive(payload: unknown) {
    const message = messageIn(payload)
    if (message?.kind === 'hint' && message.from !== self) onHint(message.hint)
    if (message?.kind === 'probe' && message.from === self) onProbe()
  }

  return {
    start(listener: (hint: Hint) => void) {
      // The only connection of a pool is needed for transactions.
      if (state !== 'new' || connections.max < 2) return
      onHint = listener
      state = 'on'
      listen()
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
      onProbe()
      const connection = listening
      listening = undefined
      // The next user of a pooled connection must not receive our messages.
      await connection?.query(`unlisten ${quoted(channel)}`).catch(() => {})
      connection?.release()
    },
  }
}
