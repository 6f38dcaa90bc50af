import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { createProject, type Project, type Result } from '../package/installed-package.js'
import { forWholeFile } from '../support/clean-up.js'
import { PAGES, type Snippet, snippetsOf } from '../support/docs/pages.js'
import { APP_ENV, PACKAGES, PRELUDE, PRELUDE_NAMES } from '../support/docs/prelude.js'
import { startProcess } from '../support/processes/running-process.js'
import { until } from '../support/until.js'

/**
 * Each block of JavaScript or TypeScript on a page is a file of an app that has installed the package. All are compiled
 * strictly (ES modules in JavaScript as TypeScript). Then they run, with free ports instead of 3000 and 9464:
 *
 * - Blocks without a mark run one after the other, with the names of the prelude of their page.
 * - `alone` runs in its own process until that process ends.
 * - A block before a `text` block runs in its own process until it has printed that text. JavaScript runs under plain
 *   node.
 * - `serves` is an app that runs until SIGTERM.
 * - `jest` is a test file, which passes in Jest as it is installed: without flags and without a configuration.
 * - `no-run` is only compiled.
 * - `external` needs a framework that this project does not install: `npm run test:consumers` runs it.
 */
const everything = [...PAGES.keys()].flatMap((path) => snippetsOf(path, ['ts', 'js']))
const snippets = everything.filter(({ marks }) => !marks.includes('external'))
let project: Project
let ranTogether: Promise<Result> | undefined

beforeAll(async () => {
  project = await forWholeFile(async () => createProject(PACKAGES))
  for (const path of PAGES.keys()) project.write(`${folderOf(path)}/prelude.ts`, PRELUDE)
  for (const snippet of snippets) {
    const text = textOf(snippet).replaceAll(/\b(3000|9464)\b/g, String(await freePort()))
    project.write(pathOf(snippet), text)
    if (pathOf(snippet).endsWith('.mjs')) project.write(pathOf(snippet).replace(/mjs$/, 'mts'), text)
  }
})

it('has no two files with the same name on a page', () => {
  const paths = snippets.map(pathOf)
  expect(paths.filter((path, i) => paths.indexOf(path) !== i)).toEqual([])
})

