import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { onCleanUp } from './clean-up.js'

/** Serves HTTP on a free port until the end of the test; returns its address. */
export async function serve(listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(createServer(listener))}`
}

/** Lets a server of any kind listen on a free port until the end of the test; returns the port. */
export async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onCleanUp(() => close(server))
  return (server.address() as AddressInfo).port
}

/** Closes a server with its connections. */
export function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    if ('closeAllConnections' in server) (server.closeAllConnections as () => void)()
  })
}
