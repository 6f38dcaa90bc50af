/**
 * Refuses to publish without a repository, because provenance names the repository of each version, or without a chapter of the changelog. A
 * dry run names a missing repository and goes on: the workflow of a release sets it.
 */
import { readFileSync } from 'node:fs'

const root = new URL('..', import.meta.url)
const { repository, version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'))
const changelog = readFileSync(new URL('CHANGELOG.md', root), 'utf8')
const isDryRun = process.env.npm_config_dry_run === 'true'
let refused = false

if (repository === undefined)
  refuse(
    'package.json names no repository: `npm pkg set repository=github:<owner>/<name>`, or run the workflow "Release"',
    !isDryRun,
  )
if (!changelog.includes(`\n## ${version}\n`)) refuse(`CHANGELOG.md has no chapter ${version}`, true)
process.exit(refused ? 1 : 0)

function refuse(reason, isFinal) {
  console.error(`Cannot publish: ${reason}`)
  refused ||= isFinal
}
