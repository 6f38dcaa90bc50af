import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from '@jest/globals'
import type { Decision } from '../../lib/entitlement/decide.js'
import { createRequireEntitlement } from '../../lib/express/require-entitlement.js'
import { onCleanUp } from '../support/clean-up.js'
import { axeViolations, openPage, useBrowser } from '../support/processes/browser.js'
import { DENIED, UNKNOWN } from '../support/receiving/decisions.js'
import { until } from '../support/until.js'

useBrowser()

describe('the pages of a gate in a browser', () => {
  it.each([
    ['without a business', '', DENIED],
    ['without a purchase', 'b-1', DENIED],
    ['without an answer', 'b-1', UNKNOWN],
  ])('work with screen readers: %s', async (_what, business, decision) => {
    const { url } = await serve(decision, business)
    expect(await axeViolations(await openPage(url))).toEqual([])
  })

  it('try again by themselves without an answer, also at an address with a fragment', async () => {
    const { url, paths } = await serve(UNKNOWN, 'b-1')
    const addresses = ['/a', '/b#visitors', '/c?d=1#visitors']
    await Promise.all(addresses.map((address) => openPage(`${url}${address}`)))
    const again = ['/a?', '/b?', '/c?d=1']
    await until('each is loaded again', () => again.every((path) => paths.lastIndexOf(path) > 2))
  })
})

/** A gate in front of a plain server, and the paths for which browsers have asked. */
async function serve(decision: Decision, business: string) {
  const paths: string[] = []
  const guard = createRequireEntitlement({ explain: async () => decision })({
    businessUid: () => business,
    purchaseUrl: '/buy',
  })
  const server = createServer((req, res) => {
    if (req.url === '/favicon.ico') return void res.writeHead(404).end()
    paths.push(req.url as string)
    void guard(req, res, () => void res.end('in'))
  })
  await new Promise<void>((resolve) => server.listen(0, resolve))
  onCleanUp(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://localhost:${(server.address() as AddressInfo).port}`, paths }
}
