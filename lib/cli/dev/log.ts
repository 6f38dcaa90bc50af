import type { PurchaseChange } from '../../index.js'
import type { Delivery, PlatformRequest, Simulator } from '../../testing/index.js'
import { oneLine } from '../terminal/layout.js'
import type { Output } from '../terminal/output.js'
import { KEYS } from './keys.js'

export type DevLog = ReturnType<typeof createDevLog>

/** The live log: actions of the person, deliveries with their replies, calls to the platform, and changed answers. */
export function createDevLog(out: Output, platform: Pick<Simulator, 'on'>) {
  const { paint } = out

  function line(kind: string, text: string, value: object) {
    const at = new Date().toISOString()
    out.result(
      { at, kind, ...value },
      () => `${paint.dim(at.slice(11, 23))}  ${kind.padEnd(8)}  ${oneLine(text)}`,
    )
  }

  function delivery({ event, status, error, business_uid, subscription_uid }: Delivery) {
    const isGood = status !== undefined && status >= 200 && status < 300
    const end = status === undefined ? (error ?? 'no reply') : String(status)
    const text = `${event} ${business_uid} -> ${(isGood ? paint.good : paint.bad)(end)}`
    line('delivery', text, {
      event,
      status: status ?? null,
      error: error ?? null,
      business_uid,
      subscription_uid: subscription_uid ?? null,
    })
  }

  function request({ endpoint, status, business_uid, subscription_uid, event }: PlatformRequest) {
    const about = subscription_uid ?? event ?? business_uid ?? ''
    const end = status === undefined ? paint.bad('no answer') : String(status)
    line('call', `${endpoint} ${about} -> ${end}`, {
      endpoint,
      status: status ?? null,
      business_uid: business_uid ?? null,
      subscription_uid: subscription_uid ?? null,
      event: event ?? null,
    })
  }

  const stops = [platform.on('delivery', delivery), platform.on('request', request)]

  function keys() {
    if (out.isJson) return
    const shown = Object.entries(KEYS).map(([key, { word }]) => `${paint.bold(key)} ${word}`)
    out.note(shown.join('  '))
  }

  return {
    keys,
    /** Stops the log, so that deliveries cut off by the end are not shown. */
    close() {
      for (const stop of stops) stop()
    },
    you: (text: string) => line('you', text, { text }),
    answer({ business_uid, from, to, entitled }: PurchaseChange) {
      const verdict = entitled ? paint.good('access') : paint.bad('no access')
      line('answer', `${business_uid}: ${from ?? 'none'} -> ${to ?? 'gone'}, ${verdict}`, {
        business_uid,
        from,
        to,
        entitled,
      })
    },
    started(info: {
      baseUrl: string
      authUrl: string
      clientId: string
      purchasableUid: string
      codeName: string
      to: string | undefined
    }) {
      const { baseUrl, authUrl, clientId, purchasableUid, codeName, to } = info
      const text = to
        ? 'The platform delivers to your app.'
        : 'The platform delivers to a built-in receiver. Use --to to deliver to your app.'
      line('started', text, {
        baseUrl,
        authUrl,
      })
      out.note([
        'Settings for your app:',
        `  MARKETPLACE_BASE_URL=${baseUrl}`,
        `  MARKETPLACE_AUTH_URL=${authUrl}`,
        `  MARKETPLACE_CLIENT_ID=${clientId}`,
        '  MARKETPLACE_CLIENT_SECRET=dev-client-secret, unless you have set another one here',
        `  MARKETPLACE_PURCHASABLE_UID=${purchasableUid}`,
        `  MARKETPLACE_CODE_NAME=${codeName}`,
      ])
      keys()
    },
  }
}
