/** Some worlds in a process of their own: `--require tsx/cjs --eval "require('./worlds.ts')" '{"seeds": …}'`. */
import './quick-construction.js'
import { simulate } from './run.js'
import { STORES } from './stores.js'

export interface WorldsRequest {
  store: keyof typeof STORES
  from: number
  count: number
  /** From one seed to the next. */
  step: number
  withTrace: boolean
}

/** A world at its end; `broken` lists the broken promises. */
export interface WorldReport {
  seed: number
  broken: string | undefined
  /** All that happened. */
  trace?: readonly string[]
}

async function run({ store, from, count, step, withTrace }: WorldsRequest) {
  const database = await STORES[store]()
  for (let made = 0; made < count; made++) {
    const { seed, failures, trace, profile } = await simulate(from + made * step, database)
    const report: WorldReport = { seed, broken: failures[0]?.message }
    if (withTrace) report.trace = [JSON.stringify(profile), ...trace]
    process.stdout.write(`${JSON.stringify(report)}\n`)
  }
  await database.close()
}

void run(JSON.parse(process.argv[1] as string) as WorldsRequest)
