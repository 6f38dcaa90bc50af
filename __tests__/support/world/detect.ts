/**
 * Shows which oracle notices each sabotage of a sentence of the documents:
 *
 *     node --import tsx __tests__/support/world/detect.ts                     # until both have noticed, or to the end
 *     node --import tsx __tests__/support/world/detect.ts --judge second      # until the second has
 *     node --import tsx __tests__/support/world/detect.ts 'after a 429' 503   # those whose words contain one of these
 *     node --import tsx __tests__/support/world/detect.ts --healthy           # the package as it is, which nobody may notice
 */
import { parseArgs } from 'node:util'
import { DOCUMENTED_SABOTAGES, detect, type Judge } from './detection.js'
import type { DocumentedSabotage } from './sabotage.js'

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
const HEALTHY: DocumentedSabotage = { what: 'nothing', breaks: 'nothing', fault: 'platform' }
const judges: readonly Judge[] = values.judge === 'both' ? ['first', 'second'] : [values.judge as Judge]
const chosen = (values.healthy ? [HEALTHY] : DOCUMENTED_SABOTAGES).filter(
  ({ what }) => positionals.length === 0 || positionals.some((words) => what.includes(words)),
)
const line = [...chosen]
const unnoticed: Record<Judge, string[]> = { first: [], second: [] }
await Promise.all(
  Array.from({ length: Number(values['at-once']) }, async () => {
    for (let next = line.shift(); next; next = line.shift()) await report(next)
  }),
)
for (const judge of judges)
  print(
    [`not noticed by the ${judge}: ${unnoticed[judge].length} of ${chosen.length}`, ...unnoticed[judge]].join(
      '\n  ',
    ),
  )

async function report(sabotage: DocumentedSabotage) {
  const { what, breaks } = sabotage
  const { noticed, failed, made } = await detect(sabotage, {
    judges,
    worlds: Number(values.worlds),
    months: Number(values.months),
  })
  print(`${what} (${breaks}) ${made} worlds`)
  for (const judge of judges) {
    if (!noticed[judge]) unnoticed[judge].push(what)
    print(`  ${judge}: ${noticed[judge] ?? '–'}`)
  }
  for (const each of failed.slice(0, 2)) print(`  a world that could not go on: ${each}`)
}

function print(text: string) {
  process.stdout.write(`${text}\n`)
}
