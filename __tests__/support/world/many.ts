/**
 * Runs simulated worlds on all cores:
 *
 *     npm run simulate                     # 2,000 worlds
 *     npm run simulate -- 50000 --from 7   # this many worlds, from this seed on
 *     npm run simulate -- --seed 123       # one world, with all its events
 *     npm run simulate -- 1000 --json      # at the end a line of JSON for each kind of world, and nothing else
 *     npm run simulate -- --life outage    # a short life of the second oracle
 *     npm run simulate -- --months 50      # worlds of weeks with operators' faults, and half as many of 200 days without
 *     npm run simulate -- --months --seed 123 --faults disk,clock
 *     npm run simulate -- --months --calm 'only asks' --seed 123 --days 200 --instances 2
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { addTally, type Tally, tallyLines } from './promises.js'
import type { WorldReport, WorldsRequest } from './worlds.js'

const { values, positionals } = parseArgs({
  options: {
    seed: { type: 'string' },
    life: { type: 'string' },
    from: { type: 'string', default: '1' },
    months: { type: 'boolean', default: false },
    faults: { type: 'string' },
    calm: { type: 'string' },
    days: { type: 'string' },
    instances: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
const WORLDS = fileURLToPath(new URL('./worlds.ts', import.meta.url))
/** An engine is loaded by `import()`, which `tsx/cjs` does not compile. */
const LOADER = fileURLToPath(new URL('../processes/load-typescript.cjs', import.meta.url))
/** The kinds of world to make, each with its share of the number. */
const SHARES: [kind: WorldsRequest['kind'], share: number][] = sharesOf()
const REPORT_EVERY_MS = 10_000

for (const [kind, share] of SHARES) {
  const first = Number(values.seed ?? values.from)
  const isOne = values.seed || values.life
  const count = isOne ? 1 : Math.ceil(Number(positionals[0] ?? (values.months ? 100 : 2_000)) * share)
  if (!Number.isInteger(first) || !(count > 0)) throw new Error('expected whole numbers')
  const began = performance.now()
  let made = 0
  let lived = 0
  const broken: string[] = []
  const tally: Tally = {}
  const speed = () =>
    `${made} of ${count} worlds: ${kind}, ${Math.round((made / (performance.now() - began)) * 60_000)} a minute, ${broken.length} broken`
  const reporting = setInterval(() => values.json || print(speed()), REPORT_EVERY_MS)

  const findBroken = (what: string) => {
    broken.push(what)
    if (!values.json) print(what)
    process.exitCode = 1
  }

  const processes = Math.min(count, availableParallelism())
  await Promise.all(
    Array.from({ length: processes }, (_, core) => {
      const { faults, calm, days, instances, life } = values
      const request = {
        ...{ kind, from: first + core, count: Math.ceil((count - core) / processes), step: processes },
        ...{ withTrace: !!isOne, faults, calm, days, instances, life },
      }
      return worlds(request, (report) => {
        made++
        lived += report.days
        if (report.trace) print(report.trace.join('\n'))
        addTally(tally, report.tally)
        if (report.broken) findBroken(`${report.command} (${kind}): ${report.broken}`)
      }).then((failure) => {
        if (failure !== undefined) findBroken(`${kind}: ${failure}`)
      })
    }),
  )
  clearInterval(reporting)
  print(
    values.json
      ? JSON.stringify({ kind, made, days: lived, broken, tally })
      : [speed(), ...tallyLines(tally)].join('\n'),
  )
}

function sharesOf(): typeof SHARES {
  if (values.life) return [['a short life', 1]]
  if (!values.months) return [['seconds of many instances', 1]]
  if (values.calm !== undefined) return [['months without any fault', 1]]
  if (values.faults !== undefined || values.seed) return [['weeks with faults', 1]]
  return [
    ['weeks with faults', 1],
    ['months without any fault', 0.5],
  ]
}

/** Resolves when the process of these worlds has ended: with undefined, or why it failed. */
async function worlds(
  request: WorldsRequest,
  onWorld: (report: WorldReport) => void,
): Promise<string | undefined> {
  const script = `require(${JSON.stringify(WORLDS)})`
  const child = spawn(process.execPath, ['--require', LOADER, '--eval', script, JSON.stringify(request)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close')
  let made = 0
  for await (const line of createInterface(child.stdout)) {
    made++
    onWorld(JSON.parse(line) as WorldReport)
  }
  const [code, signal] = await ended
  if (made < request.count)
    return `the process of the world of seed ${request.from + made * request.step} ended with ${signal ?? code}`
  return code === 0 ? undefined : `a process ended with ${signal ?? code} after its last world`
}

function print(line: string) {
  process.stdout.write(`${line}\n`)
}
