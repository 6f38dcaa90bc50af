import type { Broken } from '../world/promises.js'
import { PROMISES } from '../world/promises.js'
import type { EntryRow } from '../world/rows.js'
import { callsOf, describeCall } from './calls.js'
import type { Life } from './instances.js'
import type { Trouble } from './monkey.js'

/** The figures of a run as a small table. */
export function tableOf(figures: Record<string, string | number>): string {
  return Object.entries(figures)
    .map(([name, value]) => `  ${name.padEnd(42)}${String(value).padStart(10)}`)
    .join('\n')
}

/** The broken promises, with their rows and calls and the faults of that time. '' when there is none. */
export function evidenceOf(run: {
  broken: readonly Broken[]
  seed: number
  journal: readonly EntryRow[]
  lives: readonly Life[]
  troubles: readonly Trouble[]
}): string {
  const { broken, seed, journal, lives, troubles } = run
  if (broken.length === 0) return ''
  const ids = new Set(broken.flatMap((each) => each.ids))
  const words = new Set(broken.flatMap(({ message }) => message.split(/[^\w-]+/)))
  const rows = journal.filter(
    ({ id, business_uid: business, subscription_uid: uid }) =>
      ids.has(id) || words.has(String(uid ?? business)),
  )
  const calls = callsOf(lives).filter(({ id }) => ids.has(id))
  return [
    `CHAOS_SEED=${seed} repeats the same schedule, as far as real time allows.`,
    ...broken.map(({ promised, message }) => `- ${PROMISES[promised]}: ${message}`),
    'journal:',
    ...rows.slice(-40).map((row) => `  ${JSON.stringify(row)}`),
    'calls:',
    ...calls.map((call) => `  ${describeCall(call)}`),
    'faults:',
    ...troubles.map(
      ({ from, to, ...rest }) => `  ${Math.round(from)}-${Math.round(to)} ${Object.values(rest).join(' ')}`,
    ),
  ].join('\n')
}
