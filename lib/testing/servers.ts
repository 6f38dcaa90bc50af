import { PlatformServer, type PlatformServerOptions } from './platform-server.js'

/** The two addresses of the simulated platform. */
export interface Addresses {
  baseUrl: string
  authUrl: string
}

/** The servers of both addresses, which start together, once. */
export function createServers(
  options: Omit<PlatformServerOptions, 'under'> & { port: number; authPort: number },
) {
  const { port, authPort, ...shared } = options
  const base = new PlatformServer({ under: 'base', ...shared })
  const auth = new PlatformServer({ under: 'auth', ...shared })
  let starting: Promise<Addresses> | undefined
  let addresses: Addresses | undefined

  async function listen(): Promise<Addresses> {
    const baseUrl = await base.start(port)
    const authUrl = await auth.start(authPort)
    addresses = { baseUrl, authUrl }
    return addresses
  }

  return {
    start(): Promise<Addresses> {
      starting ??= listen()
      return starting
    },
    /** Undefined until they have started. */
    addresses: () => addresses,
    /** Cuts the connections of a server that is down now. */
    cutIfDown() {
      for (const server of [base, auth]) server.cutIfDown()
    },
    async close() {
      await starting?.catch(() => {})
      await Promise.all([base.close(), auth.close()])
    },
  }
}
