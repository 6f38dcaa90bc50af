import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { createExample } from '../package/installed-package.js'
import { startPostgres } from '../support/engines/postgres.js'

const EXAMPLES = join(__dirname, '..', '..', 'examples')
const MINUTES = 300_000

/** The command of each example, and the line that it prints at the end. */
const COMMANDS: Record<string, [args: string[], printed: RegExp]> = {
  minimal: [['start'], /before the purchase: 402\npurchased: 200\nafter a missed payment: 402\n$/],
  // `node --test` prints TAP or, since Node 23, its own form: "# pass 10" or "ℹ pass 10".
  commonjs: [['start'], /before the purchase: 402\npurchased: 200\n$/],
  paywall: [['test'], /^. pass 10\n. fail 0\n/m],
  'typescript-jest': [['test'], /^/],
  'three-instances': [
    ['start'],
    /deliveries: [1-9]\d*, failed: 0\nvisits: [1-9]\d*, failed: 0\npurchases: [1-9]\d*, not known to an instance: 0, not handled: 0\n/,
  ],
}

describe('the examples', () => {
  it.each(Object.entries(COMMANDS))(
    '%s runs until its end with the packed package, by its own command',
    async (name, [args, printed]) => {
      const example = createExample(name)
      const env = name === 'three-instances' ? { DATABASE_URL: await database() } : {}
      const { code, stdout, stderr } = await example.npm(args, env)
      expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: expect.stringMatching(printed) })
      if (name === 'typescript-jest') expect(stderr.match(/Tests: +2 passed, 2 total/g)).toHaveLength(2)
    },
    MINUTES,
  )

  it('are all tested, and the README of each names its command', () => {
    const names = readdirSync(EXAMPLES)
    expect(names.sort()).toEqual(Object.keys(COMMANDS).sort())
    for (const name of names) {
      const { scripts } = JSON.parse(readFileSync(join(EXAMPLES, name, 'package.json'), 'utf8'))
      const text = readFileSync(join(EXAMPLES, name, 'README.md'), 'utf8')
      for (const script of ['start', 'test'].filter((each) => each in scripts))
        expect(text).toContain(`npm ${script}`)
    }
  })

  it('include a smallest one of at most 30 lines, without the end of the demonstration', () => {
    const lines = readFileSync(join(EXAMPLES, 'minimal', 'index.js'), 'utf8')
      .trim()
      .split('\n')
    expect(lines.indexOf('server.close()')).toBeLessThanOrEqual(32)
  })
})

async function database(): Promise<string> {
  const postgres = await startPostgres()
  return postgres.createDatabase()
}
