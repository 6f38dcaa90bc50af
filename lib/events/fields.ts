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
 * identifiers as its names, so digits are allowed at the end only, and `values` are the texts that stand beside it.
 */
export function isFieldName(name: string, values: { has(text: string): boolean }): boolean {
  return KNOWN.has(name) || (/^[A-Za-z_]{1,38}\d{0,2}$/.test(name) && !values.has(name))
}

/** Whether a text is a word as names of events and states are: `purchased`, and not an identifier or a person's data. */
export function isWord(text: string): boolean {
  return /^[A-Za-z_]{1,40}$/.test(text)
}
