import { readFileSync, writeFileSync } from 'node:fs'
import { spreadOf } from './statistics.mjs'

const BEGIN = '<!-- main figures: written by npm run bench -->'
const END = '<!-- end of main figures -->'

const ROWS = [
  ['Deliveries a second, as a plain listener, SQLite', 'receiving', 'judged/plain', 'perSecond', 1, ''],
  ['Deliveries a second, in Express 5, SQLite', 'durable', 'sqlite', 'perSecond', 1, ''],
  ['the same with handlers at work', 'durable', 'sqlite-handled', 'perSecond', 1, ''],
  ['Deliveries a second, in Express 5, PostgreSQL', 'durable', 'postgres', 'perSecond', 1, ''],
  ['the same with handlers at work', 'durable', 'postgres-handled', 'perSecond', 1, ''],
  [
    'Deliveries a second all over a million subscriptions, as a plain listener, work elsewhere, SQLite',
    'sizes',
    'sqlite/large',
    'perSecond',
    1,
    '',
  ],
  [
    'Deliveries a second all over a million subscriptions, as a plain listener, work elsewhere, PostgreSQL',
    'sizes',
    'postgres/large',
    'perSecond',
    1,
    '',
  ],
  [
    'CPU for a first read with its token, decision and change, SQLite',
    'convergence',
    'package-at-once',
    'cpuMicros',
    1,
    ' µs',
  ],
  ['Backlog worked off, events a second, SQLite', 'draining', 'sqlite', 'perSecond', 1, ''],
  ['Backlog worked off, events a second, PostgreSQL', 'draining', 'postgres', 'perSecond', 1, ''],
  ['`isEntitled` from memory', 'entitlement', 'is-entitled', 'ns', 1, ' ns'],
  ['`isEntitled` from SQLite, a million subscriptions', 'sizes', 'sqlite/large', 'coldMs', 1_000, ' µs'],
  [
    '`isEntitled` from PostgreSQL, a million subscriptions',
    'sizes',
    'postgres/large',
    'coldMs',
    1_000,
    ' µs',
  ],
]

/** Updates the table of main figures in docs/performance.md from a whole run. Returns a sentence about it. */
export function mainFigures({ parts, node, cpu, date }, path) {
  const rows = ROWS.flatMap(([name, part, row, column, factor, unit]) => {
    const values = parts[part]?.rows.find(({ id }) => id === row)?.values[column]
    return values
      ? [`| ${name} | ${rounded(spreadOf(values).median * factor).toLocaleString('en')}${unit} |`]
      : []
  })
  const text = `${BEGIN}
| Node ${node.split('.')[0]}, one core of ${cpu}, ${date} | |
|---|---|
${rows.join('\n')}
${END}`
  const page = readFileSync(path, 'utf8')
  const [before, rest] = page.split(BEGIN)
  if (rest === undefined) return `${path} has no place for the main figures`
  writeFileSync(path, `${before}${text}${rest.split(END)[1]}`)
  return `the main figures are in ${path}`
}

/** Rounds to two digits, because the third differs from run to run. */
function rounded(value) {
  return Number(value.toPrecision(2))
}
