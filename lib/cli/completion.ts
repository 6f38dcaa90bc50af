import { Argument, type Command, type Option } from 'commander'
import { examples } from './terminal/command-options.js'
import type { Act } from './terminal/context.js'
import { DONE } from './terminal/exit-codes.js'

const SCRIPTS = { bash: bashScript, zsh: zshScript }
type Shell = keyof typeof SCRIPTS

export function addCompletion(program: Command, act: Act) {
  program
    .command('completion')
    .summary('print the completion for bash or zsh')
    .description(
      'Print a script by which the shell completes commands, options and their values. For bash put ' +
        'eval "$(marketplace-webhooks completion bash)" into ~/.bashrc; for zsh the same with zsh into ~/.zshrc, after compinit. It ' +
        'completes marketplace-webhooks in the PATH (npm install --global, or node_modules/.bin), not npx.',
    )
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)))
    .addHelpText('after', examples('completion bash', 'completion zsh'))
    .action(
      act(async ({ out }, shell: Shell) => {
        const script = SCRIPTS[shell](placesOf(program))
        out.result({ script }, () => script)
        return DONE
      }),
    )
}

interface Word {
  word: string
  about: string
}

/** A place in a command line: after the program, after a group of commands, or after a command. */
interface Place {
  /** The names of the commands before it, each with a space in front. */
  path: string
  commands: Word[]
  /** What the arguments may be, if that is limited. */
  values: readonly string[]
  options: (Word & { takesValue: boolean; values: readonly string[] })[]
}

/** Every place of the program, from its commands. */
function placesOf(command: Command, path = '', global: readonly Option[] = command.options): Place[] {
  const options = path === '' ? global : [...command.options, ...global]
  const place: Place = {
    path,
    commands: command.commands.map((each) => ({ word: each.name(), about: each.summary() })),
    values: command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
    options: [
      // A value that may be left out is not waited for.
      ...options.map(({ long, description, required, argChoices }) => ({
        ...{ word: long ?? '', about: description, takesValue: required },
        values: argChoices ?? [],
      })),
      { word: '--help', about: 'show the help', takesValue: false, values: [] },
    ],
  }
  return [place, ...command.commands.flatMap((each) => placesOf(each, `${path} ${each.name()}`, global))]
}

/** The lines by which both shells find the place of the word to complete. */
function walk(places: readonly Place[]): string {
  const paths = places.flatMap(({ path }) => (path === '' ? [] : [quoted(path)]))
  return `case "$at $word" in
      ${paths.join(' | ')}) at="$at $word" ;;
    esac`
}

/** A case for each option that takes a value, with what it may be. */
function valueCases(places: readonly Place[], complete: (values: readonly string[]) => string): string {
  const cases = places.flatMap(({ path, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(({ word, values }) => `    ${quoted(`${path} ${word}`)}) ${complete(values)}; return ;;`),
  )
  return cases.join('\n')
}

/** Where there is nothing to propose, bash proposes files. */
function bashScript(places: readonly Place[]): string {
  const words = places.map(({ path, commands, values, options }) => {
    const all = [...[...commands, ...options].map(({ word }) => word), ...values]
    return `    ${quoted(path)}) words=${quoted(all.join(' '))} ;;`
  })
  const propose = (values: string) => `COMPREPLY=($(compgen -W ${values} -- "$current"))`
  return `_marketplace_webhooks() {
  local at='' words='' word current="\${COMP_WORDS[COMP_CWORD]}"
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    ${walk(places)}
  done
  COMPREPLY=()
  case "$at \${COMP_WORDS[COMP_CWORD-1]}" in
${valueCases(places, (values) => (values.length === 0 ? 'true' : propose(quoted(values.join(' ')))))}
  esac
  case "$at" in
${words.join('\n')}
  esac
  ${propose('"$words"')}
}
complete -o default -F _marketplace_webhooks marketplace-webhooks`
}

function zshScript(places: readonly Place[]): string {
  const arrayOf = (words: readonly Word[]) =>
    words.map(({ word, about }) => quoted(`${word}:${about}`)).join(' ')
  const words = places.map(
    ({ path, commands, values, options }) => `    ${quoted(path)})
      commands=(${arrayOf([...commands, ...values.map((word) => ({ word, about: '' }))])})
      options=(${arrayOf(options)}) ;;`,
  )
  return `_marketplace_webhooks() {
  local at='' word
  local -a commands options
  for word in "\${(@)words[2,CURRENT-1]}"; do
    ${walk(places)}
  done
  case "$at \${words[CURRENT-1]}" in
${valueCases(places, (values) => (values.length === 0 ? '_files' : `compadd -- ${values.join(' ')}`))}
  esac
  case "$at" in
${words.join('\n')}
  esac
  local found=1
  _describe -o option options && found=0
  if (( \${#commands} )); then
    _describe command commands && found=0
  else
    _files && found=0
  fi
  return found
}
compdef _marketplace_webhooks marketplace-webhooks`
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
