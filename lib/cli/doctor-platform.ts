import type { Decision, Marketplace, MarketplaceOptions } from '../index.js'
import { type Finding, failed, ok, skipped } from './doctor-report.js'
import { MENDS, stopFor } from './exit-codes.js'

/** Further off, and times in the log of one side mislead the reader of the other. */
const MOST_SKEW_S = 30

/** A `fetch` that notes how far the platform's clock is from ours, by the `Date` of its replies. */
export function createSkewWatch(given: typeof globalThis.fetch | undefined) {
  const send = given ?? globalThis.fetch
  let skewMs: number | undefined

  const watched: typeof globalThis.fetch = async (...request) => {
    const began = Date.now()
    const reply = await send(...request)
    const date = Date.parse(reply.headers.get('date') ?? '')
    // A Date has whole seconds, and was written somewhere between sending and receiving.
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
      const words = `the platform's clock is ${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead of'} this machine's`
      if (Math.abs(seconds) <= MOST_SKEW_S) return ok(words)
      return failed(words, 'Have this machine set its clock by NTP (timedatectl, chronyc tracking).')
    },
  }
}

/** A token for the business: the address, the credentials and the install are right. */
export async function checkToken(marketplace: Marketplace, business: string): Promise<Finding> {
  await marketplace.fetchAppToken(business)
  return ok(`the platform gives a token for ${business}`)
}

/**
 * Reads one subscription, through a marketplace of its own with a database in memory: the app's queue is left alone.
 */
export async function checkRead(
  createProbe: (replaced: Partial<MarketplaceOptions>) => Promise<Marketplace>,
  named: { subscription_uid: string; business_uid: string },
): Promise<Finding> {
  const probe = await createProbe({ store: 'sqlite::memory:', adoptStore: false, worker: { pollMs: 50 } })
  try {
    await probe.start()
  } catch (error) {
    return skipped(`a trial read needs a database in memory: ${stopFor(error).message}`)
  }
  await probe.track(named)
  return findingOf(await probe.refresh(named.business_uid), named.subscription_uid)
}

function findingOf({ subscriptions }: Decision, uid: string): Finding {
  const verdict = subscriptions.find(({ subscription_uid }) => subscription_uid === uid)
  if (verdict?.asOf)
    return ok(`${uid} was read: ${verdict.purchase_state ?? 'without a state'}, ${verdict.reason}`)
  const code = verdict?.failure
  if (!code) return failed(`${uid} was not read in time`, MENDS.platform_timeout)
  return failed(`${uid} could not be read: ${code}`, MENDS[code as keyof typeof MENDS])
}
