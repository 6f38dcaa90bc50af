import { createPlatform, OUTAGES, type Subscription } from '../platform/platform.js'
import { serve } from '../scene.js'
import { CLIENT, OUR_ITEM } from '../settings.js'
import type { Random } from '../world/random.js'
import { now, overlaps, realTime, type Window } from './clock.js'

/** A pause of 30 s would outlast the calm. */
const FAULTS = { ...OUTAGES, '429': { ...OUTAGES['429'], retryAfter: '1' } }

/** How the platform fails now: as a whole, for a part of the calls, slowly, or by ending its tokens. */
export type Outage = keyof typeof OUTAGES | 'some fail' | 'slow' | 'tokens end'
export const OUTAGES_OF_CHAOS: readonly Outage[] = [
  '503',
  'hang',
  '429',
  'reset',
  'slow',
  'some fail',
  'tokens end',
]

/** The platform over HTTP, in real time. It remembers when each business was allowed to use the app. */
export async function startPlatform(random: Random, onChange: (changed: Subscription) => void) {
  const allowed = new Map<string, Window[]>()
  /** When a read last showed a subscription, or a refused token ended the reads of a business. */
  const readAt = new Map<string, number>()
  let outage: Outage | undefined
  let reads = 0

  const platform = createPlatform({
    ...{ clock: realTime, clientSecret: CLIENT.clientSecret },
    faultOf({ kind, business }) {
      if (kind === 'read') reads++
      if (outage === 'some fail' && random.chance(0.5)) return FAULTS.reset
      if (outage === 'tokens end' && kind === 'read') {
        outage = undefined
        return 'unauthorized'
      }
      const fault = FAULTS[outage as keyof typeof OUTAGES]
      if (!fault && kind === 'token' && platform.isRefused(business)) readAt.set(business, Date.now())
      return fault
    },
    // Slow reads make it likely that events arrive while their subscription is being read.
    latencyMs({ kind }) {
      const usual = kind === 'read' && random.chance(0.5) ? random.between(20, 400) : 0
      return [outage === 'slow' ? random.between(100, 1_500) : usual, 0]
    },
    onShown: ({ uid, at }) => void readAt.set(uid, at),
  })

  const url = await serve(async ({ url = '', headers: { authorization = '' } }, res) => {
    try {
      const { status, headers, body } = await platform.fetch(`http://platform${url}`, {
        headers: { authorization },
      })
      for (const name of ['content-type', 'retry-after']) res.setHeader(name, headers.get(name) ?? '')
      res.writeHead(status).end((await body?.getReader().read())?.value)
    } catch {
      res.destroy()
    }
  })

  return {
    ...platform,
    baseUrl: url,
    authUrl: url,
    begin(next: Outage) {
      outage = next
    },
    end() {
      outage = undefined
    },
    set(...given: Parameters<typeof platform.set>) {
      const changed = platform.set(...given)
      const windows = allowed.get(changed.business) ?? []
      allowed.set(changed.business, windows)
      const last = windows.at(-1)
      const isOpen = last?.to === Number.POSITIVE_INFINITY
      if (!platform.isPaying(changed.business)) {
        if (last && isOpen) last.to = now()
      } else if (!isOpen) windows.push({ from: now(), to: Number.POSITIVE_INFINITY })
      onChange(changed)
      return changed
    },
    isOurs: (uid: string) => platform.subscriptions.get(uid)?.item === OUR_ITEM,
    wasAllowedWithin: (business: string, span: Window) =>
      (allowed.get(business) ?? []).some((window) => overlaps(window, span)),
    /** When the business was last allowed to use the app. Infinity: it still is. -Infinity: it never was. */
    lastAllowed: (business: string) => allowed.get(business)?.at(-1)?.to ?? Number.NEGATIVE_INFINITY,
    allowedWindows: (business: string): readonly Window[] => allowed.get(business) ?? [],
    lastReadAt: (...names: string[]) => Math.max(0, ...names.map((name) => readAt.get(name) ?? 0)),
    reads: () => reads,
  }
}

export type Platform = Awaited<ReturnType<typeof startPlatform>>
