import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/**
 * Returns the tests of a module: in the folders of `__tests__` that mirror its own and those above it, the files that reach
 * it by imports; in the other folders, those that import it themselves. The nearest mirror comes first, in it what has the
 * fewest steps to the module.
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
      /** The place of the mirror that has the test; the number of mirrors if none has it. */
      const placeOf = (test: string) => {
        const place = mirrors.findIndex((mirror) => test.startsWith(`${mirror}/`))
        return place === -1 ? mirrors.length : place
      }
      return tests
        .map((test) => ({ test, steps: stepsTo(module, test), place: placeOf(test) }))
        .filter(({ steps, place }) => steps < (place < mirrors.length ? Number.POSITIVE_INFINITY : 2))
        .sort((a, b) => a.place - b.place || a.steps - b.steps)
        .map(({ test }) => test)
    },

    /** Whether the test reaches this file by imports. */
    reaches: (test: string, file: string) => stepsTo(file, test) < Number.POSITIVE_INFINITY,
  }
}

/** These test the pages and the package. */
const isOfPages = (test: string) => /^__tests__\/(?:docs|package|types|example-app|scripts)\//.test(test)

/**
 * Folders with other tests too: an engine is a part of the store, whose tests run on both, and what an app sees of the
 * operations is tested where the app is.
 */
const MIRRORS: Record<string, string[]> = {
  'lib/postgres': ['__tests__/postgres', '__tests__/store'],
  'lib/sqlite': ['__tests__/sqlite', '__tests__/store', '__tests__/faults/storage'],
  'lib/operations': ['__tests__/operations', '__tests__/marketplace', '__tests__/faults/life'],
  // The files at the top.
  lib: ['__tests__/marketplace'],
}

/** The folders with the same path and with those above it, the nearest first. */
function mirrorsOf(root: string, module: string): string[] {
  const mirrors: string[] = []
  for (let folder = dirname(module); folder !== 'lib'; folder = dirname(folder)) {
    const mirror = folder.replace('lib', '__tests__')
    if (folder in MIRRORS) return [...mirrors, ...(MIRRORS[folder] as string[])]
    if (existsSync(join(root, mirror))) mirrors.push(mirror)
  }
  return mirrors.length > 0 ? mirrors : (MIRRORS.lib as string[])
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
