import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type EvidenceRecord, type Part, UsageError } from './part.js'

/**
 * The records of this state of the code: a line of JSON for each step, in a file for each part, which it and the
 * files on which it depends name. So a mended test leaves the kills of servers as they are.
 */
export function openRecords(root: string, parts: readonly Pick<Part, 'name' | 'dependsOn'>[]) {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  // One by one, because what one part excludes may count for another.
  const changesOf = ({ dependsOn }: Pick<Part, 'dependsOn'>) =>
    git('status', '--porcelain', '--', ...dependsOn)
  const changed = new Set(parts.flatMap((part) => changesOf(part).split('\n')).filter((line) => line !== ''))
  if (changed.size > 0)
    throw new UsageError(
      `Commit your changes first, because evidence names a commit:\n${[...changed].join('\n')}`,
    )
  const commit = git('rev-parse', 'HEAD')
  const folder = join(root, 'reports', 'evidence')
  const files = new Map(parts.map(({ name, dependsOn }) => [name, fileOf(name, dependsOn)]))
  for (const file of files.values()) endAtWholeLine(file)

  function fileOf(name: string, dependsOn: readonly string[]): string {
    const contents = git('ls-files', '--stage', '--', ...dependsOn)
    const key = createHash('sha256').update(contents).digest('hex').slice(0, 16)
    return join(folder, `${name}-${key}.jsonl`)
  }

  return {
    all: (): EvidenceRecord[] => [...files.values()].flatMap(recordsIn),
    add(record: Omit<EvidenceRecord, 'commit' | 'node' | 'at'>) {
      mkdirSync(folder, { recursive: true })
      const whole = { ...record, commit, node: process.versions.node, at: new Date().toISOString() }
      appendFileSync(files.get(record.part) as string, `${JSON.stringify(whole)}\n`)
    },
  }
}

/** A run that was killed may have left half a line at the end. */
function endAtWholeLine(file: string): void {
  if (!existsSync(file)) return
  const text = readFileSync(file, 'utf8')
  if (!text.endsWith('\n')) writeFileSync(file, text.slice(0, text.lastIndexOf('\n') + 1))
}

function recordsIn(file: string): EvidenceRecord[] {
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as EvidenceRecord)
}

export type Records = ReturnType<typeof openRecords>
