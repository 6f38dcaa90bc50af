import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AIMS } from '../aims.mjs'
import { PROJECT } from './machine.mjs'
import { mainFigures } from './main-figures.mjs'
import { ratios, spreadOf } from './statistics.mjs'

/**
 * Writes `results.json` and `results.md`, and prints every aim. With `isForReaders` it also updates the table in
 * docs/performance.md.
 */
export function writeReport(results, folder, { print, isForReaders }) {
  const judged = AIMS.map((aim) => judge(aim, results))
  mkdirSync(folder, { recursive: true })
  const json = JSON.stringify({ ...results, aims: judged }, rounded, 2)
  writeFileSync(join(folder, 'results.json'), `${json}\n`)
  writeFileSync(join(folder, 'results.md'), markdown(results, judged))
  for (const each of judged) print(`${each.verdict.padEnd(12)} ${inWords(each)}`)
  for (const text of results.leftOut) print(`left out     ${text}`)
  print(`written to ${folder}`)
  // From the rounded values, so that the page follows from `results.json`.
  if (isForReaders) print(mainFigures(JSON.parse(json), join(PROJECT, 'docs', 'performance.md')))
}

/** For each aim `{ text, bound, figure, verdict }`. The verdict is `reached`, `missed`, or `not measured`. */
function judge({ text, part, row, column, over, overColumn, atLeast, atMost, digits, isWorst }, { parts }) {
  const rowOf = (id) => parts[part]?.rows.find((each) => each.id === id)?.values
  let values = rowOf(row)?.[column]
  if (values && over) values = rowOf(over)?.[column] && ratios(values, rowOf(over)[column])
  if (values && overColumn) values = rowOf(row)[overColumn] && ratios(values, rowOf(row)[overColumn])
  const isRatio = over !== undefined || overColumn !== undefined
  const bound = `${atLeast === undefined ? 'at most' : 'at least'} ${number(atLeast ?? atMost, digits)}${isRatio ? ' ×' : ''}${isWorst ? ' in each round' : ''}`
  if (!values || values.length === 0)
    return { text, bound, figure: null, digits, isRatio, verdict: 'not measured' }
  const figure = spreadOf(values)
  const decisive = isWorst ? figure.max : figure.median
  const isReached = atLeast === undefined ? decisive <= atMost : decisive >= atLeast
  return { text, bound, figure, digits, isRatio, verdict: isReached ? 'reached' : 'missed' }
}

function inWords({ text, bound, figure, digits, isRatio }) {
  return `${text}: ${figure ? `${spread(figure, digits)}${isRatio ? ' ×' : ''}, ` : ''}aim ${bound}`
}

function markdown(results, judged) {
  const { command, date, node, cpu, cores, databases = [], quick, leftOut, parts } = results
  const sections = Object.values(parts).map(section)
  return `# Benchmark results

\`${command}\` on ${date} · judged on Node ${node} · ${[...databases, cpu].join(' · ')} · ${cores}

${quick ? 'A quick run: short rounds and small sizes. It shows that the benchmark works; its figures are rough.\n\n' : ''}\
Figures are medians (minimum–maximum) of the rounds. Absolute figures depend on the machine and on what else it does; the \
ratios, taken round by round, are what to look at. What each figure means: [bench/README.md](../README.md).

## Aims

| Aim | Bound | Measured | |
|---|---|---|---|
${judged
  .map(({ text, bound, figure, digits, isRatio, verdict }) =>
    line(text, bound, figure ? `${spread(figure, digits)}${isRatio ? ' ×' : ''}` : '', `**${verdict}**`),
  )
  .join('\n')}

${leftOut.length > 0 ? `Left out on this machine:\n\n${leftOut.map((text) => `- ${text}`).join('\n')}\n\n` : ''}${sections.join('\n')}`
}

function section({ title, about, columns, rows }) {
  const shown = columns.filter(({ id }) => rows.some(({ values }) => values[id]?.some(Number.isFinite)))
  const head = ['', ...shown.map(({ name }) => name)]
  const body = rows.map((row) =>
    line(
      row.name,
      ...shown.map(({ id, digits }) =>
        row.values[id]?.some(Number.isFinite) ? spread(spreadOf(row.values[id]), digits) : '',
      ),
    ),
  )
  return `## ${title}

${about}

${line(...head)}
|${head.map(() => '---|').join('')}
${body.join('\n')}
`
}

function line(...cells) {
  return `| ${cells.join(' | ')} |`
}

function spread({ median, min, max }, digits) {
  if (min === max) return number(median, digits)
  return `${number(median, digits)} (${number(min, digits)}–${number(max, digits)})`
}

function number(value, digits) {
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

function rounded(_key, value) {
  return typeof value === 'number' ? Number(value.toPrecision(5)) : value
}
