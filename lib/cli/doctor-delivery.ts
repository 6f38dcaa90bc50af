import type { Marketplace } from '../index.js'
import { type Finding, failed, ok, skipped, warning } from './doctor-report.js'
import { type Posted, postDelivery } from './post.js'

/** Kept as not recognised, so that no handler for an event gets it, and no read follows. */
const DELIVERY = { entity_name: 'marketplace-webhooks', event_type: 'doctor', data: {} }

/** One delivery through the public address: to the app, onto its disk, into the database of the settings. */
export async function checkDelivery(options: {
  publicUrl: string
  /** Builds the address with the delivery secret. */
  targetUrl(mountUrl: string): string
  /** With its database open; undefined where it could not be opened. */
  marketplace: Marketplace | undefined
}): Promise<Finding> {
  const { publicUrl, targetUrl, marketplace } = options
  const posted = await postDelivery(targetUrl(publicUrl), DELIVERY)
  const fault = faultOf(posted)
  if (fault) return fault
  const { ms, body } = posted as Posted & { kind: 'answered' }
  const id = String(body.id)
  if (!marketplace) return ok(`accepted in ${ms} ms as ${id}; which database has it could not be looked up`)
  if (!(await marketplace.journal.get(id)))
    return failed(
      `the app accepted it as ${id}, and the database of these settings does not have it`,
      'The app there uses another database: compare its store with MARKETPLACE_STORE.',
    )
  if (new URL(publicUrl).protocol === 'http:')
    return warning(
      `accepted in ${ms} ms, over http: the delivery secret travels in the open`,
      'Serve the app over https, and register that address.',
    )
  return ok(`accepted in ${ms} ms, and found in the database as ${id} (unrecognised)`)
}

function faultOf(posted: Posted): Finding | undefined {
  if (posted.kind === 'failed')
    return failed(
      posted.why,
      'Is the app running, and does the address lead to it from outside (DNS, proxy, firewall)?',
    )
  const { status, body } = posted
  const code = typeof body.code === 'string' ? ` ${body.code}` : ''
  if (status === 404)
    return failed(
      'it answered 404: not the mount address of the router, or not a delivery secret of the app',
      'Compare the path with the one of app.use, and DELIVERY_SECRETS with those of the running app.',
    )
  if (status >= 300 && status < 400)
    return failed(
      `it answered ${status}, a redirect`,
      'Use the address after the redirect: the platform may not follow.',
    )
  if (status >= 500)
    return failed(
      `it answered ${status}${code}`,
      'See the log of the app, and its health(): can it write to its database?',
    )
  if (status !== 200)
    return failed(
      `it answered ${status}${code}`,
      'Something between the address and the app refuses the request.',
    )
  if (body.received === true && typeof body.id === 'string') return undefined
  return failed('it answered 200, and not as this package does', 'Another program serves this address.')
}

/** Which events have come in so far: the platform cannot be asked what is registered. */
export async function checkRegistrations(marketplace: Marketplace): Promise<Finding> {
  const { events, secretWrong } = await marketplace.webhooks.check()
  const silent = events.filter(({ event, count }) => count === 0 && NEEDED.includes(event))
  const wrong = secretWrong.count > 0 ? ` ${secretWrong.count} had a wrong secret.` : ''
  if (silent.length === NEEDED.length)
    return skipped(
      `no event has come in so far.${wrong}`,
      'Register the address: marketplace-webhooks register',
    )
  if (silent.length > 0)
    return warning(
      `nothing has come in yet of ${silent.map(({ event }) => event).join(', ')}.${wrong}`,
      'It may not be registered, or not have happened: register it again, which does no harm.',
    )
  return ok(`each of the ${NEEDED.length} events that the gate needs has come in.${wrong}`)
}

const NEEDED: readonly string[] = [
  'purchasable_subscription/create',
  'purchasable_subscription/update',
  'application/installed',
  'application/uninstalled',
]
