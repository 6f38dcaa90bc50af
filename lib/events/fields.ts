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
 * Returns whether a name repeats one of these, in any letters: has one as words (`settings_b1` and `settingsB1` have `b1`), has
 * one of at least four characters in it (`myacme` has `acme`), or, of `secrets` only, has a long part of one as a word (`alphabiz`
 * of `alphabiz-eu`).
 * Names are short: each of their parts is looked up.
 */
export function createRepeats(identifiers: Iterable<string>, secrets: readonly string[] = []) {
  const longSecrets = secrets.map((secret) => secret.toLowerCase())
  const hidden = new Set(longSecrets)
  for (const each of identifiers) hidden.add(each.toLowerCase())

  return (name: string): boolean => {
    const borders = [...name.matchAll(WORD_BORDER)].map(({ index }) => index)
    const text = name.toLowerCase()
    for (let start = 0; start < text.length; start++) {
      for (let end = start + 1; end <= text.length; end++) {
        const areWords = borders.includes(start) && borders.includes(end)
        const part = text.slice(start, end)
        if ((areWords || part.length >= FOUND_WITHIN) && hidden.has(part)) return true
        if (areWords && part.length >= LONG_PART && longSecrets.some((secret) => secret.includes(part)))
          return true
      }
    }
    return false
  }
}

/** The begin and the end of words in `settings_b1`, `settingsB1` and `B1Settings`. */
const WORD_BORDER = /^|$|(?<=[\W_])|(?=[\W_])|(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g
/** Shorter identifiers are found in many words. */
const FOUND_WITHIN = 4
/** Shorter parts of secrets are words. */
const LONG_PART = 6

/** Whether a text is a word as names of events and states are: `purchased`, and not an identifier or a person's data. */
export function isWord(text: string): boolean {
  return /^[A-Za-z_]{1,40}$/.test(text)
}
