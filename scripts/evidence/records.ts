import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type EvidenceRecord, UsageError } from './part.js'

/** What evidence depends on. A page of docs makes none of it void. */
const DEPENDS_ON = ['lib', '__tests__', 'scripts', 'package-lock.json']

/** The records of this state of the code: a line of JSON for each step, in a file that its git trees name. */
export function openRecords(root: string) {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  const changed = git('status', '--porcelain', '--', ...DEPENDS_ON)
  if (changed !== '')
    throw new UsageError(
      `Commit your changes first, because evidence names a commit:\n${changed}\nOnly ${DEPENDS_ON.join(', ')} matter.`,
    )
  const trees = git('rev-parse', ...DEPENDS_ON.map((path) => `HEAD:${path}`))
  const key = createHash('sha256').update(trees).digest('hex').slice(0, 16)
  const folder = join(root, 'reports', 'evidence')
  const file = join(folder, `${key}.jsonl`)
  const commit = git('rev-parse', 'HEAD')
  // A run that was killed may have left half a line at the end.
  if (existsSync(file)) {
    const text = readFileSync(file, 'utf8')
    if (!text.endsWith('\n')) writeFileSync(file, text.slice(0, text.lastIndexOf('\n') + 1))
  }

  return {
    file,
    commit,
    all(): EvidenceRecord[] {
      if (!existsSync(file)) return []
      return readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as EvidenceRecord)
    },
    add(record: Omit<EvidenceRecord, 'commit' | 'node' | 'at'>) {
      mkdirSync(folder, { recursive: true })
      const whole = { ...record, commit, node: process.versions.node, at: new Date().toISOString() }
      appendFileSync(file, `${JSON.stringify(whole)}\n`)
    },
  }
}

export type Records = ReturnType<typeof openRecords>
