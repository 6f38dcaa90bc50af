import { brokenIn, DEPENDS_ON, inWords, jsonLines, type Part, type Step, seedOf, sumOf } from '../part.js'

const MANY = ['--import', 'tsx', '__tests__/support/world/many.ts']

/** What `many.ts --json` prints for one kind of world. */
interface Worlds {
  kind: string
  made: number
  days: number
  broken: string[]
  /** By promise: how often it was checked, and how often not, by reason. */
  tally: Record<string, { made: number; skipped: Record<string, number> }>
}

/** So large a part of the checks of one promise may be skipped in all worlds of a step. Each world has bounds of its own. */
const SKIPPED_AT_MOST = 0.4

/** Worlds of seconds, in which several instances meet faults of the network, the store and the platform. */
export const SECONDS: Part = {
  name: 'worlds',
  title: 'Simulated worlds of instances',
  dependsOn: DEPENDS_ON.worlds,
  example: '123',
  steps: (scope) =>
    scope === 'short' ? [worlds(1, 100)] : Array.from({ length: 40 }, (_, i) => worlds(1 + i * 250, 250)),
  row: (records) => ({
    amount: `${inWords(sumOf(records, 'worlds'))} worlds`,
    result: resultOf(records),
  }),
  repeat: (seed) => [...MANY, '--seed', String(seedOf(seed))],
}

/** Worlds of months: operators' mistakes, failing disks and outages, and half a year without any fault. */
export const MONTHS: Part = {
  name: 'months',
  title: 'Simulated months of an app',
  dependsOn: DEPENDS_ON.worlds,
  example: '7',
  steps: (scope) =>
    scope === 'short'
      ? [worlds(1, 2, '--months')]
      : Array.from({ length: 30 }, (_, i) => worlds(1 + i * 2, 2, '--months')),
  row: (records) => ({
    amount: `${inWords(sumOf(records, 'worlds'))} worlds, ${inWords(sumOf(records, 'days'))} days`,
    result: resultOf(records),
  }),
  // One world of each kind.
  repeat: (seed) => [...MANY, '1', '--months', '--from', String(seedOf(seed))],
}

function worlds(from: number, count: number, ...kind: string[]): Step {
  return {
    id: `${from}-${from + count - 1}`,
    command: [...MANY, String(count), '--from', String(from), '--json', ...kind],
    outcome(run) {
      const kinds = jsonLines<Worlds>(run.stdout)
      // A line follows the last world of its kind, so a process that has ended early leaves one out.
      if (kinds.length < (kind.includes('--months') ? 2 : 1))
        throw new Error(run.stderr.trim() || `exit code ${run.code}`)
      const counts = kinds.flatMap(({ tally }) => Object.entries(tally))
      const checked = counts.reduce((sum, [, { made }]) => sum + made, 0)
      const skips = counts.flatMap(([, { skipped }]) => Object.entries(skipped))
      const byReason: Record<string, number> = {}
      for (const [why, count] of skips)
        byReason[`skipped, ${why}`] = (byReason[`skipped, ${why}`] ?? 0) + count
      return {
        figures: {
          worlds: kinds.reduce((sum, { made }) => sum + made, 0),
          days: kinds.reduce((sum, { days }) => sum + days, 0),
          checked,
          skipped: skips.reduce((sum, [, count]) => sum + count, 0),
          ...byReason,
        },
        broken: brokenIn(run, [...kinds.flatMap(({ broken }) => broken), ...kinds.flatMap(skippedTooOften)]),
      }
    },
  }
}

function skippedTooOften({ kind, tally }: Worlds): string[] {
  return Object.entries(tally).flatMap(([promised, { made, skipped }]) => {
    const count = Object.values(skipped).reduce((sum, each) => sum + each, 0)
    return count > SKIPPED_AT_MOST * (made + count)
      ? [`${kind}: of the checks of '${promised}' ${count} were skipped, and ${made} made`]
      : []
  })
}

/** A world, or a step, in which too many checks were skipped is broken: skips are within bounds if none is. */
function resultOf(records: Parameters<Part['row']>[0]): string {
  const broken = records.reduce((sum, each) => sum + each.broken.length, 0)
  const [checked, skipped] = [sumOf(records, 'checked'), sumOf(records, 'skipped')]
  return `${broken} broken; ${inWords(skipped)} of ${inWords(checked + skipped)} checks skipped${broken === 0 ? ', within bounds' : ''}`
}
