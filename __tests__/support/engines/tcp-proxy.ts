import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { onCleanUp } from '../clean-up.js'
import { until } from '../until.js'

export type Direction = 'to server' | 'to client'

export interface TcpProxy {
  port: number
  /** The same address through the proxy, for `postgres://…` and `http://…`. */
  through(address: string): string
  /** The number of open connections, including those behind a black hole. */
  connections(): number

  /** Resets every connection and refuses new ones. */
  cut(): Promise<void>
  /** Accepts connections and passes nothing on in either direction, not even their end. */
  blackHole(): void
  /** Open connections pass nothing on any more, but new ones work, as after the peer has vanished. */
  halfOpen(): void
  /** Passes each write on `ms` later, one after the other. */
  delay(ms: number): void
  /** Removes every fault. Bytes that a black hole held back are passed on, as TCP repeats lost ones. */
  heal(): Promise<void>

  /**
   * Strikes once: passes the matching bytes to the server, waits for its reply, and then resets the connection instead
   * of passing the reply on.
   */
  cutAfter(match: RegExp): Promise<void>
  /** The same, but the connection stays open, and nothing is passed on any more. */
  silenceAfter(match: RegExp): Promise<void>
  /** Strikes once: resets the connection instead of passing the matching bytes to the server. */
  cutBefore(match: RegExp): Promise<void>
  /** Resolves when nothing was passed on for so long, in either direction. */
  quiet(ms: number): Promise<void>
  /** Calls the listener with every write before it is passed on. Returns a function that removes the listener. */
  onData(direction: Direction, listener: (bytes: Buffer) => void): () => void
}

interface Link {
  client: Socket
  server: Socket | undefined
  /** Nothing is passed on any more. */
  isSilent: boolean
  /** The server's next reply will be lost, together with the connection. */
  strikesAtReply: Strike | undefined
}

interface Strike {
  match: RegExp
  when: 'before' | 'after' | 'silence'
  struck: () => void
}

interface Weather {
  isBlackHole: boolean
  delayMs: number
}

const FAIR: Weather = { isBlackHole: false, delayMs: 0 }

/** A proxy to a port of this machine that fails on request. */
export async function startProxy({ to }: { to: number }): Promise<TcpProxy> {
  const links = new Set<Link>()
  const strikes = new Set<Strike>()
  const listeners = { 'to server': new Set<Listener>(), 'to client': new Set<Listener>() }
  let weather = FAIR
  let passedAt = performance.now()
  let changed = signal()

  function change(next: Weather) {
    weather = next
    changed.give()
    changed = signal()
  }

  const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const link: Link = { client, server: undefined, isSilent: false, strikesAtReply: undefined }
    links.add(link)
    void carry(link).finally(() => {
      link.client.destroy()
      link.server?.destroy()
      links.delete(link)
    })
  })

  /** Resolves when both directions have ended. */
  async function carry(link: Link): Promise<void> {
    link.client.on('error', () => {})
    await passable(link)
    if (link.client.destroyed) return
    const server = connect({ port: to, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    link.server = server
    server.on('error', () => {})
    await Promise.all([
      pass(link, link.client, server, 'to server'),
      pass(link, server, link.client, 'to client'),
    ])
  }

  async function pass(link: Link, from: Socket, into: Socket, direction: Direction): Promise<void> {
    try {
      for await (const bytes of from.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        passedAt = performance.now()
        for (const each of listeners[direction]) each(bytes)
        if (weather.delayMs > 0) await Promise.race([sleep(weather.delayMs), changed.given])
        await passable(link)
        if (direction === 'to client' && link.strikesAtReply?.when === 'silence') {
          link.isSilent = true
          link.strikesAtReply.struck()
          await passable(link)
        } else if (direction === 'to client' && link.strikesAtReply)
          return strikeAt(link, link.strikesAtReply)
        const strike = direction === 'to server' ? strikeFor(bytes) : undefined
        if (strike) strikes.delete(strike)
        if (strike?.when === 'before') return strikeAt(link, strike)
        link.strikesAtReply ??= strike
        // The callback also runs if the write has failed.
        await new Promise<void>((resolve) => into.write(bytes, () => resolve()))
      }
      await passable(link)
      await new Promise<void>((resolve) => into.end(() => resolve()))
    } catch {
      // One side has reset the connection, so the other side is reset too, unless the proxy is silent.
      await passable(link)
      reset(link)
    }
  }

  /** Waits while the proxy must not pass anything on; a link that is reset stops waiting. */
  async function passable(link: Link): Promise<void> {
    while (weather.isBlackHole || link.isSilent) await changed.given
  }

  function strikeFor(bytes: Buffer): Strike | undefined {
    return [...strikes].find(({ match }) => match.test(bytes.toString('latin1')))
  }

  function strikeAt(link: Link, strike: Strike) {
    reset(link)
    strike.struck()
  }

  function strikeOn(match: RegExp, when: Strike['when']): Promise<void> {
    return new Promise((resolve) => strikes.add({ match, when, struck: resolve }))
  }

  function resetAll() {
    for (const link of links) {
      link.isSilent = false
      reset(link)
    }
  }

  async function listen(port: number) {
    listener.listen(port, '127.0.0.1')
    await once(listener, 'listening')
  }

  async function refuse() {
    const closed = listener.listening ? once(listener, 'close') : undefined
    if (closed) listener.close()
    resetAll()
    change(FAIR)
    await closed
  }

  const port = await freePort()
  await listen(port)
  onCleanUp(refuse)

  return {
    port,
    through(address) {
      const url = new URL(address)
      url.port = String(port)
      return url.href
    },
    connections: () => links.size,
    cut: refuse,
    blackHole: () => change({ ...weather, isBlackHole: true }),
    halfOpen() {
      for (const link of links) link.isSilent = true
    },
    delay: (delayMs) => change({ ...weather, delayMs }),
    async heal() {
      change(FAIR)
      if (!listener.listening) await listen(port)
    },
    cutAfter: (match) => strikeOn(match, 'after'),
    silenceAfter: (match) => strikeOn(match, 'silence'),
    cutBefore: (match) => strikeOn(match, 'before'),
    async quiet(ms) {
      await until('nothing is passed on', () => performance.now() - passedAt > ms)
    },
    onData(direction, each) {
      listeners[direction].add(each)
      return () => void listeners[direction].delete(each)
    },
  }
}

type Listener = (bytes: Buffer) => void

/**
 * A free port below the range for outgoing connections (from 32768 on Linux, 49152 on macOS). So while a server is
 * down, no client can get its port, not even by connecting to itself.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 17_000)
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!isFree) continue
    await new Promise((resolve) => server.close(resolve))
    return port
  }
}

function reset({ client, server }: Link) {
  for (const socket of [client, server]) {
    if (!socket || socket.destroyed) continue
    // A reset after `end()` kept Node 20 busy for ever at its exit.
    if (socket.writableEnded) socket.destroy()
    else socket.resetAndDestroy()
  }
}

function signal() {
  let give = () => {}
  const given = new Promise<void>((resolve) => {
    give = resolve
  })
  return { given, give }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref())
}
