import { accessSync, constants, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/**
 * The path of the database without symbolic links. SQLite writes its `-wal` file beside the target of a link, so all
 * files of the database are named after this path. Also for a file that does not exist yet, and for a link to one.
 */
export function realDatabasePath(path: string, linksLeft = 40): string {
  try {
    return realpathSync(path)
  } catch {
    const absolute = resolve(path)
    if (linksLeft > 0 && lstatSync(absolute, { throwIfNoEntry: false })?.isSymbolicLink())
      return realDatabasePath(resolve(dirname(absolute), readlinkSync(absolute)), linksLeft - 1)
    try {
      return join(realpathSync(dirname(absolute)), basename(absolute))
    } catch {
      return absolute
    }
  }
}

/** Why no database can be opened at `given`, and what to do; undefined when the path is not the reason. */
export function pathFault(given: string): string | undefined {
  try {
    return faultOf(realDatabasePath(given))
  } catch (error) {
    const folder = dirname(resolve(given))
    const { code } = error as { code?: unknown }
    if (code === 'ENOTDIR') return `${folder} is not a folder: name a file in a folder`
    if (code === 'EACCES') return `this process may not enter the folder ${folder}: grant it the permission`
    return code === 'ELOOP' ? 'its symbolic links lead back to it: name a file' : undefined
  }
}

function faultOf(path: string): string | undefined {
  const folder = dirname(path)
  if (!statSync(folder, { throwIfNoEntry: false }))
    return `the folder ${folder} does not exist: make it first`
  const file = statSync(path, { throwIfNoEntry: false })
  if (file?.isDirectory()) return 'it is a folder: name a file in it'
  // SQLite creates files beside the database.
  for (const each of file ? [folder, path] : [folder]) {
    try {
      accessSync(each, constants.R_OK | constants.W_OK)
    } catch {
      return `this process may not read and write ${each}: grant it the permission`
    }
  }
  return undefined
}
