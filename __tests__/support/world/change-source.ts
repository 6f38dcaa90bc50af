import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { transformSync } from '@swc/core'
import type { SourceChange } from './sabotage.js'

/** From now on this process, which `load-typescript.cjs` has prepared, loads the file with the change. */
export function changeSource({ file, from, to }: SourceChange) {
  const changed = join(__dirname, '../../../lib', file)
  const load = require.extensions['.ts'] as NonNullable<NodeJS.RequireExtensions['.ts']>
  require.extensions['.ts'] = (module, filename) => {
    if (filename !== changed) return load(module, filename)
    const source = readFileSync(filename, 'utf8').replace(from, () => to)
    const { code } = transformSync(source, {
      filename,
      jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
      module: { type: 'commonjs' },
    })
    const compiling = module as NodeJS.Module & { _compile(code: string, filename: string): void }
    compiling._compile(code, filename)
  }
}
