import { describe, expect, it } from '@jest/globals'
import type { Command } from 'commander'
import { createProgram } from '../../lib/cli/program.js'
import { EXIT_CODES, FIXES } from '../../lib/cli/terminal/exit-codes.js'
import { SETTINGS } from '../../lib/environment.js'
import { names, PAGES, tableWith } from '../support/docs/pages.js'

const PROGRAM = createProgram('0.0.0', () => async () => {})

describe('the page on the command line', () => {
  it('lists every command with its arguments and the description that the program prints', () => {
    const written = tableWith('Command', 'What it does').map(Object.values)
    expect(written).toEqual(
      commandsOf(PROGRAM).map(({ path, command }) => [`\`${path}\``, command.summary()]),
    )
  })

  it('lists every setting with its option', () => {
    const written = tableWith('Setting', 'Option', 'Several').map(({ Setting, Option = '', Several }) => [
      names(Setting)[0],
      { option: names(Option)[0], isList: Several !== '' },
    ])
    expect(Object.fromEntries(written)).toEqual(SETTINGS)
  })

  it('lists every exit code with its meaning', () => {
    expect(tableWith('Exit code', 'Meaning').map(Object.values)).toEqual(Object.entries(EXIT_CODES))
  })

  it('names only existing commands and options, like all other pages', () => {
    const lines = [...[...PAGES.values()].join('\n').matchAll(/npx marketplace-webhooks ([^#`\n]*)/g)]
    expect(lines.length).toBeGreaterThan(7)
    for (const [, line = ''] of lines)
      expect([line, faultOf(line.trim().split(/\s+/))]).toEqual([line, undefined])
  })
})

describe('every command', () => {
  it('has a summary, a description, examples that the program accepts, and help in 80 columns', () => {
    for (const { path, command } of commandsOf(PROGRAM)) {
      expect([path, command.summary() !== '', command.description() !== '']).toEqual([path, true, true])
      let help = ''
      command.configureOutput({
        writeOut(text) {
          help += text
        },
      })
      command.outputHelp()
      expect([path, help.split('\n').filter((line) => line.length > 80)]).toEqual([path, []])
      const examples = [...help.replaceAll(/\\\n\s+/g, '').matchAll(/\$ marketplace-webhooks (.*)/g)]
      expect([path, examples.length > 0]).toEqual([path, true])
      for (const [, line = ''] of examples)
        expect([line, faultOf(line.split(/\s+/))]).toEqual([line, undefined])
    }
  })
})

it('every error with a fix tells the person what to do, in sentences', () => {
  expect(Object.keys(FIXES).length).toBeGreaterThan(5)
  for (const [code, fix] of Object.entries(FIXES))
    expect([code, fix]).toEqual([code, expect.stringMatching(/^[A-Z].{20,}\.$/)])
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
