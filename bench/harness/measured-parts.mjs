import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PROJECT } from './machine.mjs'

/** What a figure depends on. Results and docs change none. */
const MEASURED = [
  'lib',
  'scripts',
  'bench/harness',
  'bench/parts',
  'bench/servers',
  'bench/package.json',
  'bench/package-lock.json',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.build.json',
]
const FILE = join(PROJECT, 'reports', 'bench-parts.json')

/**
 * The parts that full runs have measured since the last whole one ended: one that was interrupted, or with `--only`. Parts of
 * other code, of changes without a commit or of another version of Node do not count. A quick run keeps none. The file can be
 * committed, so a run of hours can go on elsewhere.
 */
export function openMeasuredParts({ node, quick }) {
  const code = quick ? undefined : codeOf()
  const former = code !== undefined && existsSync(FILE) ? JSON.parse(readFileSync(FILE, 'utf8')) : undefined
  const isSame = former?.code === code && former?.node === node
  const measured = isSame ? former : { code, node, parts: {}, leftOut: {}, dates: {}, cpus: {} }
  return {
    /** By the name of the part. */
    parts: measured.parts,
    leftOut: measured.leftOut,
    dates: measured.dates,
    cpus: measured.cpus,
    add(name, { figures, leftOut, date, cpu }) {
      // As from the file, so that a run in pieces gives the same as a run in one go.
      measured.parts[name] = JSON.parse(JSON.stringify(figures))
      measured.leftOut[name] = leftOut
      measured.dates[name] = date
      measured.cpus[name] = cpu
      if (code === undefined) return
      mkdirSync(dirname(FILE), { recursive: true })
      writeFileSync(FILE, JSON.stringify(measured))
    },
    /** The results of all of them are written. */
    remove: () => rmSync(FILE, { force: true }),
  }
}

/** The trees of the code in git; undefined outside of it, or with changes that have no commit. */
function codeOf() {
  const git = (...args) =>
    execFileSync('git', args, { cwd: PROJECT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  try {
    if (git('status', '--porcelain', '--', ...MEASURED) !== '') return undefined
    return git('rev-parse', ...MEASURED.map((path) => `HEAD:${path}`))
  } catch {
    return undefined
  }
}
