import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/**
 * Returns the tests of a module: in the folder of `__tests__` that mirrors its own, the files that reach it by imports;
 * in the other folders, those that import it themselves. The mirror comes first, in it what has the fewest steps to it.
 */
export function createTests(root: string) {
  const importsOf = readImports(root)
  const tests = [...importsOf.keys()].filter((file) => file.endsWith('.test.ts') && !isOfPages(file))

  /** How many imports lead from the test to the module. */
  function stepsTo(module: string, test: string): number {
    const seen = new Map([[test, 0]])
    for (const [file, steps] of seen) {
      if (file === module) return steps
      for (const each of importsOf.get(file) ?? []) if (!seen.has(each)) seen.set(each, steps + 1)
    }
    return Number.POSITIVE_INFINITY
  }

  return {
    of(module: string): string[] {
      const mirrors = mirrorsOf(root, module)
      const isInMirror = (test: string) => mirrors.some((mirror) => test.startsWith(`${mirror}/`))
      return tests
        .map((test) => ({ test, steps: stepsTo(module, test), elsewhere: !isInMirror(test) }))
        .filter(({ steps, elsewhere }) => steps === 1 || (!elsewhere && steps < Number.POSITIVE_INFINITY))
        .sort((a, b) => Number(a.elsewhere) - Number(b.elsewhere) || a.steps - b.steps)
        .map(({ test }) => test)
    },

    /** Whether the test reaches this file by imports. */
    reaches: (test: string, file: string) => stepsTo(file, test) < Number.POSITIVE_INFINITY,
  }
}

/** These test the pages and the package. */
const isOfPages = (test: string) => /^__tests__\/(?:docs|package|types|example-app|scripts)\//.test(test)

/** An engine is a part of the store too, which the tests of the store run on both. */
const MIRRORS: Record<string, string[]> = {
  'lib/postgres': ['__tests__/postgres', '__tests__/store'],
  'lib/sqlite': ['__tests__/sqlite', '__tests__/store'],
  // The files at the top.
  lib: ['__tests__/marketplace'],
}

/** The folder with the same path, or the nearest one above it that there is. */
function mirrorsOf(root: string, module: string): string[] {
  let folder = dirname(module)
  for (; folder !== 'lib'; folder = dirname(folder)) {
    const mirror = folder.replace('lib', '__tests__')
    if (folder in MIRRORS) break
    if (existsSync(join(root, mirror))) return [mirror]
  }
  return MIRRORS[folder] as string[]
}

/** The modules that each file imports for more than their types. */
function readImports(root: string): Map<string, string[]> {
  const files = ['lib', '__tests__'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.tsx?$/.test(file) && !file.includes('node_modules'))
      .map((file) => join(folder, file)),
  )
  return new Map(
    files.map((file) => {
      const source = readFileSync(join(root, file), 'utf8')
      const named = source.matchAll(
        /^(?:import|export|\} from)(?! type)[^']*'(\.[^']+)'|import\('(\.[^']+)'\)/gm,
      )
      const paths = [...named].map(([, path, dynamic]) => join(dirname(file), (path ?? dynamic) as string))
      return [file, paths.map((path) => relative('', path).replace(/\.js$/, '.ts'))]
    }),
  )
}
