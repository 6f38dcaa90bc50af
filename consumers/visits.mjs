/**
 * Starts an app and visits it over HTTP: as the platform, as businesses that have bought or not, and as visitors who
 * cheat. Then ends it while visits are under way. Prints what it has seen as JSON.
 *
 * Its argument is JSON: `entry` is the file to start, `names` are those of the settings in `.env`, `paid` is the route
 * of the report, and `pages` show it too. The route that signs a business in is `/sign-in/<business>`.
 */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { Agent, createServer, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { sampleDelivery } from 'marketplace-webhooks/testing'
import { platform, secret, settings } from './scene.mjs'
import { FORGED, spellingsOf } from './spellings.cjs'

const { entry, names, paid = '/reports', pages = [] } = JSON.parse(process.argv[2])
const mount = '/webhooks/marketplace'
const port = await freePort()
const send = (path, options) => exchange(port, path, options)

writeFileSync('.env', names.map((name) => `${name}=${settings[name]}\n`).join(''))
const app = spawn(process.execPath, ['--env-file=.env', '--import', 'tsx', entry], {
  stdio: ['ignore', 'inherit', 'inherit'],
  env: { ...process.env, PORT: String(port) },
})
const ended = new Promise((resolve) => app.once('exit', (code, signal) => resolve(code ?? signal)))
app.once('exit', () => setTimeout(() => process.exit(1), 1_000))
try {
  console.log(JSON.stringify(await visitApp()))
} finally {
  app.kill('SIGKILL')
}
process.exit(0)

async function visitApp() {
  while ((await send('/')).status === 0) await sleep(100)
  await platform.registerAll(`http://127.0.0.1:${port}${mount}/${secret}`)
  platform.purchase({ business_uid: 'bakery', payment: 'succeeded' })
  await platform.settled()
  const [bakery, salon] = [await signIn('bakery'), await signIn('salon')]

  return {
    delivery: await deliver(secret),
    'wrong secret': await deliver('x'.repeat(24)),
    'has bought': await visitWithCaching(paid, bakery),
    'has not bought': await visit(paid, salon),
    'not signed in': await visit(paid, {}),
    'not signed in, with the business in a header and the query': await visit(
      `${paid}?business=bakery`,
      FORGED[1],
    ),
    'pages for who has bought': await shown(pages, bakery),
    'let in by another spelling': [...(await letIn(salon)), ...(await letIn({}))],
    'deliveries of the purchase': [...new Set(platform.deliveries.map(({ status }) => status))].join(),
    'under way at SIGTERM': await visitsAtSigterm(),
    'end of the process': await Promise.race([ended, sleep(30_000, 'it did not end')]),
  }
}

/** Visits of a business that is just being read: the gate waits for the read, and SIGTERM arrives meanwhile. */
async function visitsAtSigterm() {
  const cafe = await signIn('cafe')
  const kept = new Agent({ keepAlive: true })
  await visit(paid, cafe, kept)
  platform.faults.add({ on: 'read', kind: 'slow', ms: 1_500 })
  platform.purchase({ business_uid: 'cafe', payment: 'succeeded' })
  await platform.settled()
  const underWay = [kept, kept, false].map((agent) => visit(paid, cafe, agent))
  await sleep(300)
  app.kill('SIGTERM')
  return Promise.all(underWay)
}

async function deliver(key) {
  const { status } = await send(`${mount}/${key}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(sampleDelivery('application/installed')),
  })
  return status
}

async function signIn(business) {
  // Some frameworks set the cookie of a session only over TLS.
  const { headers } = await send(`/sign-in/${business}`, { headers: { 'x-forwarded-proto': 'https' } })
  return { cookie: (headers['set-cookie'] ?? []).map((each) => each.split(';')[0]).join('; ') }
}

async function visit(path, headers, agent) {
  const { status, body } = await send(path, { headers, agent })
  return `${status}${body.includes('visitors') ? ' with the report' : ''}`
}

async function visitWithCaching(path, headers) {
  const { headers: replied } = await send(path, { headers })
  return `${await visit(path, headers)}, ${replied['cache-control']}`
}

async function shown(paths, headers) {
  const visits = await Promise.all(paths.map((path) => visit(path, headers)))
  return visits.every((each) => each === '200 with the report')
}

async function letIn(visitor) {
  const found = []
  for (const headers of FORGED) {
    const plain = [paid, ...pages]
    // Every spelling once, and the first ones with each forged header.
    const few = headers === FORGED[0] && !process.env.FEW_SPELLINGS ? Number.POSITIVE_INFINITY : 4
    for (const path of [...plain, ...plain.flatMap((each) => spellingsOf(each).slice(0, few))]) {
      for (const method of ['GET', 'HEAD', 'POST']) {
        const query = path.includes('?') || path.includes('#') ? '' : '?business=bakery&business_uid=bakery'
        const { status, body } = await send(path + query, { method, headers: { ...headers, ...visitor } })
        const isIn = method === 'HEAD' ? pages.length === 0 && status === 200 : body.includes('visitors')
        if (isIn) found.push(`${method} ${path}`)
      }
    }
  }
  return [...new Set(found)]
}

/** One request, by default on a connection of its own, with its path as it is written. Status 0: no reply. */
function exchange(port, path, { method = 'GET', headers = {}, body, agent = false } = {}) {
  return new Promise((resolve) => {
    const req = request({ host: '127.0.0.1', port, path, method, headers, agent }, (res) => {
      const chunks = []
      res.on('data', (chunk) => chunks.push(chunk))
      res.once('close', () =>
        resolve({ status: res.statusCode, headers: res.headers, body: Buffer.concat(chunks).toString() }),
      )
    })
    req.setTimeout(120_000, () => req.destroy())
    req.once('error', () => resolve({ status: 0, headers: {}, body: '' }))
    req.end(body)
  })
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}
