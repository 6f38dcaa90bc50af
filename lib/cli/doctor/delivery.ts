import type { Marketplace } from '../../index.js'
import { oneLine } from '../terminal/layout.js'
import { NEEDED_EVENTS } from '../terminal/needed-events.js'
import { type Posted, postDelivery } from '../terminal/post.js'
import { type Finding, failed, ok, skipped, warning } from './report.js'

/** The delivery of the test is not a known event, so that no event handler gets it and no read follows. */
const DELIVERY = { entity_name: 'marketplace-webhooks', event_type: 'doctor', data: {} }

/** Sends one delivery to the public address, and looks it up in the database of the settings. */
export async function checkDelivery(options: {
  publicUrl: string
  /** Builds the address with the delivery secret. */
  targetUrl(mountUrl: string): string
  /** With an open database; undefined if it could not be opened. */
  marketplace: Marketplace | undefined
}): Promise<Finding> {
  const { publicUrl, targetUrl, marketplace } = options
  const posted = await postDelivery(targetUrl(publicUrl), DELIVERY)
  const fault = faultOf(posted)
  if (fault) return fault
  const { ms, body } = posted as Posted & { kind: 'answered' }
  const id = oneLine(String(body.id))
  if (!marketplace)
    return ok(
      `the app accepted it in ${ms} ms as ${id}; its database was not checked, because it cannot be opened`,
    )
  if (!(await marketplace.journal.get(id)))
    return failed(
      `the app accepted it as ${id}, but the database of these settings does not contain it`,
      'The app at that address uses another database: compare its store with MARKETPLACE_STORE.',
    )
  if (new URL(publicUrl).protocol === 'http:')
    return warning(
      `the app accepted it in ${ms} ms, but over http, which does not encrypt the delivery secret`,
      'Serve the app over https, and register that address.',
    )
  return ok(`the app accepted it in ${ms} ms, and the database contains it as ${id} (unrecognised)`)
}

function faultOf(posted: Posted): Finding | undefined {
  if (posted.kind === 'failed')
    return failed(
      posted.why,
      'Check that the app runs, and that the address reaches it from outside (DNS, proxy, firewall).',
    )
  const { status, body } = posted
  const code = typeof body.code === 'string' ? ` ${oneLine(body.code)}` : ''
  if (status === 404)
    return failed(
      'the reply was 404: the address is not the mount address of the router, or the delivery secret is wrong',
      'Compare the path with the path of app.use, and DELIVERY_SECRETS with the secrets of the running app.',
    )
  if (status >= 300 && status < 400)
    return failed(
      `the reply was ${status}, a redirect`,
      'Use the address after the redirect: the platform may not follow redirects.',
    )
  if (status >= 500 && !code)
    return failed(
      `the reply was ${status}, but not from this package`,
      'A proxy or another program answers at this address: check the address, and that the proxy reaches the app.',
    )
  if (status >= 500)
    return failed(
      `the reply was ${status}${code}`,
      'See the log and the health() of the app, and check that it can write to its database.',
    )
  if (status !== 200)
    return failed(
      `the reply was ${status}${code}`,
      'A proxy or firewall between the address and the app refuses the request: look at its settings.',
    )
  if (body.received === true && typeof body.id === 'string') return undefined
  return failed(
    'the reply was 200, but not from this package',
    'Another program serves this address: check the address and the proxy.',
  )
}

/** Which events have arrived so far. The platform has no call that lists registrations. */
export async function checkRegistrations(marketplace: Marketplace): Promise<Finding> {
  const { events } = await marketplace.webhooks.check()
  const silent = events.filter(({ event, count }) => count === 0 && isNeeded(event))
  if (silent.length === NEEDED_EVENTS.length)
    return skipped('no event has arrived so far', 'Register the address: marketplace-webhooks register')
  if (silent.length > 0)
    return warning(
      `these events have not arrived so far: ${silent.map(({ event }) => event).join(', ')}`,
      'They may not be registered, or may not have happened yet. Register them again: it does no harm.',
    )
  return ok(`each of the ${NEEDED_EVENTS.length} events that the gate needs has arrived`)
}

const isNeeded = (event: string) => (NEEDED_EVENTS as readonly string[]).includes(event)
