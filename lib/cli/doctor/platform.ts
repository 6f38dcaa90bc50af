import type { Decision, Marketplace, MarketplaceOptions } from '../../index.js'
import { FIXES, stopFor } from '../terminal/exit-codes.js'
import { oneLine } from '../terminal/layout.js'
import { type Finding, failed, ok, skipped, warning } from './report.js'

/** The largest harmless difference of the clocks: with a larger one, the logs of the two sides cannot be compared. */
const MAX_SKEW_S = 30

/** A `fetch` that measures the difference between the platform's clock and ours, by the `Date` of the replies. */
export function createSkewWatch(given: typeof globalThis.fetch | undefined) {
  const send = given ?? globalThis.fetch
  let skewMs: number | undefined

  const watched: typeof globalThis.fetch = async (...request) => {
    const began = Date.now()
    const reply = await send(...request)
    const date = Date.parse(reply.headers.get('date') ?? '')
    // A Date has whole seconds, and the platform wrote it between our sending and receiving.
    const ours = (began + Date.now()) / 2
    if (!Number.isNaN(date)) skewMs = date + 500 - ours
    return reply
  }

  return {
    fetch: watched,
    finding(): Finding {
      if (skewMs === undefined)
        return skipped('the platform has not answered, or its replies have no Date header')
      const seconds = Math.round(skewMs / 1_000)
      const text = `the platform's clock is ${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead of'} this machine's`
      if (Math.abs(seconds) <= MAX_SKEW_S) return ok(text)
      return failed(text, 'Synchronise the clock of this machine by NTP (timedatectl, chronyc tracking).')
    },
  }
}

/**
 * Whether both addresses of the platform answer; a warning for a reply of 500 or more. With another `baseUrl` the database
 * seems to be that of another app, so this check comes first.
 */
export async function checkHosts({
  fetch: send = globalThis.fetch,
  ...addresses
}: MarketplaceOptions['platform']): Promise<Finding> {
  const silent: string[] = []
  const broken: string[] = []
  for (const [option, name] of Object.entries(ADDRESSES)) {
    const address = addresses[option as keyof typeof ADDRESSES]
    try {
      const reply = await send(address, { redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) })
      reply.body?.cancel().catch(() => {})
      if (reply.status >= 500) broken.push(`${new URL(address).host} of ${name} answers with ${reply.status}`)
    } catch (error) {
      silent.push(`${new URL(address).host} of ${name} does not answer (${codeOf(error)})`)
    }
  }
  if (silent.length > 0) return failed(silent.join('; '), FIXES.platform_unreachable)
  if (broken.length > 0) return warning(broken.join('; '), 'Try again later, or check the address.')
  return ok('both addresses of the platform answer')
}

const ADDRESSES = { baseUrl: 'MARKETPLACE_BASE_URL', authUrl: 'MARKETPLACE_AUTH_URL' } as const
const TIMEOUT_MS = 10_000

/** A code of the system, such as ENOTFOUND; never the message, which a fetch of the app makes. */
function codeOf(error: unknown): string {
  const {
    name,
    cause,
    code = (cause as { code?: unknown } | undefined)?.code,
  } = (error ?? {}) as {
    name?: string
    cause?: unknown
    code?: unknown
  }
  if (name === 'TimeoutError') return `nothing within ${TIMEOUT_MS / 1_000} s`
  return typeof code === 'string' && /^[A-Z_0-9]+$/.test(code) ? code : 'the connection failed'
}

/** Fetches a token for the business, which proves the address, the credentials and the install. */
export async function checkToken(marketplace: Marketplace, business: string): Promise<Finding> {
  await marketplace.fetchAppToken(business)
  return ok(`the platform issued a token for ${business}`)
}

/**
 * Reads one subscription with a separate marketplace whose database is in memory, so the app's queue is not touched.
 */
export async function checkRead(
  createProbe: (replaced: Partial<MarketplaceOptions>) => Promise<Marketplace>,
  named: { subscription_uid: string; business_uid: string },
): Promise<Finding> {
  const probe = await createProbe({ store: 'sqlite::memory:', adoptStore: false, worker: true })
  try {
    await probe.start()
  } catch (error) {
    return skipped(`the trial read needs a database in memory, which did not open: ${stopFor(error).message}`)
  }
  const { subscription_uid: subscriptionUid, business_uid: businessUid } = named
  await probe.subscriptions.track({ subscriptionUid, businessUid })
  return findingOf(await probe.businesses.refresh(businessUid), subscriptionUid)
}

function findingOf({ subscriptions }: Decision, uid: string): Finding {
  const verdict = subscriptions.find(({ subscription_uid }) => subscription_uid === uid)
  if (verdict?.asOf && verdict.reason === 'other_app')
    return warning(
      `the platform shows ${uid}, and its item ${oneLine(verdict.purchasable_uid ?? '')} is none of the app's: it gives no access`,
      'If it is an item of the app, add it to MARKETPLACE_PURCHASABLE_UID.',
    )
  if (verdict?.asOf)
    return ok(
      `the platform shows ${uid}: ${[...new Set([verdict.purchase_state ?? 'without a state', verdict.reason])].join(', ')}`,
    )
  const code = verdict?.failure
  if (!code) return failed(`the read of ${uid} did not finish in time`, FIXES.platform_timeout)
  return failed(`the read of ${uid} failed: ${code}`, FIXES[code as keyof typeof FIXES])
}
