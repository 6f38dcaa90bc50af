import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { requireBuild } from './installed-package.js'

const ROOT = join(__dirname, '..', '..')
const BUILT = join(ROOT, 'dist', 'lib')

/** The uses of `any` for which every other type would refuse correct code. */
const ANY = {
  'express/doors.d.ts': 'RequestListener: node:http, node:http2 and the frameworks have their own requests',
  'express/call-next.d.ts':
    'AppRequest, AppResponse: types of the app, with the fields that its middleware adds',
  'console/server/router.d.ts': 'AppRequest: a type of the app, with the fields that its middleware adds',
  'work/handling/handlers.d.ts': 'AnyHandler: handlers of all payloads in one list; not exported',
}

describe('the types that exports refer to', () => {
  requireBuild()
  const files = reached(['index', 'testing/index', 'console/index'])

  it('are checked completely', () => {
    expect(Object.keys(files).length).toBeGreaterThan(50)
  })

  it('have an `any` only where no other type works', () => {
    const withAny = Object.keys(files).filter((file) =>
      /\bany\b/.test(codeOf(files[file]).replaceAll(/'[^']*'|"[^"]*"/g, '')),
    )
    expect(withAny.sort()).toEqual(Object.keys(ANY).sort())
  })

  it('have names instead of nested `ReturnType`s', () => {
    const nameless = Object.keys(files).filter((file) =>
      /ReturnType<\s*ReturnType</.test(codeOf(files[file])),
    )
    expect(nameless).toEqual([])
  })
})

function reached(entries: string[]): Record<string, string> {
  const files: Record<string, string> = {}
  const ahead = entries.map((entry) => join(BUILT, `${entry}.d.ts`))
  for (const file of ahead) {
    const name = relative(BUILT, file)
    if (name in files || !existsSync(file)) continue
    const text = readFileSync(file, 'utf8')
    files[name] = text
    for (const [, a, b] of text.matchAll(/from ['"](\.[^'"]+)['"]|import\(['"](\.[^'"]+)['"]\)/g))
      ahead.push(join(dirname(file), (a ?? b ?? '').replace(/\.js$/, '.d.ts')))
  }
  return files
}

function codeOf(text = ''): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/\/\/.*$/gm, '')
}
