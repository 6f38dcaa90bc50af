import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix, relative, sep } from 'node:path'
import { describe, expect, it } from '@jest/globals'

/** What every part may import. */
const GROUND_FLOOR = ['base/', 'telemetry/']
const SOURCES = [...GROUND_FLOOR, 'events/', 'platform/', 'store/']
/** The folders of lib that each folder may import, besides its own. */
const ARROWS: Record<string, readonly string[]> = {
  'base/': [],
  'telemetry/': ['base/'],
  'events/': GROUND_FLOOR,
  'platform/': GROUND_FLOOR,
  'store/': GROUND_FLOOR,
  // The two engines of the SQL layer do not import each other.
  'sqlite/': [...GROUND_FLOOR, 'store/'],
  'postgres/': [...GROUND_FLOOR, 'store/'],
  'entitlement/': SOURCES,
  'work/': SOURCES,
  'operations/': [...SOURCES, 'entitlement/', 'work/'],
  'express/': [...GROUND_FLOOR, 'entitlement/', 'work/'],
  'api/': [...SOURCES, 'entitlement/', 'work/', 'operations/', 'express/'],
  // The command line needs the public interface of the package, its settings, and its checks of an address, an identifier and SQLite.
  'cli/': [
    ...['index.ts', 'testing/index.ts', 'environment.ts'],
    ...['store-option.ts', 'base/record.ts', 'sqlite/drivers.ts'],
  ],
  'console/': ['index.ts'],
  'testing/': [...GROUND_FLOOR, 'events/', 'entitlement/purchase-state.ts'],
}
/** The files at the top may import everything except the entry itself and files for tests only. */
const TOP = [
  'copy.ts',
  'environment.ts',
  'index.ts',
  'lifecycle.ts',
  'marketplace.ts',
  'option-checks.ts',
  'options.ts',
  'parts.ts',
  'restore.ts',
  'store-option.ts',
]
const NOT_FOR_TOP = ['index.ts', 'testing/', 'cli/', 'console/']

/** Packages that only one place may import. */
const OWNERS: Record<string, readonly string[]> = {
  debug: ['telemetry/'],
  '@opentelemetry/api': ['telemetry/'],
  commander: ['cli/'],
  // lib knows Express 4 and 5 by shape only.
  express: [],
}
/** One file calls the platform. The command line also delivers to an app, as the platform does. */
const FETCHES = ['cli/terminal/post.ts', 'platform/http.ts']
/** A file is one idea, and the whole of it. Beyond this it is two. */
const MAX_LINES = 400
/** A folder is a room that one sees at a glance: about a dozen entries. */
const MAX_ENTRIES = 14
/** A separate program, which runs in browsers. */
const PAGE = join(__dirname, '..', 'lib', 'console', 'page')
const BUNDLE = join('console', 'page-bundle.ts')

describe('the checker of imports', () => {
  const fine = {
    'base/errors.ts': '',
    'events/registry.ts':
      "import { ConfigError } from '../base/errors.js'\nimport { z } from 'zod'\nimport './a.js'",
    'events/a.ts': '',
    'work/reading/refresher.ts': "import type { Store } from '../../store/store.js'",
    'store/store.ts': '',
    'entitlement/decide.ts': '',
    'express/reply.ts': '',
    'testing/index.ts': '',
    'console/index.ts': "import { ERROR_CODES } from '../index.js'",
    'index.ts': '',
    'platform/http.ts': 'const reply = await fetch(url)',
    'marketplace.ts': "import { a } from './work/reading/refresher.js'",
  }
  const planted: Record<string, [file: string, source: string, fault: string]> = {
    'the ground floor importing a folder': [
      'base/errors.ts',
      "import { Store } from '../store/store.js'",
      'base/errors.ts must not import store/store.ts',
    ],
    siblings: [
      'work/reading/refresher.ts',
      "import {\n  decide,\n} from '../../entitlement/decide.js'",
      'work/reading/refresher.ts must not import entitlement/decide.ts',
    ],
    'a type importing from a higher layer': [
      'store/store.ts',
      "import type { A } from '../events/registry.js'",
      'store/store.ts must not import events/registry.ts',
    ],
    'a re-export': [
      'events/a.ts',
      "export { a } from '../express/reply.js'",
      'events/a.ts must not import express/reply.ts',
    ],
    'an import inside a function': [
      'store/store.ts',
      "const m = await import('../marketplace.js')",
      'store/store.ts must not import marketplace.ts',
    ],
    'the product importing the simulator': [
      'marketplace.ts',
      "import { a } from './testing/index.js'",
      'marketplace.ts must not import testing/index.ts',
    ],
    'the product importing the console': [
      'marketplace.ts',
      "import { a } from './console/index.js'",
      'marketplace.ts must not import console/index.ts',
    ],
    'the console bypassing the public methods': [
      'console/index.ts',
      "import type { Store } from '../store/store.js'",
      'console/index.ts must not import store/store.ts',
    ],
    'a package that belongs to another part': [
      'work/reading/refresher.ts',
      "import createDebug from 'debug'",
      'work/reading/refresher.ts must not import the package debug',
    ],
    'a call of fetch': [
      'work/reading/refresher.ts',
      'const reply = await globalThis.fetch(url)',
      'work/reading/refresher.ts must not call fetch',
    ],
    'a circle': [
      'events/a.ts',
      "import './registry.js'",
      'a circle: events/a.ts → events/registry.ts → events/a.ts',
    ],
    'a file that belongs to no layer': ['utils.ts', '', 'utils.ts belongs to no layer'],
    'an import of a missing file': [
      'base/errors.ts',
      "import { a } from './gone.js'",
      'base/errors.ts imports base/gone.ts, which does not exist',
    ],
    'a long file': [
      'base/errors.ts',
      '\n'.repeat(MAX_LINES + 1),
      `base/errors.ts is longer than ${MAX_LINES} lines`,
    ],
  }

  it('finds no violation in a tree that follows the layers', () => {
    expect(faultsOf(fine)).toEqual([])
  })

  for (const [what, [file, source, fault]] of Object.entries(planted)) {
    it(`finds ${what}`, () => {
      expect(faultsOf({ ...fine, [file]: source })).toContain(fault)
    })
  }

  it('reads code only: a word in a comment, or a method called fetch, is not a violation', () => {
    const source = "// import { a } from '../work/a.js' and fetch(url)\nconst a = options.fetch(1)"
    expect(faultsOf({ ...fine, 'store/store.ts': source })).toEqual([])
  })
})

