import { createServer, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { describe, expect, it } from '@jest/globals'
import { onCleanUp } from '../../support/clean-up.js'
import { storeOf } from '../../support/engines/open-store.js'
import { CERTIFICATE, KEY } from '../../support/processes/certificate.js'

describe('K31 a server that pg cannot read', () => {
  it.each([
    ['asks for GSSAPI', '', message('R', [0, 0, 0, 7])],
    ['asks for GSSAPI over TLS', '?sslmode=no-verify', message('R', [0, 0, 0, 7])],
    ['sends half a message', '', message('T', [0, 9])],
  ])('ends the connection, and not the process, when it %s', async (_what, query, answer) => {
    const port = await serverThatAnswers(answer)
    const store = storeOf(`postgres://a:b@127.0.0.1:${port}/x${query}`)
    const error = await store.open().catch((reason) => reason)
    expect(error).toMatchObject({ code: 'store_unavailable' })
    expect(error.message).toMatch(/^Cannot use the PostgreSQL database: /)
    expect(error.message).not.toMatch(/no answer/)
  })
})

async function serverThatAnswers(answer: Buffer): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    socket.once('data', (first) => {
      if (first.readInt32BE(4) !== SSL_REQUEST) {
        socket.write(answer)
        return
      }
      socket.write('S')
      const secure = new TLSSocket(socket, { isServer: true, cert: CERTIFICATE, key: KEY })
      secure.on('error', () => {}).once('data', () => secure.write(answer))
    })
  })
  onCleanUp(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as { port: number }).port
}

const SSL_REQUEST = 80_877_103

/** A message of PostgreSQL's protocol: its type, its length, its body. */
function message(type: string, body: readonly number[]): Buffer {
  return Buffer.from([type.charCodeAt(0), 0, 0, 0, 4 + body.length, ...body])
}
