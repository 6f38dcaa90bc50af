import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from '@jest/globals'
import { temporaryFolder } from '../support/clean-up.js'
import { hasNodeSqlite } from '../support/engines/sqlite-drivers.js'

const TESTS = join(__dirname, '..')
const NODE = join(__dirname, `current-node/node_modules/node-${process.platform}-${process.arch}/bin/node`)

/** The test files that have tests for each SQLite library, or for several processes on one file. */
const USES = /\b(DRIVERS|itWhereShared|describeConformance)\b/

describe('a Node without node:sqlite', () => {
  if (hasNodeSqlite) {
    it.skip('leaves the tests of node:sqlite to a newer one (not needed: this Node has it)', () => {})
    return
  }

  it('leaves the tests of node:sqlite to a newer one, where they pass', async () => {
    if (!existsSync(NODE))
      throw new Error(
        `There is no ${NODE}: run \`node scripts/current-node.mjs\`, or the tests with Node 22.13 or newer`,
      )
    const results = join(temporaryFolder(), 'results.json')
    const files = readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.test.ts') && !__filename.endsWith(file))
      .filter((file) => USES.test(readFileSync(join(TESTS, file), 'utf8')))
    const jest = join(TESTS, '../node_modules/jest/bin/jest.js')
    const { stderr } = await promisify(execFile)(
      NODE,
      [jest, ...files, '-t', 'node:sqlite', '--json', '--outputFile', results, '-w', '2'],
      {
        cwd: join(TESTS, '..'),
        // First in the path too, because tests start programs of their own.
        env: { ...process.env, PATH: `${dirname(NODE)}${delimiter}${process.env.PATH}` },
        maxBuffer: 64 * 1024 * 1024,
      },
    ).catch((error) => error as { stderr: string })
    const { success, testResults } = JSON.parse(readFileSync(results, 'utf8')) as {
      success: boolean
      testResults: { name: string; assertionResults: { status: string }[] }[]
    }
    expect({ success, output: success || stderr }).toEqual({ success: true, output: true })
    const untested = testResults.filter(({ assertionResults }) =>
      assertionResults.every(({ status }) => status !== 'passed'),
    )
    expect([untested.map(({ name }) => name), testResults.length]).toEqual([[], files.length])
  }, 300_000)
})
