import { RECORD_FIELDS, UPDATED_EVENT_FIELDS } from '../base/record.js'
import type { EventName } from './registry.js'
import { application, appSubscription, notice } from './schemas.js'

const NOTICE = Object.keys(notice.shape)
const APP_SUBSCRIPTION = Object.keys(appSubscription.shape)
const APPLICATION = Object.keys(application.shape)

/** The fields of `data` that the interface document gives each event (its table "Events"). Any other one is a fact to report. */
export const DOCUMENTED_FIELDS: Readonly<Record<EventName, readonly string[]>> = {
  'purchasable_subscription/create': NOTICE,
  'purchasable_subscription/updated': [...Object.keys(RECORD_FIELDS), ...Object.keys(UPDATED_EVENT_FIELDS)],
  'purchasable_subscription/update': NOTICE,
  'app_subscription/installed': APP_SUBSCRIPTION,
  'app_subscription/uninstalled': APP_SUBSCRIPTION,
  'application/installed': APPLICATION,
  'application/uninstalled': APPLICATION,
}

const KNOWN = new Set(['entity_name', 'event_type', 'data', ...Object.values(DOCUMENTED_FIELDS).flat()])

/**
 * Whether a name in JSON may be shown: a documented one, or one that looks like the name of a field. An object may also have
 * identifiers as its names, so digits are allowed at the end only, and `isValue` says whether a name is a value elsewhere.
 */
export function isFieldName(name: string, isValue: (name: string) => boolean): boolean {
  return KNOWN.has(name) || (/^[A-Za-z_]{1,38}\d{0,2}$/.test(name) && !isValue(name))
}

/**
 * Whether a name is one of these values, or has one of them as a word: `settings_acme` and `settingsAcme` have `acme`. The
 * values are in small letters.
 */
export function hasValue(name: string, values: Pick<ReadonlySet<string>, 'has'>): boolean {
  if (values.has(name.toLowerCase())) return true
  return name.split(/[\W_]+|(?<=[a-z])(?=[A-Z])/).some((word) => values.has(word.toLowerCase()))
}

/**
 * Whether a name repeats one of these secrets or identifiers, in capitals or not: it is one, has a long one in it, or is a
 * long part of one.
 */
export function repeatsAny(name: string, secrets: readonly string[]): boolean {
  const text = name.toLowerCase()
  return secrets.some((each) => {
    const secret = each.toLowerCase()
    const [short, long] = text.length < secret.length ? [text, secret] : [secret, text]
    return short === long || (short.length >= LONG_PART && long.includes(short))
  })
}

/** Shorter parts are found in many words. */
const LONG_PART = 6

/** Whether a text is a word as names of events and states are: `purchased`, and not an identifier or a person's data. */
export function isWord(text: string): boolean {
  return /^[A-Za-z_]{1,40}$/.test(text)
}
