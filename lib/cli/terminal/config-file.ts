import { readFile } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { MarketplaceOptions } from '../../index.js'
import { Stop, USAGE } from './exit-codes.js'
import { stopOfFile } from './settings.js'

/**
 * The options of a file: the object in a `.json` file, the default export of an `.mjs`, `.js` or `.ts` file, or
 * `module.exports` of a `.cjs` file. Errors never quote the file, because it may contain secrets.
 */
export async function optionsFromFile(file: string): Promise<MarketplaceOptions> {
  const path = resolve(file)
  const extension = extname(path)
  if (!['.json', '.mjs', '.cjs', '.js', '.ts'].includes(extension))
    throw new Stop(
      USAGE,
      `Cannot use the config file ${file}: it must be a .json, .mjs, .cjs, .js or .ts file`,
    )
  const found = extension === '.json' ? await readJson(path, file) : await importModule(path, file)
  if (typeof found !== 'object' || found === null || Array.isArray(found))
    throw new Stop(
      USAGE,
      `Cannot use the config file ${file}: its ${extension === '.json' ? 'content' : 'default export'} must be the options of createMarketplace`,
    )
  if ('router' in found)
    throw new Stop(
      USAGE,
      `Cannot use the config file ${file}: it exports a marketplace; export its options instead`,
    )
  return found as MarketplaceOptions
}

async function readJson(path: string, file: string): Promise<unknown> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Stop(USAGE, `Cannot read the config file ${file}: ${error.code ?? 'unknown reason'}`)
  })
  try {
    return JSON.parse(text.replace(/^\ufeff/, ''))
  } catch {
    // The error has no cause: the message of the cause quotes the file.
    throw new Stop(USAGE, `Cannot use the config file ${file}: it is not valid JSON`)
  }
}

async function importModule(path: string, file: string): Promise<unknown> {
  try {
    const module = (await import(pathToFileURL(path).href)) as { default?: unknown }
    return module.default
  } catch (error) {
    const ofSettings = stopOfFile(error)
    if (ofSettings) throw ofSettings
    const { name, code } = error as { name?: string; code?: string }
    throw new Stop(USAGE, `Cannot load the config file ${file}: ${code ?? name ?? 'it failed'}`, {
      fix: `Run the file alone to see the whole error: node ${file}`,
    })
  }
}
