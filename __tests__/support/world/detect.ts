/**
 * Shows which oracle notices each sabotage of a sentence of the documents:
 *
 *     node --import tsx __tests__/support/world/detect.ts                     # until both have noticed, or to the end
 *     node --import tsx __tests__/support/world/detect.ts --judge second      # until the second has
 *     node --import tsx __tests__/support/world/detect.ts 'after a 429' 503   # those whose words contain one of these
 *     node --import tsx __tests__/support/world/detect.ts --healthy           # the package as it is, which nobody may notice
 *
 * Each sabotage meets every short life of the second oracle, then `--worlds` worlds of seconds, then `--months` worlds of
 * hours with its fault. All have fixed seeds, so the result is the same on each machine.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Judged, JudgeRequest } from './judged-worlds.js'
import type { DocumentedSabotage } from './sabotage.js'
import { SABOTAGED_CALLS } from './sabotaged-calls.js'
import { SABOTAGED_SOURCES } from './sabotaged-sources.js'

const { values, positionals } = parseArgs({
  options: {
    judge: { type: 'string', default: 'both' },
    worlds: { type: 'string', default: '20' },
    months: { type: 'string', default: '2' },
    'at-once': { type: 'string', default: '1' },
    healthy: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
type Judge = 'first' | 'second'
const JUDGES: readonly Judge[] = values.judge === 'both' ? ['first', 'second'] : [values.judge as Judge]
const WORLDS = fileURLToPath(new URL('./judged-worlds.ts', import.meta.url))
const LOADER = fileURLToPath(new URL('../processes/load-typescript.cjs', import.meta.url))
const LIB = new URL('../../../lib/', import.meta.url)
const HEALTHY: DocumentedSabotage = { what: 'nothing', breaks: 'nothing', fault: 'platform' }

const all = values.healthy ? [HEALTHY] : [...SABOTAGED_CALLS, ...SABOTAGED_SOURCES]
const chosen = all.filter(
  ({ what }) => positionals.length === 0 || positionals.some((words) => what.includes(words)),
)
for (const { source } of chosen) if (source) requireOnce(source)
const line = [...chosen]
const unnoticed: Record<Judge, string[]> = { first: [], second: [] }
await Promise.all(
  Array.from({ length: Number(values['at-once']) }, async () => {
    for (let next = line.shift(); next; next = line.shift()) await detect(next)
  }),
)
for (const judge of JUDGES)
  print(`not noticed by the ${judge}: ${unnoticed[judge].length} of ${chosen.length}`)

async function detect({ what, breaks, source, fault }: DocumentedSabotage) {
  const noticed: Partial<Record<Judge, string>> = {}
  const failed: string[] = []
  let worlds = 0
  const request: JudgeRequest = {
    ...{ what, source, fault },
    ...{ worlds: Number(values.worlds), months: Number(values.months) },
  }
  const script = `require(${JSON.stringify(WORLDS)})`
  const child = spawn(process.execPath, ['--require', LOADER, '--eval', script, JSON.stringify(request)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const text of createInterface(child.stdout)) {
    const judged = JSON.parse(text) as Judged
    worlds++
    if (judged.failed) failed.push(`${judged.world}: ${judged.failed}`)
    for (const judge of ['first', 'second'] as const)
      if (judged[judge] !== undefined) noticed[judge] ??= `${judged.world}: ${judged[judge]}`
    if (JUDGES.every((judge) => noticed[judge])) break
  }
  child.kill('SIGKILL')
  for (const judge of JUDGES) if (!noticed[judge]) unnoticed[judge].push(what)
  print(`${what} (${breaks}) ${worlds} worlds`)
  for (const judge of JUDGES) print(`  ${judge}: ${noticed[judge] ?? '–'}`)
  for (const each of failed.slice(0, 2)) print(`  a world that could not go on: ${each}`)
}

function requireOnce({ file, from }: NonNullable<DocumentedSabotage['source']>) {
  const places = readFileSync(new URL(file, LIB), 'utf8').split(from).length - 1
  if (places !== 1) throw new Error(`${file} has ${places} places that read: ${from}`)
}

function print(text: string) {
  process.stdout.write(`${text}\n`)
}
