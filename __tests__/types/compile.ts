import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Project } from '../package/installed-package.js'

/**
 * The ways in which a consumer finds modules, with the files that it writes: ES modules, CommonJS, or the input of a
 * bundler.
 */
export const RESOLUTIONS = {
  node10: { module: 'commonjs', files: ['app.ts'] },
  node16: { module: 'node16', files: ['app.mts', 'app.cts'] },
  nodenext: { module: 'nodenext', files: ['app.mts', 'app.cts'] },
  bundler: { module: 'esnext', files: ['app.ts'] },
} as const
export type Resolution = keyof typeof RESOLUTIONS

const NOT_STRICT = { strict: false, exactOptionalPropertyTypes: false, noUncheckedIndexedAccess: false }
const CONSUMER = readFileSync(join(__dirname, 'consumer.ts'), 'utf8')

/**
 * The errors that a version of TypeScript reports for the consumer and for the types of this package. The types of
 * other packages are checked too, as a consumer does, but errors that an old TypeScript finds in them are ignored.
 */
export async function faultsOf(
  project: Project,
  options: { resolution: Resolution; isStrict: boolean; typescript?: string; compilerOptions?: object },
): Promise<string[]> {
  const { resolution, isStrict, typescript, compilerOptions } = options
  const { module, files } = RESOLUTIONS[resolution]
  for (const file of files) project.write(file, CONSUMER)
  const given = {
    module,
    moduleResolution: resolution,
    skipLibCheck: false,
    ...(isStrict ? {} : NOT_STRICT),
    ...compilerOptions,
  }
  const { code, stdout } = await project.tsc([...files], given, typescript)
  const errors = stdout.split('\n').filter((line) => /error TS\d+/.test(line))
  // If the compiler fails without a diagnostic, its own output is the error.
  if (code !== 0 && errors.length === 0) return [stdout]
  return errors.filter((line) => /^(app\.|error|tsconfig)|node_modules\/marketplace-webhooks\//.test(line))
}
