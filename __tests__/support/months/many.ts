/** Runs some worlds of months in a process of its own; see `npm run simulate -- --months`. */
import './disk.js'
import { createRandom } from '../simulation/random.js'
import { type Habit, liveCalmly } from './calm.js'
import { FAULT_NAMES, type FaultName } from './faults.js'
import type { Tally } from './invariants.js'
import { liveThrough, type WorldResult } from './world.js'

export interface MonthsRequest {
  kind: keyof typeof MONTHS
  from: number
  count: number
  /** The difference between one seed and the next. */
  step: number
  withTrace: boolean
  /** Names of faults, separated by commas. Without them the seed chooses. */
  faults: string | undefined
  /** The length of a world without faults. */
  days: string | undefined
  /** The habit of an app without faults. Without it the seed chooses. */
  calm: string | undefined
  /** The number of instances of such an app. */
  instances: string | undefined
}

const MONTHS = {
  'weeks with faults': (seed: number, { faults }: MonthsRequest) =>
    liveThrough(seed, faults ? (faults.split(',') as FaultName[]) : faultsOf(seed)),
  'months without any fault': (seed: number, { days, calm, instances }: MonthsRequest) =>
    liveCalmly(seed, {
      days: numberIn(days),
      habit: calm as Habit | undefined,
      instances: numberIn(instances),
    }),
}

const numberIn = (text: string | undefined) => (text === undefined ? undefined : Number(text))

/** The faults of a month, in the order that the seed gives. */
export function faultsOf(seed: number): FaultName[] {
  const random = createRandom(seed)
  const left = [...FAULT_NAMES]
  return Array.from(
    { length: random.between(1, 5) },
    () => left.splice(random.between(0, left.length - 1), 1)[0] as FaultName,
  )
}

async function run(request: MonthsRequest) {
  const { kind, from, count, step, withTrace } = request
  for (let made = 0; made < count; made++) {
    const seed = from + made * step
    const lived: Promise<Lived> = MONTHS[kind](seed, request)
    const { broken, trace, tally, command } = await lived.catch(abandoned)
    const sentences = broken.map(({ invariant, message }) => `${invariant}: ${message}`)
    const report: MonthsReport = {
      ...{ seed, broken: sentences[0], command, tally },
      ...(withTrace ? { trace: [...trace, ...sentences] } : {}),
    }
    process.stdout.write(`${JSON.stringify(report)}\n`)
  }
}

type Lived = Pick<WorldResult, 'broken' | 'trace' | 'tally' | 'command'>

/** A world that could not go on counts as broken; the message names its command. */
function abandoned(error: unknown): Lived {
  const message = error instanceof Error ? String(error.stack) : String(error)
  return {
    broken: [{ invariant: 'ended', message }],
    trace: [],
    tally: {},
    command: message.split('\n')[0] as string,
  }
}

/** The result of a world; see `WorldReport`. */
export interface MonthsReport {
  seed: number
  broken: string | undefined
  command: string
  tally: Tally
  trace?: readonly string[]
}

if (process.argv[1]?.startsWith('{')) void run(JSON.parse(process.argv[1]) as MonthsRequest)
