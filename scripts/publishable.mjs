/** Refuses to publish without a repository: provenance names the repository of each version. */
import { readFileSync } from 'node:fs'

const root = new URL('..', import.meta.url)
const { repository, version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'))
const changelog = readFileSync(new URL('CHANGELOG.md', root), 'utf8')
const missing = []
if (repository === undefined)
  missing.push('package.json names no repository: `npm pkg set repository=github:<owner>/<name>`')
if (!changelog.includes(`\n## ${version}\n`)) missing.push(`CHANGELOG.md has no chapter ${version}`)
for (const each of missing) console.error(`Cannot publish: ${each}`)
process.exit(missing.length === 0 ? 0 : 1)