describe('lib', () => {
  const sources = readTree(join(__dirname, '..', 'lib'))

  it('contains all expected files', () => {
    expect(Object.keys(sources)).toEqual(expect.arrayContaining([...TOP, 'platform/http.ts']))
  })

  it('follows the layers, has no cycles and no long files', () => {
    expect(faultsOf(sources)).toEqual([])
  })

  it(`has at most ${MAX_ENTRIES} entries in a folder`, () => {
    const entries = new Map<string, Set<string>>()
    for (const file of [
      ...Object.keys(sources),
      ...pageFiles().map((each) => posix.join('console/page', each)),
    ]) {
      const parts = file.split('/')
      for (let depth = 1; depth < parts.length; depth++) {
        const folder = parts.slice(0, depth).join('/')
        entries.set(folder, (entries.get(folder) ?? new Set()).add(parts[depth] as string))
      }
    }
    expect(entries.size).toBeGreaterThan(20)
    const crowded = [...entries].filter(([, names]) => names.size > MAX_ENTRIES).map(([folder]) => folder)
    expect(crowded).toEqual([])
  })

  it('calls the platform from one file, and an app from another', () => {
    const calling = Object.keys(sources).filter((file) => callsFetch(codeOf(sources[file] ?? '')))
    expect(calling.sort()).toEqual(FETCHES)
  })
})

