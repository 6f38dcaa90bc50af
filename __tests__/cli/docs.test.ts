import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import type { Command } from 'commander'
import { KEYS } from '../../lib/cli/dev/keys.js'
import { createProgram } from '../../lib/cli/program.js'
import { EXIT_CODES } from '../../lib/cli/terminal/exit-codes.js'
import { SETTINGS } from '../../lib/cli/terminal/settings.js'
import { PAGES } from '../support/docs/pages.js'

const DOCS = readFileSync(join(__dirname, '..', '..', 'docs', 'command-line.md'), 'utf8')
const PROGRAM = createProgram('0.0.0', () => async () => {})

describe('docs/command-line.md', () => {
  it('lists every command with its arguments and the description that the program prints', () => {
    expect(rowsOf('Commands')).toEqual(
      commandsOf(PROGRAM).map(({ path, command }) => [`\`${path}\``, command.summary()]),
    )
  })

  it('lists every setting with its option', () => {
    const documented = rowsOf('Settings').map(([name, option = '', several]) => [
      name,
      option.split(';')[0],
      several !== '',
    ])
    expect(documented).toEqual(
      Object.entries(SETTINGS).map(([name, { option, isList }]) => [`\`${name}\``, `\`${option}\``, isList]),
    )
  })

  it('lists every exit code with its meaning, and every key', () => {
    expect(rowsOf('Output and exit codes')).toEqual(Object.entries(EXIT_CODES))
    expect(rowsOf('dev')).toEqual(
      Object.entries(KEYS).map(([key, { word, does }]) => [`\`${key}\``, `\`${word}\``, does]),
    )
  })

  it('names only existing commands and options, like all other pages', () => {
    const lines = [...[...PAGES.values()].join('\n').matchAll(/npx marketplace-webhooks ([^#`\n]*)/g)]
    expect(lines.length).toBeGreaterThan(7)
    for (const [, line = ''] of lines)
      expect([line, faultOf(line.trim().split(/\s+/))]).toEqual([line, undefined])
  })
})

describe('every command', () => {
  it('has a summary, a description and examples that the program accepts', () => {
    for (const { path, command } of commandsOf(PROGRAM)) {
      expect([path, command.summary() !== '', command.description() !== '']).toEqual([path, true, true])
      let help = ''
      command.configureOutput({
        writeOut(text) {
          help += text
        },
      })
      command.outputHelp()
      const examples = [...help.replaceAll(/\\\n\s+/g, '').matchAll(/\$ marketplace-webhooks (.*)/g)]
      expect([path, examples.length > 0]).toEqual([path, true])
      for (const [, line = ''] of examples)
        expect([line, faultOf(line.split(/\s+/))]).toEqual([line, undefined])
    }
  })
})

/** The commands that do work, with their full names. */
function commandsOf(parent: Command, before = ''): { path: string; command: Command }[] {
  return parent.commands.flatMap((command) => {
    const path = `${before}${command.name()}`
    if (command.commands.length > 0) return commandsOf(command, `${path} `)
    const args = command.registeredArguments.map((each) =>
      each.required ? ` <${each.name()}>` : ` [${each.name()}]`,
    )
    return [{ path: `${path}${args.join('')}`, command }]
  })
}

/** The part of a command line that does not exist: its command, or an option. */
function faultOf(words: readonly string[]): string | undefined {
  let command = PROGRAM
  for (const word of words) {
    const next = command.commands.find((each) => each.name() === word)
    if (!next) break
    command = next
  }
  if (command === PROGRAM || command.commands.length > 0) return 'no such command'
  const known = [...command.options, ...PROGRAM.options].map(({ long }) => long)
  return words.find((word) => word.startsWith('--') && !known.includes(word))
}

function rowsOf(title: string): string[][] {
  const section = DOCS.split(/^## /m).find((each) => each.startsWith(`${title}\n`)) ?? ''
  const rows = section.split('\n').filter((line) => line.startsWith('|'))
  return rows.slice(2).map((row) =>
    row
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  )
}