it('leaves out only blocks of recipes that `npm run test:consumers` runs unchanged', () => {
  const driven = readFileSync(join(__dirname, '..', '..', 'consumers', 'apps.mjs'), 'utf8')
  const out = everything.filter((snippet) => !snippets.includes(snippet))
  expect(out.length).toBeGreaterThan(0)
  for (const { page, code } of out) {
    const section = PAGES.get(page)
      ?.split(/^(?=## )/m)
      .find((each) => each.includes(code))
    const [, heading] = /^## (.*)$/m.exec(section ?? '') ?? []
    expect(page).toBe('docs/recipes.md')
    expect(driven).toContain(`section: '${heading}'`)
  }
})

it('compiles without errors', async () => {
  const files = snippets.map((snippet) => pathOf(snippet).replace(/mjs$/, 'mts'))
  const { code, stdout } = await project.tsc(files, {
    module: 'nodenext',
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    allowJs: true,
    checkJs: true,
  })
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
}, 120_000)

it('causes no warning while it runs', async () => {
  ranTogether ??= runTogether()
  const { code, stderr } = await ranTogether
  expect({ code, complaints: complaintsIn(stderr) }).toEqual({ code: 0, complaints: '' })
}, 120_000)

it('is one program in the README, as an ES module and in CommonJS', async () => {
  const [asModule, asCommonJs] = ['gate.mjs', 'gate.cjs'].map((name) =>
    snippets.find(({ page, file }) => page === 'README.md' && file === name),
  )
  const belowImports = asModule?.code.slice(asModule.code.indexOf('\n\n')) ?? ''
  const whole = asCommonJs?.code.replace(/^ *\/\/ Put all lines of gate\.mjs .*$/m, () => belowImports) ?? ''
  expect(whole).toContain('platform.close()')
  project.write('readme-in-commonjs/gate.cjs', whole.replaceAll('3000', String(await freePort())))
  const { code, stdout, stderr } = await project.node(['readme-in-commonjs/gate.cjs'])
  expect({ code, complaints: complaintsIn(stderr) }).toEqual({ code: 0, complaints: '' })
  expect(stdout.trim().split('\n').sort()).toEqual([...(asModule?.prints ?? [])].sort())
}, 60_000)

describe.each([...PAGES.keys()])('the code of %s', (path) => {
  const all = snippets.filter((each) => each.page === path && !each.marks.includes('no-run'))
  const together = all.filter(runsTogether)

  if (together.length > 0) {
    it('runs, one block after the other', async () => {
      ranTogether ??= runTogether()
      const { stdout, stderr } = await ranTogether
      const complaints = stdout.includes(`# end of ${path}\n`) ? '' : complaintsIn(stderr) || stderr
      expect(complaints).toBe('')
      for (const snippet of together) {
        const [, expected] = /^\/\/ prints: (.*)$/m.exec(snippet.code) ?? []
        const [, printed = ''] = stdout.split(`# ${pathOf(snippet)}\n`)
        if (expected) expect(printed.split(/^# /m)[0]).toContain(expected)
      }
    }, 120_000)
  }

  for (const snippet of all.filter(({ marks }) => marks.includes('alone'))) {
    it(`runs until its process ends: ${snippet.file}`, async () => {
      const { code, stdout, stderr } = await project.tsx(pathOf(snippet), APP_ENV)
      expect({ code, stdout: code === 0 ? '' : stdout, complaints: complaintsIn(stderr) }).toEqual({
        code: 0,
        stdout: '',
        complaints: '',
      })
    }, 60_000)
  }

  for (const snippet of all.filter(({ marks }) => marks.includes('jest'))) {
    it(`passes in Jest without flags and without a configuration: ${snippet.file}`, async () => {
      const { code, stderr } = await project.npx(['jest', pathOf(snippet)])
      expect({ code, stderr }).toEqual({
        code: 0,
        stderr: expect.stringMatching(/^Tests: +1 passed, 1 total$/m),
      })
    }, 60_000)
  }

  for (const snippet of all.filter(({ prints }) => prints.length > 0)) {
    it(`prints the output on the page: ${snippet.file}`, async () => {
      const file = pathOf(snippet)
      const loader = /\.m?ts$/.test(file) ? ['--import', pathToFileURL(require.resolve('tsx')).href] : []
      const running = startProcess(process.execPath, [...loader, file], {
        cwd: project.folder,
        env: { ...process.env, ...APP_ENV, NODE_OPTIONS: '' },
      })
      const printed = () => running.stdout().split('\n').slice(0, -1)
      const isThere = () => printed().length >= snippet.prints.length
      await until('its lines', () => isThere() || !running.isAlive())
      if (!isThere()) throw new Error(`it printed only:\n${running.stdout()}${running.stderr()}`)
      const lines = printed().slice(0, snippet.prints.length)
      expect([...lines].sort()).toEqual([...snippet.prints].sort())
    }, 60_000)
  }

  for (const snippet of all.filter(({ marks }) => marks.includes('serves'))) {
    it(`serves, and ends by itself after SIGTERM: ${snippet.file}`, async () => {
      const file = `serve-${folderOf(path)}.ts`
      project.write(
        file,
        `await import('./${pathOf(snippet)}')
const { marketplace } = await import('./${folderOf(path)}/marketplace.ts')
await marketplace.start()
const reply = await fetch('http://localhost:' + process.env.PORT + '/healthz')
console.log(reply.status, await reply.text())
process.kill(process.pid, 'SIGTERM')`,
      )
      const { code, stdout, stderr } = await project.tsx(file, { ...APP_ENV, PORT: String(await freePort()) })
      expect({ code, complaints: complaintsIn(stderr) }).toEqual({ code: 0, complaints: '' })
      expect(stdout).toContain('200 {"status":"ok"}\n')
    }, 60_000)
  }
})

function runsTogether({ marks, prints }: Snippet): boolean {
  return marks.length === 0 && prints.length === 0
}

/** Runs the blocks of all pages in one process. Each page has its own prelude, so pages do not share names. */
async function runTogether(): Promise<Result> {
  const lines = [...PAGES.keys()].flatMap((path) => {
    const blocks = snippets.filter((each) => each.page === path && runsTogether(each))
    const runs = blocks.map(
      (each) => `console.log('# ${pathOf(each)}')\nawait import('./${pathOf(each).replace(/ts$/, 'js')}')`,
    )
    return [...runs, `console.log('# end of ${path}')`]
  })
  project.write('run.ts', `${lines.join('\n')}\nprocess.exit(0)\n`)
  return project.tsx('run.ts', { ...APP_ENV, PORT: String(await freePort()) })
}

function folderOf(path: string): string {
  return path.replace(/\.md$/, '').replaceAll('/', '-').toLowerCase()
}

function pathOf({ page, file }: Snippet): string {
  return `${folderOf(page)}/${file}`
}

/**
 * Adds the names from the prelude that the block does not declare. What a block that runs with others imports from the
 * files of the app comes from the prelude too.
 */
function textOf({ file, code: written, marks }: Snippet): string {
  if (file.endsWith('.cjs') || (file.endsWith('.mjs') && !marks.includes('no-run'))) return written
  const code =
    marks.length > 0 ? written : written.replace(/^import .* from '\.\/(options|marketplace)\.ts'\n/gm, '')
  const used = PRELUDE_NAMES.filter((name) => new RegExp(`\\b${name}\\b`).test(code) && !declares(code, name))
  if (used.length === 0) return /^(import|export)\b/m.test(code) ? code : `export {}\n${code}`
  return `import { ${used.join(', ')} } from './prelude.js'\n${code}`
}

function declares(code: string, name: string): boolean {
  return new RegExp(`\\b(const|let|import)\\b[^=\\n]*\\b${name}\\b[^=\\n]*(=|from)|function ${name}\\b`).test(
    code,
  )
}

function complaintsIn(stderr: string): string {
  return stderr.replace(/^.*(ExperimentalWarning|node --trace-warnings).*\n/gm, '')
}

let nextPort = 10_000 + (process.pid % 10_000)

/**
 * A port below the range from which the system chooses ports, so that no other server or connection takes it before it
 * is used.
 */
function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const port = nextPort++
    const server = createServer()
      .once('error', () => resolve(freePort()))
      .listen(port, () => void server.close(() => resolve(port)))
  })
}
