import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Instrumenter } from '@stryker-mutator/instrumenter'
import { type Edit, sqlMutants } from './sql-mutants.js'

/** A small change of a module. */
export interface Mutant extends Edit {
  /** The path of the module from the root of the project. */
  module: string
  line: number
  /** `old → new`, on one line. */
  change: string
}

/** All mutants of the modules: those that Stryker makes of code, and ours of SQL. */
export async function mutantsOf(root: string, modules: readonly string[]): Promise<Mutant[]> {
  const all: Mutant[] = []
  for (const module of modules) {
    const source = readFileSync(join(root, module), 'utf8')
    const edits = [...(await codeMutants(module, source)), ...sqlMutants(source)]
    all.push(...edits.map((edit) => ({ module, ...edit, ...described(source, edit) })))
  }
  return all
}

/** As many of the mutants, which the seed chooses. The same seed chooses the same ones while the modules stay the same. */
export function sampleOf(mutants: readonly Mutant[], count: number, seed: number): Mutant[] {
  const rankOf = ({ module, start, end, replacement }: Mutant) =>
    createHash('sha1')
      .update(JSON.stringify([seed, module, start, end, replacement]))
      .digest('hex')
  const ranked = mutants.map((mutant) => ({ mutant, rank: rankOf(mutant) }))
  const chosen = ranked.sort((a, b) => (a.rank < b.rank ? -1 : 1)).slice(0, count)
  return mutants.filter((mutant) => chosen.some((each) => each.mutant === mutant))
}

/** A logger for Stryker, which prints nothing. */
const SILENT = { isDebugEnabled: () => false, debug() {}, info() {}, warn() {} }

async function codeMutants(module: string, source: string): Promise<Edit[]> {
  const instrumenter = new Instrumenter(SILENT as never)
  const files = [{ name: module, mutate: true, content: source }]
  const settings = { plugins: null, ignorers: [], excludedMutations: [] }
  const { mutants } = await instrumenter.instrument(files, settings as never)
  const lines = startsOfLines(source)
  const offsetOf = ({ line, column }: { line: number; column: number }) => (lines[line] as number) + column
  return mutants.flatMap(({ location, mutatorName, replacement, status }) => {
    const [start, end] = [offsetOf(location.start), offsetOf(location.end)]
    const before = source.slice(0, start)
    const isSql = source[start] === '`' && /\bsql(?:<[^`;]*>)?$/.test(before)
    if (status === 'Ignored' || isSql) return []
    const isLoose = LOOSER.has(mutatorName) && !wouldBeCalled(before)
    return [{ start, end, replacement: isLoose ? `(${replacement})` : replacement }]
  })
}

/** What these put into the source may bind less than what it replaces. */
const LOOSER = new Set(['BooleanLiteral', 'LogicalOperator', 'MethodExpression'])

/** Whether a parenthesis behind this text, on a new line, would call what stands before. */
function wouldBeCalled(before: string): boolean {
  return /[\w)\]'"`]\s*\n\s*$/.test(before)
}

function startsOfLines(source: string): number[] {
  return [0, ...[...source.matchAll(/\n/g)].map(({ index }) => index + 1)]
}

function described(source: string, { start, end, replacement }: Edit): Pick<Mutant, 'line' | 'change'> {
  const [before, after] = [source.slice(start, end), replacement].map((text) => {
    const line = text.replace(/\s+/g, ' ').trim()
    return line === '' ? 'nothing' : line.length > 60 ? `${line.slice(0, 57)}…` : line
  })
  return { line: source.slice(0, start).split('\n').length, change: `${before} → ${after}` }
}
