import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { VERSION } from '../../lib/telemetry/version.js'
import { packed } from './installed-package.js'

const ROOT = join(__dirname, '..', '..')
const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

describe('a release', () => {
  it.each(['README.md', 'docs/why.md'])(
    'has, with its dependencies, the size on disk that %s states',
    (path) => {
      const own = packed().files.map((file) => join(ROOT, file))
      const bytes = onDisk([...own, ...[...dependencies()].flatMap(filesOf)])
      const [, shown] =
        /(?:!\[Installed size|\*\*Machine\*\*:) (\d+) MB/.exec(readFileSync(join(ROOT, path), 'utf8')) ?? []
      expect(Math.abs(Number(shown) * MIB - bytes)).toBeLessThan(MIB)
    },
  )

  it('has the version of package.json in its code', () => {
    expect(VERSION).toBe(PACKAGE.version)
  })

  it('is published with its provenance, or not at all', () => {
    expect(PACKAGE.publishConfig).toEqual({ access: 'public', provenance: true })
    expect(PACKAGE.scripts.prepublishOnly).toBe('node scripts/publishable.mjs')
    const check = (env: Record<string, string>) => () =>
      execFileSync(process.execPath, [join(ROOT, 'scripts', 'publishable.mjs')], { stdio: 'pipe', env })
    if (PACKAGE.repository === undefined) expect(check({})).toThrow('package.json names no repository')
    else expect(check({})).not.toThrow()
    expect(check({ npm_config_dry_run: 'true' })).not.toThrow()
  })

  it('is cut by a workflow that tests first, and only in the repository of the variable', () => {
    const workflow = readFileSync(join(ROOT, '.github', 'workflows', 'release.yml'), 'utf8')
    const [test = '', publish = ''] = workflow.split('\n  publish:\n')
    expect(test).toContain('if: vars.PUBLISH_REPOSITORY == github.repository')
    const ran = [...test.matchAll(/- run: npm (?:run )?(\S+)/g)].map(([, script]) => script)
    expect(ran).toEqual(['ci', 'test', 'test:types', 'test:consumers'])
    expect(Object.keys(PACKAGE.scripts)).toEqual(expect.arrayContaining(ran.slice(1)))
    expect(publish).toMatch(/^ {4}needs: test$/m)
    expect(publish).toMatch(/^ {6}id-token: write$/m)
    const steps = [...publish.matchAll(/- run: (npm (?!install|pkg).+)|(secrets\.\w+)/g)].map(
      ([, command, secret]) => command ?? secret,
    )
    expect(steps).toEqual([
      'npm ci --ignore-scripts',
      'npm run build',
      'npm run prepublishOnly',
      'secrets.NPM_TOKEN',
      'npm publish --ignore-scripts --provenance $DRY_RUN',
    ])
    expect(publish.indexOf('secrets.')).toBeGreaterThan(publish.indexOf('    steps:'))
  })

  it('is what the examples install, and has a chapter of the changelog', () => {
    const examples = readdirSync(join(ROOT, 'examples')).map(
      (name) => JSON.parse(readFileSync(join(ROOT, 'examples', name, 'package.json'), 'utf8')).dependencies,
    )
    const [major] = VERSION.split('.')
    for (const dependencies of examples) expect(dependencies['marketplace-webhooks']).toBe(`^${major}.0.0`)
    expect(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')).toContain(`\n## ${VERSION}\n`)
  })

  it('needs no script at its installation', () => {
    const atInstallation = ['preinstall', 'install', 'postinstall', 'prepare']
    expect(atInstallation.filter((script) => script in PACKAGE.scripts)).toEqual([])
  })
})

/** The files that `npm install` adds, without Express and the database library, which the app chooses. */
function dependencies(): Set<string> {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
  const found = new Set<string>(Object.keys(PACKAGE.dependencies))
  for (const name of found)
    for (const further of Object.keys(packages[`node_modules/${name}`].dependencies ?? {})) found.add(further)
  return found
}

function filesOf(name: string): string[] {
  const folder = join(ROOT, 'node_modules', name)
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file))
}

const MIB = 1_048_576
const BLOCK = 4_096

/** What `du` shows: a file takes whole blocks, and a folder one. */
function onDisk(paths: readonly string[]): number {
  return paths.reduce((sum, path) => sum + Math.ceil(statSync(path).size / BLOCK) * BLOCK, 0)
}
