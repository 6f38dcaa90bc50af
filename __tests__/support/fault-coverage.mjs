import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A reporter of jest. After a run of all tests it prints how many rows of __tests__/faults/README.md are covered, which
 * are not, and which ids in titles have no row. A row is covered when a test with its id passed and none failed. After a run
 * of only some tests it prints that it did not count.
 */
export default class FaultCoverage {
  #rootDir
  #testNamePattern

  constructor({ rootDir, testNamePattern }) {
    this.#rootDir = rootDir
    this.#testNamePattern = testNamePattern
  }

  onRunComplete(_contexts, { testResults }) {
    const ran = new Set(testResults.map(({ testFilePath }) => testFilePath))
    const left = testFilesIn(join(this.#rootDir, '__tests__')).filter((file) => !ran.has(file))
    const lines =
      left.length > 0 || this.#testNamePattern
        ? ['fault rows covered: not counted, because not all tests were run']
        : countRows(
            rowsOf(readFileSync(join(this.#rootDir, '__tests__', 'faults', 'README.md'), 'utf8')),
            testResults.flatMap((file) => file.testResults),
          )
    process.stdout.write(`\n${lines.join('\n')}\n`)
  }
}

/** The ids of the tables' rows, in order. */
export function rowsOf(markdown) {
  return [...markdown.matchAll(/^\| ([A-Z]\d+) \|/gm)].map(([, id]) => id)
}

/** `tests` are jest's results: `ancestorTitles`, `title` and `status` of each. */
export function countRows(rows, tests) {
  const [passed, failed] = [new Set(), new Set()]
  for (const { ancestorTitles, title, status } of tests) {
    const ids = [...ancestorTitles, title].flatMap(idsIn)
    if (status === 'passed' || status === 'failed') {
      for (const id of ids) (status === 'passed' ? passed : failed).add(id)
    }
  }
  const missing = rows.filter((id) => !passed.has(id) || failed.has(id))
  const unknown = [...new Set([...passed, ...failed])].filter((id) => !rows.includes(id))
  return [
    `fault rows covered: ${rows.length - missing.length} / ${rows.length}`,
    ...(missing.length > 0 ? [`not covered: ${missing.join(', ')}`] : []),
    ...(unknown.length > 0 ? [`in titles, but not in the README of the faults: ${unknown.join(', ')}`] : []),
  ]
}

/** 'C1, C2 a receiver …' begins with C1 and C2. */
function idsIn(title) {
  return /^[A-Z]\d+(?:, [A-Z]\d+)*(?= )/.exec(title)?.[0].split(', ') ?? []
}

function testFilesIn(folder) {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => join(folder, file))
}
