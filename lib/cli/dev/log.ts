import type { Decision, PurchaseChange } from '../../index.js'
import type { Delivery, PlatformRequest, Simulator } from '../../testing/index.js'
import { oneLine, plural, shellWord } from '../terminal/layout.js'
import type { Output } from '../terminal/output.js'
import { KEYS } from './keys.js'
import type { DevSettings } from './settings.js'

export type DevLog = ReturnType<typeof createDevLog>

/**
 * The live log: actions of the person, deliveries with their replies, calls to the platform, changes, and the answer after
 * each action.
 */
export function createDevLog(out: Output, platform: Pick<Simulator, 'on'>) {
  const { paint } = out
  const verdictOf = (entitled: boolean) => (entitled ? paint.good('access') : paint.bad('no access'))
  let isClosed = false
  const explained = new Set<string>()

  function line(kind: string, text: string, value: object) {
    if (isClosed) return
    const at = new Date().toISOString()
    out.result(
      { at, kind, ...value },
      () => `${paint.dim(at.slice(11, 23))}  ${kind.padEnd(8)}  ${oneLine(text)}`,
    )
  }

  function delivery(sent: Delivery) {
    const { event, status, error, business_uid, subscription_uid } = sent
    const end = status === undefined ? (error ?? 'no reply') : String(status)
    const text = `${event} ${business_uid} -> ${(isAccepted(sent) ? paint.good : paint.bad)(end)}`
    line('delivery', text, {
      event,
      status: status ?? null,
      error: error ?? null,
      business_uid,
      subscription_uid: subscription_uid ?? null,
    })
    const about = ABOUT[end]
    if (about && !explained.has(end)) out.note(about)
    explained.add(end)
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
      isClosed = true
      for (const stop of stops) stop()
    },
    you: (text: string) => line('you', text, { text }),
    change({ business_uid, from, to, entitled }: PurchaseChange) {
      line('change', `${business_uid}: ${from ?? 'none'} -> ${to ?? 'gone'}, ${verdictOf(entitled)}`, {
        ...{ business_uid, from, to, entitled },
      })
    },
    /** What the built-in receiver answers for a business. */
    answer({ business_uid, entitled, known, reason, explanation }: Decision) {
      line('answer', `${business_uid}: ${verdictOf(entitled)}. ${explanation}`, {
        ...{ business_uid, entitled, known, reason },
      })
    },
    /** What the app of the person has taken. Only the app knows its answer. */
    async taken(business_uid: string, deliveries: readonly Delivery[], state: string | null) {
      const accepted = deliveries.filter(isAccepted).length
      const sent =
        deliveries.length === 0
          ? 'nothing was sent'
          : `your app took ${accepted} of ${plural(deliveries.length, 'webhook')}`
      line('answer', `${business_uid}: ${state ?? 'nothing bought'} on the platform, ${sent}`, {
        ...{ business_uid, purchase_state: state, sent: deliveries.length, accepted },
      })
    },
    started(info: {
      baseUrl: string
      authUrl: string
      to: string | undefined
      /** Where the businesses are kept. */
      file: string | undefined
      writeEnv: string | undefined
      settings: DevSettings
    }) {
      const { baseUrl, authUrl, to, file, writeEnv, settings } = info
      const text = to
        ? 'The platform delivers to your app.'
        : 'The platform delivers to a built-in receiver. Use --to to deliver to your app.'
      line('started', text, { baseUrl, authUrl })
      if (file)
        out.note(
          `It keeps the businesses in ${file}. Delete that file, and the database of your app, to begin anew.`,
        )
      if (writeEnv)
        out.note(
          `The settings for your app are in ${writeEnv}: node --env-file=${shellWord(writeEnv)} <your app>`,
        )
      else {
        out.note('Settings for your app:')
        out.note(settings.lines('own', info))
        if (settings.given.length > 0) out.note(`Beside them what you have set: ${settings.given.join(', ')}`)
      }
      keys()
    },
  }
}

const isAccepted = ({ status }: Delivery) => status !== undefined && status >= 200 && status < 300

/** What a reply, or the error in place of one, means. Each is said once. */
const ABOUT: Readonly<Record<string, string>> = {
  404:
    '404 means: at that path your app has no router, or it has another delivery secret. Compare --to with the path of ' +
    'app.use, and start the app with the settings of dev, or give dev those of the app: --env <file>.',
  ECONNREFUSED:
    'ECONNREFUSED means: your app does not run there. Start it, compare --to with its port, and press m, then c: their ' +
    'webhooks name the same purchase.',
}
