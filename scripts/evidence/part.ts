/** What a step found: sums by name, what did not hold, and names of which it keeps a list. */
export interface Outcome {
  figures: Record<string, number>
  broken: string[]
  names?: Record<string, string[]>
}

/** How a command ended, and what it printed. `code` is null if a signal ended it. */
export interface Run {
  code: number | null
  stdout: string
  stderr: string
}

/** A few minutes of work of a part, in a process of its own. */
export interface Step {
  /** Unique in its part. */
  id: string
  /** The arguments of Node. */
  command: readonly string[]
  /** Reads the output of the command. Throws if the command could not do its work, so that nothing is recorded. */
  outcome(run: Run): Outcome
}

/** A step that was made. */
export interface EvidenceRecord extends Outcome {
  part: string
  step: string
  commit: string
  node: string
  at: string
  tookMs: number
}

/** `short` ends within ten minutes, all parts together, on a slow machine with two cores. */
export type Scope = 'whole' | 'short'

/** Tests may read everything else: pages, examples, settings. These are generated, or give the reasons of decisions. */
export const IGNORED = [
  'docs/evidence.md',
  'docs/performance.md',
  'docs/decisions',
  'bench/results',
  'reports',
]

/** On these files depends everything that runs the package. The second oracle is in them, and judges worlds only. */
const RUNS = ['lib', '__tests__/support', 'scripts', ':(exclude)scripts/mutate', 'package-lock.json']

/** Paths on which evidence depends, as `git` takes them: that of servers, of worlds, of broken code, and of tests. */
export const DEPENDS_ON = {
  servers: [...RUNS, ':(exclude)__tests__/support/second-oracle'],
  worlds: RUNS,
  brokenCode: [
    ...['lib', '__tests__', 'scripts', 'package-lock.json'],
    ...[':(exclude)scripts/evidence/kills', ':(exclude)scripts/evidence/trials'],
  ],
  tests: ['.', ...IGNORED.map((path) => `:(exclude)${path}`)],
}

/** One kind of evidence. */
export interface Part {
  name: string
  /** One of `DEPENDS_ON`: its records are void when a file of these paths changes. */
  dependsOn: readonly string[]
  /** For people: what is tried. */
  title: string
  /** Whether its steps use the built package, which must be that of this commit. */
  needsBuild?: boolean
  steps(scope: Scope): Step[]
  /** Its row of the page: how much was tried, and with what result. `broken` is what only all steps together show. */
  row(records: readonly EvidenceRecord[]): { amount: string; result: string; broken?: string[] }
  /** The arguments of Node that repeat one seed. Throws a usage message for a seed of another form. */
  repeat(seed: string): readonly string[]
  /** A seed that `repeat` takes. */
  example: string
}

/** The sum of one figure. */
export function sumOf(records: readonly Outcome[], figure: string): number {
  return records.reduce((sum, { figures }) => sum + (figures[figure] ?? 0), 0)
}

/** All names of one list, each once. */
export function namesOf(records: readonly Outcome[], list: string): string[] {
  return [...new Set(records.flatMap(({ names }) => names?.[list] ?? []))]
}

/** 12345 as `12,345`. */
export const inWords = (count: number): string => Math.round(count).toLocaleString('en-US')

/** Thrown for an argument that nobody can mean: the command prints it and ends with 2. */
export class UsageError extends Error {}

/** A seed as a whole number from 1. */
export function seedOf(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`A seed is a whole number from 1, not ${text}`)
  return Number(text)
}

/** What did not hold, as a command found it. If it ended badly and found nothing, that is what did not hold. */
export function brokenIn({ code, stderr }: Run, found: readonly string[]): string[] {
  if (code === 0 || found.length > 0) return [...found]
  return [`it ended with ${code ?? 'a signal'}: ${endOf(stderr)}`]
}

/** The last words of a process. */
export const endOf = (stderr: string): string => stderr.trim().slice(-2_000)

/** The lines of an output that are JSON. */
export function jsonLines<T>(stdout: string): T[] {
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as T)
}
