/** Runs some worlds in a process of its own: `--require load-typescript.cjs --eval "require('./worlds.ts')" '{"kind": …}'`. */
import '../months/disk.js'
import '../simulation/quick-construction.js'
import { type Habit, liveCalmly } from '../months/calm.js'
import { type FaultName, faultsOf } from '../months/faults.js'
import { liveThrough } from '../months/world.js'
import { type LifeName, live } from '../second-oracle/lives/lives.js'
import { simulate } from '../simulation/run.js'
import { createDatabase, type Database } from './database.js'
import type { Broken, Tally } from './promises.js'

export interface WorldsRequest {
  kind: keyof typeof KINDS
  from: number
  count: number
  /** The difference between one seed and the next. */
  step: number
  withTrace: boolean
  /** Names of faults of months, separated by commas. Without them the seed chooses. */
  faults: string | undefined
  /** The length of a world without faults. */
  days: string | undefined
  /** The habit of an app without faults. Without it the seed chooses. */
  calm: string | undefined
  /** The number of instances of such an app. */
  instances: string | undefined
  /** The name of a short life of the second oracle. */
  life: string | undefined
}

/** The result of a world; `broken` names the first broken promise. */
export interface WorldReport {
  broken: string | undefined
  command: string
  /** How long it lasted, in the app's time. */
  days: number
  tally: Tally
  /** All events of the world. */
  trace?: readonly string[]
}

interface Lived {
  broken: readonly Broken[]
  command: string
  trace: readonly string[]
  tally: Tally
  days?: number
}

let database: Promise<Database> | undefined
const numberIn = (text: string | undefined) => (text === undefined ? undefined : Number(text))

const KINDS = {
  async 'seconds of many instances'(seed: number) {
    database ??= createDatabase()
    const { profile, trace, log: _, ...lived } = await simulate(seed, await database)
    return { ...lived, trace: [JSON.stringify(profile), ...trace] }
  },
  async 'a short life'(_seed: number, { life }: WorldsRequest) {
    database ??= createDatabase()
    const found = await live(life as LifeName, await database)
    const broken = found.map(({ heading, message }) => ({
      ...{ promised: 'documented' as const, ids: [] },
      message: `${heading}: ${message}`,
    }))
    return { broken, command: `npm run simulate -- --life ${life}`, trace: [], tally: {} }
  },
  'weeks with faults': (seed: number, { faults }: WorldsRequest) =>
    liveThrough(seed, faults ? (faults.split(',') as FaultName[]) : faultsOf(seed)),
  'months without any fault': (seed: number, { days, calm, instances }: WorldsRequest) =>
    liveCalmly(seed, {
      days: numberIn(days),
      habit: calm as Habit | undefined,
      instances: numberIn(instances),
    }),
}

async function run(request: WorldsRequest) {
  const { kind, from, count, step, withTrace } = request
  for (let made = 0; made < count; made++) {
    const lived: Promise<Lived> = KINDS[kind](from + made * step, request)
    const { broken, trace, tally, command, days = 0 } = await lived.catch(abandoned)
    const sentences = broken.map(({ promised, message }) => `${promised}: ${message}`)
    const report: WorldReport = { broken: sentences[0], command, days, tally }
    if (withTrace) report.trace = [...trace, ...sentences]
    process.stdout.write(`${JSON.stringify(report)}\n`)
  }
  await (await database)?.close()
}

/** A world that could not go on counts as broken; the message names its command. */
function abandoned(error: unknown): Lived {
  const message = error instanceof Error ? String(error.stack) : String(error)
  return {
    broken: [{ promised: 'ended', message, ids: [] }],
    trace: [],
    tally: {},
    command: message.split('\n')[0] as string,
  }
}

void run(JSON.parse(process.argv[1] as string) as WorldsRequest)
