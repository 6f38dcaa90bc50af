import type { Duplex } from 'node:stream'

/** The part of a `Client` of `pg` that reads its socket, which may be one of TLS. */
export interface PgReader {
  attachListeners(stream: Duplex): void
}

/**
 * The parser of `pg` throws in a listener of the socket for a message that it does not know, such as the request of a
 * server for GSSAPI. That would end the process. Here it ends the connection.
 */
export function catchParserErrors(reader: PgReader | undefined): void {
  if (typeof reader?.attachListeners !== 'function') return
  const attachListeners = reader.attachListeners.bind(reader)
  reader.attachListeners = (stream) => {
    const emit = stream.emit.bind(stream) as (...event: unknown[]) => boolean
    stream.emit = (...event: unknown[]) => {
      try {
        return emit(...event)
      } catch (error) {
        stream.destroy(error as Error)
        return true
      }
    }
    attachListeners(stream)
  }
}
