import { readFile } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { MarketplaceOptions } from '../index.js'
import { Stop, USAGE } from './exit-codes.js'

/**
 * The options that a file has: the object in a `.json`, the default export of an `.mjs` or `.js`, or what a `.cjs`
 * exports. Nothing of a file is repeated in an error, for it may hold secrets.
 */
export async function optionsFromFile(file: string): Promise<MarketplaceOptions> {
  const path = resolve(file)
  const kind = extname(path)
  if (!['.json', '.mjs', '.cjs', '.js'].includes(kind))
    throw new Stop(USAGE, `Cannot use the config file ${file}: expected a .json, .mjs, .cjs or .js file`)
  const found = kind === '.json' ? await readJson(path, file) : await importModule(path, file)
  if (typeof found !== 'object' || found === null || Array.isArray(found))
    throw new Stop(
      USAGE,
      `Cannot use the config file ${file}: expected the options of createMarketplace as its ${kind === '.json' ? 'content' : 'default export'}`,
    )
  if ('router' in found)
    throw new Stop(
      USAGE,
      `Cannot use the config file ${file}: it exports a marketplace, and expected are its options`,
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
    // Its message would quote the file.
    throw new Stop(USAGE, `Cannot use the config file ${file}: it is not valid JSON`)
  }
}

async function importModule(path: string, file: string): Promise<unknown> {
  try {
    const module = (await import(pathToFileURL(path).href)) as { default?: unknown }
    return module.default
  } catch (error) {
    const { name, code } = error as { name?: string; code?: string }
    throw new Stop(USAGE, `Cannot load the config file ${file}: ${code ?? name ?? 'it failed'}`, {
      mend: `Run it alone for the whole error: node ${file}`,
    })
  }
}
