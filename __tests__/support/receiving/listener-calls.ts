import { createServer } from 'node:http'
import { connect, type Server } from 'node:net'
import { createSecretSearch } from '../../../lib/express/delivery-secret.js'
import { createDoors, type ListenerOptions } from '../../../lib/express/doors.js'
import { onCleanUp } from '../clean-up.js'
import { RECEIVER_DEFAULTS } from '../defaults.js'
import { listen } from '../serving.js'
import { until } from '../until.js'
import { SECRET } from './receivers.js'

export const OPTIONS = {
  ...RECEIVER_DEFAULTS,
  indexOfSecret: createSecretSearch([SECRET]),
  accept: async (envelopes: readonly unknown[]) =>
    envelopes.map((_envelope, i) => ({ id: `e${i + 1}`, issues: null })),
}

export const seenBy = new WeakMap<Server, string[]>()

export async function serve(options: ListenerOptions) {
  const kept: unknown[] = []
  const errors: unknown[] = []
  const seen: string[] = []
  const { listener } = createDoors({
    ...OPTIONS,
    accept: (envelopes) => {
      kept.push(...envelopes.map(({ value }) => value))
      return OPTIONS.accept(envelopes)
    },
    onOtherwiseError: (error) => errors.push(error),
  })
  const server = createServer(listener(options))
  seenBy.set(server, seen)
  const port = await listen(server)
  return { port, url: `http://127.0.0.1:${port}`, kept, errors, seen }
}

/** The status of the reply to a POST with exactly this request target, which `fetch` would normalise. */
export async function send(port: number, target: string): Promise<number> {
  const socket = connect(port, '127.0.0.1')
  onCleanUp(() => socket.destroy())
  let text = ''
  socket.setEncoding('latin1').on('data', (data) => {
    text += data
  })
  socket.write(`POST ${target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}`)
  await until('a reply', () => text.includes('\r\n'))
  return Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1])
}