describe('the page of the console', () => {
  const files = pageFiles().filter((file) => /\.(tsx?|css)$/.test(file))

  it('imports only types from the server, and its files stay short', () => {
    expect(files.length).toBeGreaterThan(20)
    for (const file of files) {
      const source = readFileSync(join(PAGE, file), 'utf8')
      const values = [...codeOf(source).matchAll(/^import (?!type\b)[^;'"]*?from ['"](\.[^'"]+)['"]/gm)]
        .map(([, path]) => posix.join(posix.dirname(file), path as string))
        .filter((path) => path.startsWith('..'))
      expect({ file, values }).toEqual({ file, values: [] })
      expect({ file, isLong: source.split('\n').length - 1 > MAX_LINES }).toEqual({ file, isLong: false })
    }
  })
})

describe('ARCHITECTURE.md', () => {
  it('names only files and folders that exist', () => {
    const root = join(__dirname, '..')
    const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
    const named = [...text.matchAll(/`((?:lib|__tests__)\/[\w./-]*)`/g)].map(([, path]) => path as string)
    expect(named.length).toBeGreaterThan(20)
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  it('names every folder of lib and every file at the top', () => {
    const text = readFileSync(join(__dirname, '..', 'ARCHITECTURE.md'), 'utf8')
    const folders = Object.keys(ARROWS)
    expect([...folders, ...TOP].filter((part) => !text.includes(`\`lib/${part}`))).toEqual([])
  })
})

describe('__tests__/support/README.md', () => {
  it('lists every file of its folder once, and no other', () => {
    const support = join(__dirname, 'support')
    const files = readdirSync(support, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name !== 'README.md')
      .map(({ parentPath, name }) => posix.join(...relative(support, parentPath).split(sep), name))
    const rows = readFileSync(join(support, 'README.md'), 'utf8').matchAll(/^\| `([^`]+\.\w+)` \| \S/gm)
    const listed = [...rows].map(([, name]) => name as string)
    // A row may be for all files of a folder.
    const rowOf = (file: string) =>
      listed.find((name) => name === `${posix.dirname(file)}/*.ts` && file.endsWith('.ts')) ?? file
    expect(listed.sort()).toEqual([...new Set(files.map(rowOf))].sort())
  })
})

/** The violations in a tree of sources, one sentence each. The keys are paths below lib. */
function faultsOf(sources: Record<string, string>): string[] {
  const faults: string[] = []
  const graph = new Map<string, string[]>()
  for (const [file, source] of Object.entries(sources)) {
    const code = codeOf(source)
    const imports = importsOf(code)
    const own = imports
      .filter((path) => path.startsWith('.'))
      .map((path) => posix.join(posix.dirname(file), path).replace(/\.js$/, '.ts'))
    graph.set(file, own)
    const allowed = allowedFor(file)
    if (!allowed) faults.push(`${file} belongs to no layer`)
    for (const target of own) {
      if (!(target in sources)) faults.push(`${file} imports ${target}, which does not exist`)
      else if (!allowed?.(target)) faults.push(`${file} must not import ${target}`)
    }
    for (const name of imports.filter((path) => !path.startsWith('.'))) {
      const owners = OWNERS[name]
      if (owners && !owners.some((owner) => isIn(file, owner))) {
        faults.push(`${file} must not import the package ${name}`)
      }
    }
    if (callsFetch(code) && !FETCHES.includes(file)) faults.push(`${file} must not call fetch`)
    if (source.split('\n').length - 1 > MAX_LINES) faults.push(`${file} is longer than ${MAX_LINES} lines`)
  }
  return [...faults, ...circlesIn(graph)]
}

function allowedFor(file: string): ((target: string) => boolean) | undefined {
  if (TOP.includes(file)) return (target) => !NOT_FOR_TOP.some((part) => isIn(target, part))
  const layer = `${file.split('/')[0]}/`
  const allowed = ARROWS[layer]
  return allowed && ((target) => [layer, ...allowed].some((part) => isIn(target, part)))
}

function isIn(file: string, part: string): boolean {
  return part.endsWith('/') ? file.startsWith(part) : file === part
}

/** The source without its comments. `//` after a colon or a quote stays, because it may be part of an address. */
function codeOf(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|[^:'"`])\/\/.*$/gm, '$1')
}

function importsOf(code: string): string[] {
  const statements = /^\s*(?:import|export)\b[^;'"`]*?\bfrom\s*['"]([^'"]+)['"]/gm
  const bare = /^\s*import\s*['"]([^'"]+)['"]/gm
  const calls = /\b(?:import|require)\(\s*['"]([^'"]+)['"]/g
  return [statements, bare, calls].flatMap((pattern) =>
    [...code.matchAll(pattern)].map(([, path]) => path as string),
  )
}

/** Whether the code calls `fetch(…)` itself; a method of that name does not count. */
function callsFetch(code: string): boolean {
  return /(?:(?<![\w.$])|\bglobalThis\.)fetch\s*\(/.test(code)
}

/** Every cycle once, written from its alphabetically first file. */
function circlesIn(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const circles = new Set<string>()
  const done = new Set<string>()
  function visit(file: string, path: readonly string[]) {
    const at = path.indexOf(file)
    if (at >= 0) {
      const circle = path.slice(at)
      const first = circle.indexOf([...circle].sort()[0] as string)
      const cycle = [...circle.slice(first), ...circle.slice(0, first + 1)]
      circles.add(`a circle: ${cycle.join(' → ')}`)
      return
    }
    if (done.has(file)) return
    for (const next of graph.get(file) ?? []) visit(next, [...path, file])
    done.add(file)
  }
  for (const file of graph.keys()) visit(file, [])
  return [...circles]
}

function readTree(root: string): Record<string, string> {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !join(root, file).startsWith(join(PAGE, '/')),
  )
  // The bundle of the page is left out, because its sources are checked.
  const sourceOf = (file: string) => (file === BUNDLE ? '' : readFileSync(join(root, file), 'utf8'))
  return Object.fromEntries(files.map((file) => [file.replaceAll('\\', '/'), sourceOf(file)]))
}

function pageFiles(): string[] {
  return readdirSync(PAGE, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => posix.join(...relative(PAGE, parentPath).split(sep), name))
}
