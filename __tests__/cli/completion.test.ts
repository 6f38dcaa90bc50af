import { spawnSync } from 'node:child_process'
import { describe, expect, it } from '@jest/globals'
import type { Command } from 'commander'
import { createProgram } from '../../lib/cli/program.js'
import { runCliHere } from '../support/processes/cli.js'

const PROGRAM = createProgram('0.0.0', () => async () => {})
const OF_ALL = [...PROGRAM.options.map(({ long }) => String(long)), '--help']

describe('the completion', () => {
  it('of bash proposes after each command exactly its commands, options and arguments', async () => {
    const places = placesOf(PROGRAM)
    expect(places.length).toBeGreaterThan(20)
    const proposed = await proposals(places.map(({ path }) => [...path, '']))
    for (const [i, { path, words }] of places.entries())
      expect({ path, words: proposed[i]?.sort() }).toEqual({ path, words: words.sort() })
  })

  it('of bash proposes the values of an option, what begins with the text, and files where nothing is known', async () => {
    const proposed = await proposals([
      ['journal', 'list', '--status', ''],
      ['journal', 'list', '--status', 'd'],
      ['journal', 're'],
      ['--json', 'explain', 'journal', '--i'],
      ['journal', 'replay', '--wait', '--dr'],
      ['simulate', 'application/u'],
      // Readline completes a file where the proposal is empty.
      ['import', '--actor', ''],
      ['backup', 'co'],
    ])
    expect(proposed).toEqual([
      ['pending', 'retrying', 'unhandled', 'done', 'dead'],
      ['done', 'dead'],
      ['replay'],
      ['--item'],
      ['--dry-run'],
      ['application/uninstalled'],
      [],
      [],
    ])
  })

  it('of zsh has the same words, with what each means', async () => {
    const { stdout } = await runCliHere(['completion', 'zsh'])
    for (const { path, words } of placesOf(PROGRAM)) {
      const key = `'${path.map((each) => ` ${each}`).join('')}'`
      const [, commands = '', options = ''] =
        new RegExp(`^ {4}${key}\\)\\n +commands=\\((.*)\\)\\n +options=\\((.*)\\) ;;$`, 'm').exec(stdout) ??
        []
      const found = [...`${commands} ${options}`.matchAll(/(?<= |^)'([^':]+):/g)].map(([, word]) =>
        String(word),
      )
      expect({ path, words: found.sort() }).toEqual({ path, words: words.sort() })
    }
    expect(stdout).toContain(`'explain:show whether a business may use the app, and why'`)
    expect(stdout).toContain(
      `' journal list --kind') compadd -- event change entitlement unrecognised action; return ;;`,
    )
  })
})

/** Each place of a command line, by the commands before it, with the words that may follow. */
function placesOf(command: Command, path: string[] = []): { path: string[]; words: string[] }[] {
  const own = path.length === 0 ? [] : command.options.map(({ long }) => String(long))
  const names = command.commands.map((each) => each.name())
  const values = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? [])
  return [
    { path, words: [...names, ...values, ...own, ...OF_ALL] },
    ...command.commands.flatMap((each) => placesOf(each, [...path, each.name()])),
  ]
}

/** What bash proposes for the last word of each line. */
async function proposals(lines: readonly (readonly string[])[]): Promise<string[][]> {
  const { stdout: script } = await runCliHere(['completion', 'bash'])
  const asks = lines.map((words) => {
    const list = ['marketplace-webhooks', ...words].map((word) => `'${word}'`).join(' ')
    return `COMP_WORDS=(${list}); COMP_CWORD=${words.length}; _marketplace_webhooks; echo "\${COMPREPLY[*]}"`
  })
  const { stdout, stderr } = spawnSync('bash', ['--norc', '-uc', [script, ...asks].join('\n')], {
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split(' ').filter(Boolean))
}
