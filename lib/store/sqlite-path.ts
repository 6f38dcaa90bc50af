import { accessSync, constants, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Why no database can be opened at `path`, and what to do; undefined when the place is not the reason. */
export function pathFault(path: string): string | undefined {
  const folder = dirname(resolve(path))
  if (!statSync(folder, { throwIfNoEntry: false }))
    return `the folder ${folder} does not exist: make it first`
  const file = statSync(path, { throwIfNoEntry: false })
  if (file?.isDirectory()) return 'it is a folder: name a file in it'
  // SQLite makes files of its own beside the database.
  for (const each of file ? [folder, path] : [folder]) {
    try {
      accessSync(each, constants.R_OK | constants.W_OK)
    } catch {
      return `this process may not read and write ${each}: give it the right to`
    }
  }
  return undefined
}
