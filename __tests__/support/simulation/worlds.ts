/** Runs some worlds in a process of its own: `--require tsx/cjs --eval "require('./worlds.ts')" '{"seeds": …}'`. */
import './quick-construction.js'
import { createDatabase } from './database.js'
import { simulate } from './run.js'

export interface WorldsRequest {
  from: number
  count: number
  /** The difference between one seed and the next. */
  step: number
  withTrace: boolean
}

/** The result of a world; `broken` lists the broken promises. */
export interface WorldReport {
  seed: number
  broken: string | undefined
  /** All events of the world. */
  trace?: readonly string[]
}

async function run({ from, count, step, withTrace }: WorldsRequest) {
  const database = await createDatabase()
  for (let made = 0; made < count; made++) {
    const { seed, failures, trace, profile } = await simulate(from + made * step, database)
    const report: WorldReport = { seed, broken: failures[0]?.message }
    if (withTrace) report.trace = [JSON.stringify(profile), ...trace]
    process.stdout.write(`${JSON.stringify(report)}\n`)
  }
  await database.close()
}

void run(JSON.parse(process.argv[1] as string) as WorldsRequest)
