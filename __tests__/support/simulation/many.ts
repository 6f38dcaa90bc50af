/**
 * Runs simulated worlds on all cores:
 *
 *     npm run simulate                     # 10,000 worlds on plain tables, 1,000 on the package's SQL
 *     npm run simulate -- 50000 --from 7   # this many worlds, from this seed on
 *     npm run simulate -- --seed 123       # one world, with all its events
 *     npm run simulate -- --months 50      # worlds of weeks and months, with operators' faults
 *     npm run simulate -- --months --seed 123 --faults disk,clock
 */
import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { WorldReport, WorldsRequest } from './worlds.js'

const { values, positionals } = parseArgs({
  options: {
    seed: { type: 'string' },
    from: { type: 'string', default: '1' },
    months: { type: 'boolean', default: false },
    faults: { type: 'string' },
  },
  allowPositionals: true,
})
const WORLDS = fileURLToPath(new URL(values.months ? '../months/many.ts' : './worlds.ts', import.meta.url))
/** A world on the package's own SQL takes several times longer, so there are fewer of them. */
const SHARES: [WorldsRequest['store'] | 'a SQLite file, for months', share: number][] = values.months
  ? [['a SQLite file, for months', 1]]
  : [
      ['plain tables', 1],
      ['the SQL of the package', 0.1],
    ]
const REPORT_EVERY_MS = 10_000

for (const [store, share] of SHARES) {
  const first = Number(values.seed ?? values.from)
  const count = values.seed ? 1 : Math.ceil(Number(positionals[0] ?? (values.months ? 100 : 10_000)) * share)
  if (!Number.isInteger(first) || !(count > 0)) throw new Error('expected whole numbers')
  const began = performance.now()
  let made = 0
  let broken = 0
  const speed = () =>
    `${made} of ${count} worlds on ${store}, ${Math.round((made / (performance.now() - began)) * 60_000)} a minute, ${broken} broken`
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
      }
      return worlds(request, (report) => {
        made++
        if (report.trace) print(report.trace.join('\n'))
        if (!report.broken) return
        broken++
        print(
          `npm run simulate --${values.months ? ' --months' : ''} --seed ${report.seed} (${store}): ${report.broken}`,
        )
        process.exitCode = 1
      })
    }),
  )
  clearInterval(reporting)
  print(speed())
}

/** Resolves when all worlds have been made; rejects if their process ends before. */
async function worlds(request: { count: number }, onWorld: (report: WorldReport) => void) {
  const script = `require(${JSON.stringify(WORLDS)})`
  const child = spawn(process.execPath, ['--require', 'tsx/cjs', '--eval', script, JSON.stringify(request)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let left = request.count
  for await (const line of createInterface(child.stdout)) {
    left--
    onWorld(JSON.parse(line) as WorldReport)
  }
  if (left > 0) throw new Error(`a process ended with ${left} worlds still to make`)
}

function print(line: string) {
  process.stdout.write(`${line}\n`)
}
