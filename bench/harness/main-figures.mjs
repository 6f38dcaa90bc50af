import { readFileSync, writeFileSync } from 'node:fs'
import { ratios, spreadOf } from './statistics.mjs'

const BEGIN = '<!-- main figures: written by npm run bench -->'
const END = '<!-- end of main figures -->'

/** The rows of the table. One without all of its figures is left out. */
const ROWS = [
  [
    'Deliveries a second, as a plain [`listener()`](recipes.md#in-front-of-any-server), SQLite',
    cell`${at('receiving', 'judged/plain', 'perSecond')}`,
  ],
  ['in Express 5', onBoth((engine) => at('durable', engine, 'perSecond'))],
  ['in Express 5, handlers at work', onBoth((engine) => at('durable', `${engine}-handled`, 'perSecond'))],
  [
    'as a plain listener, all over a million subscriptions, work elsewhere',
    onBoth((engine) => at('sizes', `${engine}/large`, 'perSecond')),
  ],
  [
    'the same beside 1,000 subscriptions',
    onBoth((engine) => at('sizes', `${engine}/large`, 'perSecond', { over: `${engine}/small` }), ' ×'),
  ],
  [
    'longest gap of the event loop meanwhile',
    onBoth((engine) => at('sizes', `${engine}/large`, 'gapMs', { isWorst: true }), ' ms'),
  ],
  [
    'longest gap while handlers and reads work it off',
    onBoth((engine) => at('sizes', `${engine}/large`, 'handlingGapMs', { isWorst: true }), ' ms'),
  ],
  [
    'Time to the reply, 64 requests at once, plain listener, SQLite',
    cell`half within ${at('receiving', 'judged/plain', 'p50Ms')} ms, 99 % within ${at('receiving', 'judged/plain', 'p99Ms')} ms`,
  ],
  [
    'CPU for a delivery, as a plain listener, SQLite',
    cell`${at('receiving', 'judged/plain', 'cpuMicros')} µs`,
  ],
  ['in Express 5', onBoth((engine) => at('durable', engine, 'cpuMicros'), ' µs')],
  [
    'CPU for a first read with its token, decision and change, SQLite',
    cell`${at('convergence', 'package-at-once', 'cpuMicros')} µs`,
  ],
  [
    '10,000 first reads, 16 at once, SQLite',
    cell`${at('convergence', 'package-at-once', 'seconds')} s; ${at('convergence', 'package', 'seconds')} s if each answer takes 20 ms`,
  ],
  ['Backlog worked off, events a second', onBoth((engine) => at('draining', engine, 'perSecond'))],
  ['`isEntitled` from memory', cell`${at('entitlement', 'is-entitled', 'ns')} ns`],
  [
    '`isEntitled` from the database, a million subscriptions',
    onBoth((engine) => at('sizes', `${engine}/large`, 'coldMs', { factor: 1_000 }), ' µs'),
  ],
  ['Memory after a million deliveries, SQLite', cell`${at('memory', 'rss', 'last')} MB`],
  [
    'Disk for a subscription with two journal entries and indexes',
    onBoth((engine) => at('sizes', `${engine}/large`, 'rowBytes', { factor: 1 / 1_000 }), ' kB'),
  ],
  [
    'Write-ahead log of a delivery, PostgreSQL',
    cell`${at('sizes', 'postgres/small', 'logBytes', { factor: 1 / 1_000 })} kB with 1,000 subscriptions, ${at('sizes', 'postgres/large', 'logBytes', { factor: 1 / 1_000 })} kB with a million`,
  ],
]

/** Updates the table of main figures in docs/performance.md from a whole run. Returns a sentence about it. */
export function mainFigures({ parts, node, cpu, date }, path) {
  const rows = ROWS.flatMap(([name, write]) => {
    const text = write(parts)
    return text === undefined ? [] : [`| ${name} | ${text} |\n`]
  })
  const text = `${BEGIN}
| Node ${node.split('.')[0]}, one core of ${cpu}, ${date} | |
|---|---|
${rows.join('')}${END}`
  const page = readFileSync(path, 'utf8')
  const [before, rest] = page.split(BEGIN)
  if (rest === undefined) return `${path} has no place for the main figures`
  writeFileSync(path, `${before}${text}${rest.split(END)[1]}`)
  return `the main figures are in ${path}`
}

/**
 * A figure: the median of a column in a row of a part, times `factor`. With `over`, another row, the median of the ratios of the
 * rounds. With `isWorst` the greatest of all rounds. Undefined if it was not measured.
 */
function at(part, row, column, { factor = 1, over, isWorst = false } = {}) {
  return (parts) => {
    const valuesOf = (id) => parts[part]?.rows.find((each) => each.id === id)?.values[column]
    const [values, others] = [valuesOf(row), over && valuesOf(over)]
    if (!values || (over && !others)) return undefined
    const { median, max } = spreadOf(over ? ratios(values, others) : values)
    return rounded((isWorst ? max : median) * factor).toLocaleString('en')
  }
}

/** Text with figures. Undefined without one of them. */
function cell(texts, ...figures) {
  return (parts) => {
    const found = figures.map((figure) => figure(parts))
    return found.includes(undefined) ? undefined : String.raw({ raw: texts }, ...found)
  }
}

function onBoth(figureOf, unit = '') {
  return cell(['', `${unit} on SQLite, `, `${unit} on PostgreSQL`], figureOf('sqlite'), figureOf('postgres'))
}

/** Rounds to two digits, because the third differs from run to run. */
function rounded(value) {
  return Number(value.toPrecision(2))
}
