import type { Finding } from './audit.js'
import type { JournalRow } from './books.js'
import { callsOf, describeCall } from './calls.js'
import type { Life } from './instances.js'
import type { Trouble } from './monkey.js'

/** The maximum number of rows in a report. */
const SHOWN = 8

/** The violation, with its rows and calls and the faults of that time. '' when there is no violation. */
export function evidenceFor(options: {
  findings: readonly Finding[]
  seed: number
  journal: readonly JournalRow[]
  lives: readonly Life[]
  troubles: readonly Trouble[]
  began: number
}): string {
  const { findings, seed, journal, lives, troubles, began } = options
  if (findings.length === 0) return ''
  const ids = new Set(findings.slice(0, SHOWN).flatMap((finding) => finding.ids))
  const keys = new Set(journal.filter(({ id }) => ids.has(id)).map(({ key }) => key))
  const words = new Set(findings.slice(0, SHOWN).flatMap(({ text }) => text.split(/[^\w-]+/)))
  const rows = journal.filter(
    ({ id, key, business_uid: business, subscription_uid: uid }) =>
      ids.has(id) || (keys.has(key) && ids.size < SHOWN) || words.has(String(uid ?? business)),
  )
  const calls = callsOf(lives).filter(({ id }) => ids.has(id))
  return [
    `CHAOS_SEED=${seed} repeats the same schedule, as far as real time allows. The run began at ${Math.round(began)}.`,
    `${findings.length} findings:`,
    ...findings.slice(0, SHOWN).map(({ promise, text }) => `- ${promise}: ${text}`),
    'journal:',
    ...rows.slice(-40).map((row) => `  ${JSON.stringify({ ...row, payload: gist(row) })}`),
    'calls:',
    ...calls.map((call) => `  ${describeCall(call)}`),
    'faults:',
    ...troubles.map(
      ({ what, how, target, from, to }) =>
        `  ${Math.round(from)}-${Math.round(to)} ${what}${how && ` (${how})`} of ${typeof target === 'number' ? `instance ${target}` : target}`,
    ),
  ].join('\n')
}

/** The short form of a row: the content of a change, the time of an install, or the name of any other event. */
function gist({ kind, payload }: JournalRow): string {
  if (kind !== 'change') return JSON.parse(payload).data?.event_time ?? ''
  const { from, to, cause, record } = JSON.parse(payload)
  return `${from} -> ${to}, cause ${cause}, updated_at ${record?.updated_at}`
}
