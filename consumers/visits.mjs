/** Visits an app over HTTP: as the platform, as businesses that have bought or not, and as visitors who cheat. */
import { request } from 'node:http'
import { sampleDelivery } from 'marketplace-webhooks/testing'
import { platform, secret } from './scene.mjs'
import { FORGED, spellingsOf } from './spellings.cjs'

/**
 * The route of the app that signs a business in is `/sign-in/<business>`. Prints what it has seen as JSON, and ends.
 *
 * @param {import('marketplace-webhooks').Marketplace} marketplace
 * @param {number} port
 * @param {{ paid?: string, pages?: string[] }} where the route of the report, and pages that show it too
 */
export async function visitApp(marketplace, port, { paid = '/reports', pages = [] } = {}) {
  const send = (path, options) => exchange(port, path, options)
  const mount = '/webhooks/marketplace'
  const deliver = async (key) =>
    send(`${mount}/${key}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(sampleDelivery('application/installed')),
    })

  await platform.registerAll(marketplace.targetUrl(`http://127.0.0.1:${port}${mount}`))
  platform.purchase({ business_uid: 'bakery', payment: 'succeeded' })
  await platform.settled()
  await marketplace.idle()
  const [bakery, salon] = [await signIn('bakery'), await signIn('salon')]

  const seen = {
    delivery: (await deliver(secret)).status,
    'wrong secret': (await deliver('x'.repeat(24))).status,
    'has bought': await visit(paid, bakery),
    'has not bought': await visit(paid, salon),
    'not signed in': await visit(paid, {}),
    'not signed in, with the business in a header and the query': await visit(
      `${paid}?business=bakery`,
      FORGED[1],
    ),
    'pages for who has bought': await shown(pages, bakery),
    'let in by another spelling': [...(await letIn(salon)), ...(await letIn({}))],
    'deliveries of the purchase': [...new Set(platform.deliveries.map(({ status }) => status))].join(),
  }
  console.log(JSON.stringify(seen))
  process.exit(0)

  async function signIn(business) {
    // Some frameworks set the cookie of a session only over TLS.
    const { headers } = await send(`/sign-in/${business}`, { headers: { 'x-forwarded-proto': 'https' } })
    return { cookie: (headers['set-cookie'] ?? []).map((each) => each.split(';')[0]).join('; ') }
  }

  async function visit(path, headers) {
    const { status, body } = await send(path, { headers })
    return `${status}${body.includes('visitors') ? ' with the report' : ''}`
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
}

/** One request on a connection of its own, with its path as it is written. Status 0: no reply. */
function exchange(port, path, { method = 'GET', headers = {}, body } = {}) {
  return new Promise((resolve) => {
    const req = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, (res) => {
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
