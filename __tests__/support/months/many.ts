/** Runs some worlds of months in a process of its own; see `npm run simulate -- --months`. */
import './disk.js'
import { createRandom } from '../simulation/random.js'
import { FAULT_NAMES, type FaultName } from './faults.js'
import { liveThrough } from './world.js'

export interface MonthsRequest {
  from: number
  count: number
  /** The difference between one seed and the next. */
  step: number
  withTrace: boolean
  /** Names of faults, separated by commas. Without them the seed chooses. */
  faults: string | undefined
}

/** The faults of a month, in the order that the seed gives. */
export function faultsOf(seed: number): FaultName[] {
  const random = createRandom(seed)
  const left = [...FAULT_NAMES]
  return Array.from(
    { length: random.between(1, 5) },
    () => left.splice(random.between(0, left.length - 1), 1)[0] as FaultName,
  )
}

async function run({ from, count, step, withTrace, faults }: MonthsRequest) {
  for (let made = 0; made < count; made++) {
    const seed = from + made * step
    const names = faults ? (faults.split(',') as FaultName[]) : faultsOf(seed)
    const { broken, trace } = await liveThrough(seed, names)
    const [first] = broken
    const report = {
      seed,
      broken: first && `${names.join()}: ${first.invariant}: ${first.message}`,
      ...(withTrace
        ? { trace: [...trace, ...broken.map((each) => `${each.invariant}: ${each.message}`)] }
        : {}),
    }
    process.stdout.write(`${JSON.stringify(report)}\n`)
  }
}

if (process.argv[1]?.startsWith('{')) void run(JSON.parse(process.argv[1]) as MonthsRequest)
