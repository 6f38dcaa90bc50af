/**
 * Runs simulated worlds on all cores:
 *
 *     npm run simulate                     # 10,000 worlds on plain tables, 1,000 on the package's SQL
 *     npm run simulate -- 50000 --from 7   # this many worlds, from this seed on
 *     npm run simulate -- --seed 123       # one world, with all its events
 *     npm run simulate -- --months 50      # worlds of weeks with operators' faults, and half as many of 200 days without
 *     npm run simulate -- --months --seed 123 --faults disk,clock
 *     npm run simulate -- --months --calm 'only asks' --seed 123 --days 200 --instances 2
 */
import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { addTally, type Tally, tallyLines } from '../months/invariants.js'
import type { MonthsReport, MonthsRequest } from '../months/many.js'
import type { WorldReport, WorldsRequest } from './worlds.js'

const { values, positionals } = parseArgs({
  options: {
    seed: { type: 'string' },
    from: { type: 'string', default: '1' },
    months: { type: 'boolean', default: false },
    faults: { type: 'string' },
    calm: { type: 'string' },
    days: { type: 'string' },
    instances: { type: 'string' },
  },
  allowPositionals: true,
})
const WORLDS = fileURLToPath(new URL(values.months ? '../months/many.ts' : './worlds.ts', import.meta.url))
/** A world on the package's own SQL takes several times longer, so there are fewer of them; and one of months too. */
const SHARES: [WorldsRequest['store'] | MonthsRequest['store'], share: number][] = sharesOf()
const REPORT_EVERY_MS = 10_000

for (const [store, share] of SHARES) {
  const first = Number(values.seed ?? values.from)
  const count = values.seed ? 1 : Math.ceil(Number(positionals[0] ?? (values.months ? 100 : 10_000)) * share)
  if (!Number.isInteger(first) || !(count > 0)) throw new Error('expected whole numbers')
  const began = performance.now()
  let made = 0
  let broken = 0
  const tally: Tally = {}
  const speed = () =>
    `${made} of ${count} worlds: ${store}, ${Math.round((made / (performance.now() - began)) * 60_000)} a minute, ${broken} broken`
  const reporting = setInterval(() => print(speed()), REPORT_EVERY_MS)

  const processes = Math.min(count, availableParallelism())
  await Promise.all(
    Array.from({ length: processes }, (_, core) => {
      const own = Math.ceil((count - core) / processes)
      const withTrace = !!values.seed
      const request = {
        store,
        from: first + core,
        count: own,
        step: processes,
        withTrace,
        faults: values.faults,
        calm: values.calm,
        days: values.days,
        instances: values.instances,
      }
      return worlds(request, (report) => {
        made++
        if (report.trace) print(report.trace.join('\n'))
        if (report.tally) addTally(tally, report.tally)
        if (!report.broken) return
        broken++
        print(`${report.command ?? `npm run simulate -- --seed ${report.seed}`} (${store}): ${report.broken}`)
        process.exitCode = 1
      })
    }),
  )
  clearInterval(reporting)
  print([speed(), ...tallyLines(tally)].join('\n'))
}

function sharesOf(): typeof SHARES {
  if (!values.months) {
    return [
      ['plain tables', 1],
      ['the SQL of the package', 0.1],
    ]
  }
  if (values.calm !== undefined) return [['months without any fault', 1]]
  if (values.faults !== undefined || values.seed) return [['weeks with faults', 1]]
  return [
    ['weeks with faults', 1],
    ['months without any fault', 0.5],
  ]
}

type Report = WorldReport & Partial<MonthsReport>

/** Resolves when all worlds have been made; rejects if their process ends before. */
async function worlds(request: { count: number }, onWorld: (report: Report) => void) {
  const script = `require(${JSON.stringify(WORLDS)})`
  const child = spawn(process.execPath, ['--require', 'tsx/cjs', '--eval', script, JSON.stringify(request)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let left = request.count
  for await (const line of createInterface(child.stdout)) {
    left--
    onWorld(JSON.parse(line) as Report)
  }
  if (left > 0) throw new Error(`a process ended with ${left} worlds still to make`)
}

function print(line: string) {
  process.stdout.write(`${line}\n`)
}
