import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { cleanUp, onCleanUp } from '../../../__tests__/support/clean-up.js'
import { openMarketplace, startPlatform } from '../../../__tests__/support/scene.js'
import { anyDelivery } from '../../../__tests__/support/scenes/any-delivery.js'
import { createRandom, type Random } from '../../../__tests__/support/world/random.js'

const BODIES = 400
/** After so many bodies a good delivery must be taken. */
const BETWEEN = 25

export interface Bodies {
  bodies: number
  good: number
  wrong: number
  rejections: number
  broken: string[]
}

const failures: string[] = []
process.on('unhandledRejection', (reason) => failures.push(`unhandled rejection: ${reason}`))
process.on('uncaughtException', (error) => failures.push(`uncaught: ${error.stack}`))

/** Sends bodies made up at random to a listener, whose worker reads and handles what it takes of them. */
export async function bodies(seed: number, createStore: () => Promise<string>): Promise<Bodies> {
  const random = createRandom(seed)
  const platform = await startPlatform({ seed })
  const marketplace = openMarketplace(platform, { store: await createStore() })
  marketplace.onAny(() => {})
  marketplace.onUnrecognised(() => {})
  await marketplace.start()
  const server = createServer(marketplace.listener({ path: '/hooks' })).listen(0, '127.0.0.1')
  onCleanUp(() => server.closeAllConnections())
  onCleanUp(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const path = new URL(marketplace.webhooks.targetUrl(`http://127.0.0.1:${port}/hooks`)).pathname
  const agent = new Agent({ keepAlive: true })
  onCleanUp(() => agent.destroy())
  const broken: string[] = []
  let wrong = 0

  function send(body: Buffer, headers: Record<string, string>): Promise<{ status: number; text: string }> {
    return new Promise((resolve) => {
      const options = { host: '127.0.0.1', port, path, method: 'POST', agent, headers }
      const sent = request(
        { ...options, headers: { ...headers, 'Content-Length': body.length } },
        (reply) => {
          let text = ''
          reply.on('data', (part) => {
            text += part
          })
          reply.once('close', () => resolve({ status: Number(reply.statusCode), text }))
        },
      )
      sent.once('error', (error) => resolve({ status: 0, text: error.message })).end(body)
    })
  }

  async function sendAny(delivery: unknown) {
    const { body, headers } = disguised(delivery, random)
    const { status, text } = await send(body, headers)
    const isAllowed = status === 200 || status === 503 || (status >= 400 && status < 500)
    if (isAllowed) return
    wrong++
    broken.push(`${status} ${text} for ${JSON.stringify(headers)} ${body.toString('base64').slice(0, 2_000)}`)
  }

  const good: string[] = []
  const deliveries = fc.sample(anyDelivery(), { seed, numRuns: BODIES }).map(({ delivery }) => delivery)
  for (let at = 0; at < deliveries.length; at += BETWEEN) {
    await Promise.all(deliveries.slice(at, at + BETWEEN).map(sendAny))
    const event = { ...GOOD, data: { subscription_uid: `good-${at}`, business_uid: 'b1' } }
    const { status, text } = await send(Buffer.from(JSON.stringify(event)), JSON_HEADERS)
    if (status === 200) good.push(JSON.parse(text).id)
    else broken.push(`a good delivery got ${status} ${text}`)
  }
  for (const id of good)
    if ((await marketplace.journal.get(id)) === undefined)
      broken.push(`the good delivery ${id} is not in the journal`)
  // Reads and handlers are under way until the app has closed.
  await cleanUp()
  const rejections = failures.splice(0)
  broken.push(...rejections)
  return {
    ...{ bodies: deliveries.length, good: good.length },
    ...{ wrong, rejections: rejections.length, broken },
  }
}

const GOOD = { entity_name: 'purchasable_subscription', event_type: 'update' }
const JSON_HEADERS = { 'Content-Type': 'application/json' }
const TYPES = [
  'application/json',
  'application/json; charset=utf-16',
  'text/plain',
  'application/x-www-form-urlencoded',
  '',
]

/** A delivery as a sender of errors may send it: cut, changed, compressed, of another type, or other bytes altogether. */
function disguised(delivery: unknown, random: Random): { body: Buffer; headers: Record<string, string> } {
  const text = Buffer.from(JSON.stringify(delivery) ?? '')
  const type = random.chance(0.7) ? 'application/json' : random.pick(TYPES)
  const headers: Record<string, string> = type === '' ? {} : { 'Content-Type': type }
  switch (
    random.choose({
      whole: 5,
      cut: 1,
      changed: 2,
      deep: 0.5,
      long: 0.5,
      bytes: 1,
      compressed: 1,
      mistaken: 0.5,
    })
  ) {
    case 'cut':
      return { body: text.subarray(0, random.between(0, text.length)), headers }
    case 'changed':
      for (let i = random.between(1, 5); i > 0 && text.length > 0; i--)
        text[random.between(0, text.length - 1)] = random.between(0, 255)
      return { body: text, headers }
    case 'deep': {
      const depth = random.between(10, 20_000)
      return { body: Buffer.from(`${'['.repeat(depth)}1${']'.repeat(depth)}`), headers }
    }
    case 'long':
      return { body: Buffer.concat(Array.from({ length: 2_000 }, () => text)).subarray(0, 200_000), headers }
    case 'bytes':
      return {
        body: Buffer.from(Array.from({ length: random.between(0, 300) }, () => random.between(0, 255))),
        headers,
      }
    case 'compressed':
      return { body: gzipSync(text), headers: { ...headers, 'Content-Encoding': 'gzip' } }
    case 'mistaken':
      return {
        body: text,
        headers: { ...headers, 'Content-Encoding': random.pick(['gzip', 'br', 'deflate', 'none']) },
      }
    default:
      return { body: text, headers }
  }
}
