import type { PostgresConnection } from '../../../lib/postgres/connection.js'

export const CHANNEL = 'marketplace_webhooks'

/** The part of a PostgreSQL server that a listener uses: it passes messages to all listening connections. */
export function createListeningServer() {
  const sent: string[][] = []
  const connections = new Set<{ notify(channel: string, payload?: string): void; lose(): void }>()
  let taken = 0
  let borrowed = 0
  let destroyed = 0
  let listens = 0
  let unlistens = 0
  let misused = 0
  const self = () => sent[0]?.[0]?.split(' ')[0] ?? ''

  const server = {
    /** New connections fail. */
    isDown: false,
    /** Every statement fails. */
    refuses: false,
    /** The connections have stopped listening. */
    isDeaf: false,
    /** Messages do not arrive, as behind a pooler. */
    isPooler: false,
    taken: () => taken,
    borrowed: () => borrowed,
    destroyed: () => destroyed,
    listens: () => listens,
    unlistens: () => unlistens,
    /** The number of statements on a connection that was already returned. */
    misused: () => misused,
    /** Delays the answers to heartbeats until it resolves. */
    heartbeat: Promise.resolve(),
    sends: () => sent.length,
    self,
    messages: () => sent.flat().map((message) => message.replace(self(), '<self>')),
    notify(payload: string | undefined, channel = CHANNEL) {
      if (!server.isPooler) for (const each of connections) each.notify(channel, payload)
    },
    /** Drops the connections; a driver may report a lost connection twice. */
    lose() {
      for (const each of [...connections, ...connections]) each.lose()
    },

    async acquire(): Promise<PostgresConnection> {
      taken++
      if (server.isDown) throw new Error('no connection')
      borrowed++
      let onNotification: Parameters<PostgresConnection['onNotification']>[0] = () => {}
      let onLost = () => {}
      let isReturned = false
      const connection = {
        notify: (channel: string, payload?: string) =>
          onNotification(payload === undefined ? { channel } : { channel, payload }),
        lose: () => onLost(),
      }
      return {
        isPipelined: false,
        onNotification(listener) {
          onNotification = listener
        },
        onLost(listener) {
          onLost = listener
        },
        release(destroy) {
          isReturned = true
          borrowed--
          if (destroy) destroyed++
          connections.delete(connection)
        },
        queryAll: () => Promise.reject(new Error('a listener writes nothing')),
        async query(text, values = []) {
          if (isReturned) misused++
          if (server.refuses) throw new Error('refused')
          if (text === `listen "${CHANNEL}"`) {
            listens++
            connections.add(connection)
          } else if (text === `unlisten "${CHANNEL}"`) {
            unlistens++
            connections.delete(connection)
          } else if (text.includes('pg_notify')) {
            if (values[0] !== CHANNEL) throw new Error('another channel')
            const messages = JSON.parse(values[1] as string) as string[]
            sent.push(messages)
            for (const message of messages) server.notify(message)
          } else if (text.includes('pg_listening_channels')) {
            if (!text.endsWith(` = '${CHANNEL}'`)) throw new Error('another channel')
            await server.heartbeat
            return server.isDeaf ? [] : [{}]
          }
          return []
        },
      }
    },
  }
  return server
}
